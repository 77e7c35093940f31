"""Actions on the models of a space (contract content 8)."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("model.list", needs=Role.VIEWER, key=("retrieve", "manage_models"))
rule("model.write", needs=Role.ADMIN, key="manage_models")
