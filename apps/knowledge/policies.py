"""Actions on knowledge bases and their contents (DESIGN: members write contents, admins make, change and remove bases)."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("base.list", needs=Role.VIEWER, key=("retrieve", "manage_kbs"))
rule("base.read", needs=Role.VIEWER, key="retrieve")
rule("base.create", needs=Role.ADMIN, key="manage_kbs")
rule("base.update", needs=Role.ADMIN, key="manage_kbs")
rule("base.delete", needs=Role.ADMIN, key="manage_kbs")
rule("base.clear", needs=Role.ADMIN)
rule("base.copy", needs=Role.ADMIN, key="manage_kbs")
rule("base.copy_progress", needs=Role.VIEWER, key=("retrieve", "manage_kbs"))
rule("base.pin", needs=Role.VIEWER, people_only=True)
rule("base.activity", needs=Role.ADMIN, people_only=True)
rule("document.read", needs=Role.VIEWER, key="retrieve")
rule("document.create", needs=Role.MEMBER, key="ingest")
rule("document.update", needs=Role.MEMBER, key="ingest")
rule("document.delete", needs=Role.MEMBER, key="ingest")
rule("document.download", needs=Role.MEMBER, key="retrieve")
rule("document.move", needs=Role.ADMIN, key="ingest")
rule("folder.read", needs=Role.VIEWER, key="retrieve")
rule("folder.update", needs=Role.MEMBER, key="ingest")
rule("tag.read", needs=Role.VIEWER, key="retrieve")
rule("tag.write", needs=Role.MEMBER, key="ingest")
rule("chunk.read", needs=Role.VIEWER, key="retrieve")
rule("chunk.write", needs=Role.MEMBER, key="ingest")
rule("document.reparse", needs=Role.MEMBER, key="ingest")
rule("document.cancel", needs=Role.MEMBER, key="ingest")
