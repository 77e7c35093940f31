"""The events of an answer as they come, from its beginning, for as many readers as like to."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from apps.chat.models import Message
from apps.chat.selectors import channel_of, events_after
from apps.chat.turns.runner import release
from apps.common.actor import Actor
from apps.common.scope import space_scope

POLL_S = 0.2  # for answers another process is writing
SILENCE_S = 15.0


async def turn_follow(*, actor: Actor, message: Message, since: int = 0) -> AsyncGenerator[dict[str, Any] | None, None]:
    """Each event once, in order, until the last; None after every SILENCE_S without one.

    What this process writes comes at once, what another one writes within POLL_S. No database connection is held in between.
    """
    seq, quiet_since = since, time.monotonic()
    loop = asyncio.get_running_loop()
    channel = channel_of(message)
    if channel is not None:
        news = asyncio.Event()
        forget = channel.listen(partial(_wake, loop, news))
        try:
            while True:
                news.clear()
                closed = channel.closed
                for event in channel.events[seq:]:
                    seq += 1
                    yield event
                if closed and seq >= len(channel.events):
                    return
                try:
                    await asyncio.wait_for(news.wait(), SILENCE_S)
                except TimeoutError:
                    yield None
        finally:
            forget()
    while True:
        events, live = await sync_to_async(_read)(actor, message, seq)
        for event in events:
            seq += 1
            quiet_since = time.monotonic()
            yield event
        if not live and not events:
            return
        if not events:
            if time.monotonic() - quiet_since >= SILENCE_S:
                quiet_since = time.monotonic()
                yield None
            await asyncio.sleep(POLL_S)


def _wake(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """From the turn's thread; a listener whose loop has ended hears nothing."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(news.set)


def _read(actor: Actor, message: Message, seq: int) -> tuple[list[dict[str, Any]], bool]:
    try:
        with space_scope(actor.space, "stream of an answer"):
            return events_after(actor=actor, message=message, seq=seq)
    finally:
        release()
