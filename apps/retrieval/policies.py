"""Actions of search."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("search.run", needs=Role.VIEWER, key="retrieve")
rule("search.explain", needs=Role.VIEWER, key="retrieve")
