"""What log lines carry beside their message."""

from __future__ import annotations

from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
actor_name: ContextVar[str] = ContextVar("actor_name", default="")
space_id: ContextVar[str] = ContextVar("log_space_id", default="")
run_id: ContextVar[str] = ContextVar("run_id", default="")
