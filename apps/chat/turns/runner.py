"""Turns run in threads of the process that took the question, and go on when whoever asked is gone."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

from django.conf import settings
from django.db import connections

from apps.chat.models import Message
from apps.chat.turns.channel import Channel, hub

AT_ONCE = 32  # turns that work at the same time in a process; the others wait for their turn
_room = threading.BoundedSemaphore(AT_ONCE)


def release() -> None:
    """Give this thread's database connections back, so that none is held while something else is waited for."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def start(message: Message, work: Callable[[Channel], None]) -> Channel:
    """Begin to write an answer; its channel is there when this returns. `work` ends by itself and tells every failure it meets."""
    channel = hub.open(message)
    if settings.CHAT_INLINE:
        _run(channel, work)
        return channel
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(_in_turn, channel, work), name=f"turn-{message.pk}", daemon=True).start()
    hub.keep()
    return channel


def _in_turn(channel: Channel, work: Callable[[Channel], None]) -> None:
    with _room:
        _run(channel, work)


def _run(channel: Channel, work: Callable[[Channel], None]) -> None:
    try:
        work(channel)
    finally:
        hub.close(channel)
        release()
