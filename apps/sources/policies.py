"""Actions on data sources: members see them and what their runs did; everything else is for admins."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("source.read", needs=Role.VIEWER, key=("retrieve", "manage_datasources"))
rule("source.write", needs=Role.ADMIN, key="manage_datasources")
rule("source.sync", needs=Role.ADMIN, key="manage_datasources")
