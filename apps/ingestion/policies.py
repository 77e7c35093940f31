"""Actions on the processing of documents."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("run.read", needs=Role.VIEWER, key="retrieve")
rule("document.reparse", needs=Role.MEMBER, key="ingest")
rule("document.cancel", needs=Role.MEMBER, key="ingest")
rule("chunk.preview", needs=Role.VIEWER, key=("retrieve", "ingest"))
