"""Actions of asking. A conversation is its owner's alone: what may be done inside it needs no role."""

from apps.common.actor import Role
from apps.common.policy import rule

rule("chat.read", needs=Role.VIEWER, key="chat")
rule("chat.ask", needs=Role.VIEWER, key="chat")
rule("chat.manage", needs=Role.VIEWER, key="chat")
rule("chat.history", needs=Role.VIEWER, key=("chat", "message_history"))
