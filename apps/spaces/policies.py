"""Actions on spaces, members, invitations and keys (DESIGN: admins manage, everyone may look)."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("space.create", people_only=True)
rule("space.list", needs=Role.VIEWER, key="manage_tenant_settings")
rule("space.read", needs=Role.VIEWER, key="manage_tenant_settings")
rule("space.update", needs=Role.ADMIN, people_only=True)
rule("space.delete", needs=Role.ADMIN, people_only=True, organizations_only=True)
rule("auth.switch-space", people_only=True)
rule("member.list", needs=Role.VIEWER, key="manage_members")
rule("member.write", needs=Role.ADMIN, key="manage_members", organizations_only=True)
rule("member.leave", needs=Role.MEMBER, people_only=True, organizations_only=True)
rule("invitation.list", needs=Role.VIEWER, key="manage_members")
rule("invitation.write", needs=Role.ADMIN, key="manage_members", organizations_only=True)
rule("invitation.lookup", public=True)
rule("invitation.mine", people_only=True)
rule("invitation.respond", people_only=True)
rule("key.list", needs=Role.ADMIN, people_only=True)
rule("key.write", needs=Role.ADMIN, people_only=True)
rule("system.read", any_key=True)
