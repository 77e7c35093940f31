"""What moderators of the site may do beyond one account (accounts has that)."""

from apps.common.policy import rule

rule("run.moderate", moderators_only=True, people_only=True)
rule("content.open", moderators_only=True, people_only=True)
rule("figures.read", moderators_only=True, people_only=True)
