"""Actions of this context: signing in and one's own account."""

from apps.common.policy import rule

rule("auth.register", public=True)
rule("auth.sign-in", public=True)
rule("auth.refresh", public=True)
rule("auth.sign-out", public=True)
rule("auth.config", public=True)
rule("auth.auto-setup", public=True)
rule("auth.me", any_key=True)
rule("auth.validate", people_only=True)
rule("auth.preferences", people_only=True)
rule("auth.password", people_only=True)
rule("profile.read", people_only=True)
rule("profile.update", people_only=True)
rule("appearance.set", public=True)
rule("user.moderate", moderators_only=True, people_only=True)
