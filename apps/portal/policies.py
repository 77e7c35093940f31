"""Actions of the pages themselves; what a page does has its action in the context that does it."""

from apps.common.policy import rule

rule("portal.enter", people_only=True)
rule("invitation.open", public=True)
