"""What log lines carry beside their message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
request_line: ContextVar[tuple[str, str]] = ContextVar("request_line", default=("", ""))  # method, path without its query
actor_name: ContextVar[str] = ContextVar("actor_name", default="")
space_id: ContextVar[str] = ContextVar("log_space_id", default="")
run_id: ContextVar[str] = ContextVar("run_id", default="")


@contextmanager
def of_request(identity: str, method: str = "", path: str = "") -> Iterator[None]:
    """Log lines and the activity log of the block carry the request; who asked, and in which space, is forgotten after it."""
    tokens = [(variable, variable.set(value)) for variable, value in ((request_id, identity), (actor_name, ""), (space_id, ""))]
    line = request_line.set((method[:8], path[:255]))
    try:
        yield
    finally:
        request_line.reset(line)
        for variable, token in tokens:
            variable.reset(token)
