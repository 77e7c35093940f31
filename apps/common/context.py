"""What log lines carry beside their message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
actor_name: ContextVar[str] = ContextVar("actor_name", default="")
space_id: ContextVar[str] = ContextVar("log_space_id", default="")
run_id: ContextVar[str] = ContextVar("run_id", default="")


@contextmanager
def of_request(identity: str) -> Iterator[None]:
    """Log lines of the block carry the request's id; who asked, and in which space, is forgotten after it."""
    tokens = [(variable, variable.set(value)) for variable, value in ((request_id, identity), (actor_name, ""), (space_id, ""))]
    try:
        yield
    finally:
        for variable, token in tokens:
            variable.reset(token)
