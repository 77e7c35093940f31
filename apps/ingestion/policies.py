"""Actions on the processing of documents."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("run.read", needs=Role.VIEWER, key="retrieve")
rule("chunk.preview", needs=Role.VIEWER, key=("retrieve", "ingest"))
rule("base.reindex", needs=Role.ADMIN, key="manage_kbs")
rule("table.read", needs=Role.MEMBER, key="ingest")
