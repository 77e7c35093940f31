"""Actions on the wiki of a base: members read and write it; whether a base has one is a setting of it."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("wiki.read", needs=Role.VIEWER, key="retrieve")
rule("wiki.write", needs=Role.MEMBER, key="ingest")
rule("wiki.import", needs=Role.MEMBER, key="ingest")
