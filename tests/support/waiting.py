"""Waiting for another process: looks again and again until something holds, and says what did not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], what: str, *, timeout_s: float = 20.0, every_s: float = 0.05) -> T:
    """The first truthy value of `condition`.

    Raises: AssertionError naming `what` when it never came.
    """
    give_up_at = time.monotonic() + timeout_s
    while True:
        if value := condition():
            return value
        assert time.monotonic() < give_up_at, f"waited {timeout_s:g} s for {what}"
        threading.Event().wait(every_s)


def pid_alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
