"""Actions on question pairs: members read and write all of them; what they are made of is a setting of the base."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("faq.read", needs=Role.VIEWER, key="retrieve")
rule("faq.write", needs=Role.MEMBER, key="ingest")
rule("faq.import", needs=Role.MEMBER, key="ingest")
rule("faq.progress", needs=Role.VIEWER, key=("retrieve", "ingest"))
