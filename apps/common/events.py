"""News travels up: a lower context publishes, higher ones listen inside the same transaction.

A listener writes rows of its own context and may enqueue work; it does no I/O.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

E = TypeVar("E")

_listeners: dict[type, list[Callable[[Any], None]]] = defaultdict(list)


def listen(event: type[E]) -> Callable[[Callable[[E], None]], Callable[[E], None]]:
    """Register a listener; contexts do it in `listeners.py`, imported by their AppConfig."""

    def keep(listener: Callable[[E], None]) -> Callable[[E], None]:
        _listeners[event].append(listener)
        return listener

    return keep


def publish(event: object) -> None:
    """Run every listener of this kind of event, now, in the order of registration."""
    for listener in _listeners[type(event)]:
        listener(event)
