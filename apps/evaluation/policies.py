"""Actions on evaluations: members of a space may read a result they were given the id of; everything else is for admins."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("evaluation.read", needs=Role.VIEWER, key="run_evaluations")
rule("evaluation.manage", needs=Role.ADMIN, key="run_evaluations")
