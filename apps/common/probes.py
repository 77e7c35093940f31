"""Checks that may hang, answered in bounded time."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Mapping

from django.db import DatabaseError, connections
from kombu.exceptions import OperationalError as BrokerError

from apps.common.errors import DomainError, TransientError

log = logging.getLogger(__name__)

Check = Callable[[], str]
"""Returns "" when all is well, else what is wrong; it may raise what the part it touches raises."""


class _Asked(threading.Thread):
    """One check under way, on a thread that nobody waits for at the end of the process."""

    def __init__(self, name: str, check: Check) -> None:
        super().__init__(name=f"check-{name}", daemon=True)
        self.check, self.state = check, ""
        self.over = threading.Event()
        self._context = contextvars.copy_context()
        self.start()

    def run(self) -> None:
        try:
            self.state = self._context.run(self._ask)
        finally:
            connections.close_all()  # of this thread
            self.over.set()

    def _ask(self) -> str:
        try:
            return self.check() or "ok"
        except (DatabaseError, BrokerError, OSError, DomainError, TransientError) as error:
            log.warning("%s failed: %s", self.name, error)
            return f"failed: {getattr(error, 'why', '') or type(error).__name__}"
        except Exception as error:
            log.exception("%s failed in an unexpected way", self.name)
            return f"failed: {type(error).__name__}"


class Probes:
    """Asks named checks side by side. A check that hangs is left alone until it ends; no second one is started meanwhile."""

    def __init__(self, *, deadline_s: float, keep_s: float) -> None:
        self.deadline_s, self.keep_s = deadline_s, keep_s
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}
        self._states: dict[str, str] = {}
        self._at = -keep_s

    def states(self, checks: Mapping[str, Check]) -> dict[str, str]:
        """{name: "ok" or what is wrong}, within the deadline; an answer of a moment ago is good enough."""
        with self._lock:
            if time.monotonic() - self._at >= self.keep_s or checks.keys() != self._states.keys():
                self._states = self._ask(checks)
                self._at = time.monotonic()
            return dict(self._states)

    def forget(self) -> None:
        self._at = -self.keep_s

    def _ask(self, checks: Mapping[str, Check]) -> dict[str, str]:
        give_up_at = time.monotonic() + self.deadline_s
        for name, check in checks.items():
            if name not in self._asked:
                self._asked[name] = _Asked(name, check)
        states = {}
        for name in checks:
            asked = self._asked[name]
            if asked.over.wait(max(0.0, give_up_at - time.monotonic())):
                states[name] = asked.state
                del self._asked[name]
            else:
                states[name] = f"failed: no answer within {self.deadline_s:g} s"
        return states
