"""The events of the answers this process is writing: listeners get them at once, the database a moment later.

A turn never waits for the database while a model talks: one thread, the pulse, stores what waits for every live turn together, renews
their leases, and hears of stops that were asked for in another process.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, connections
from django.db.models.functions import Now

from apps.chat.models import Message, StreamEvent
from apps.common.scope import unscoped

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)
PULSE_S = 0.7
RENEW_EVERY = 10  # pulses
Event = dict[str, Any]


class Stopped(Exception):
    """Somebody asked for the answer to end."""


class Channel:
    """The events of one answer. `emit` from the turn's thread; `listen` from anywhere."""

    def __init__(self, message: Message) -> None:
        self.message_pk = message.pk
        self.space_id = message.space_id
        self.request_id = message.request_id
        self.events: list[Event] = []
        self.closed = False
        self.stopped = threading.Event()
        self._stored = 0
        self._guard = threading.Lock()
        self._storing = threading.Lock()
        self._listeners: set[Callable[[], None]] = set()

    def emit(self, response_type: str, content: str = "", *, done: bool = False, **fields: Any) -> None:
        """Add one event in the contract's shape; `id` is the same in all of a turn."""
        event = {"id": self.request_id, "response_type": response_type, "content": content, "done": done, **fields}
        with self._guard:
            self.events.append(event)
            waiting = list(self._listeners)
        for wake in waiting:
            wake()

    def check(self) -> None:
        """Raises: Stopped once somebody asked for it."""
        if self.stopped.is_set():
            raise Stopped

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have `wake` called whenever there is something new; what is returned ends that."""
        with self._guard:
            self._listeners.add(wake)
        return lambda: self._listeners.discard(wake)

    def close(self) -> None:
        with self._guard:
            self.closed = True
            waiting = list(self._listeners)
        for wake in waiting:
            wake()

    def store(self) -> None:
        """Write what is not stored yet. Raises: DatabaseError, and it waits on."""
        with self._storing:
            new = self.events[self._stored :]
            if not new:
                return
            rows = [
                StreamEvent(space_id=self.space_id, message_id=self.message_pk, seq=self._stored + at, payload=event)
                for at, event in enumerate(new)
            ]
            StreamEvent.objects.bulk_create(rows)
            self._stored += len(rows)


class Hub:
    """The channels of this process by message, and the pulse that keeps them."""

    def __init__(self) -> None:
        self._channels: dict[int, Channel] = {}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def open(self, message: Message) -> Channel:
        channel = Channel(message)
        with self._guard:
            self._channels[message.pk] = channel
        return channel

    def find(self, message_pk: int) -> Channel | None:
        with self._guard:
            return self._channels.get(message_pk)

    def close(self, channel: Channel) -> None:
        channel.close()
        with self._guard:
            self._channels.pop(channel.message_pk, None)

    def keep(self) -> None:
        """Have the pulse beat as long as a turn lives."""
        with self._guard:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._beat, name="chat-pulse", daemon=True)
                self._thread.start()

    def _live(self) -> list[Channel]:
        with self._guard:
            live = list(self._channels.values())
            if not live:
                self._thread = None  # the next turn starts another
            return live

    def _beat(self) -> None:
        beats = 0
        while live := self._live():
            try:
                with unscoped("pulse of the answers this process is writing"):
                    self.pulse(live, renew=beats % RENEW_EVERY == 0)
            except DatabaseError:
                log.warning("events of %s answers could not be stored and wait", len(live), exc_info=True)
            finally:
                connections.close_all()
            beats += 1
            self._wake.wait(PULSE_S)

    def pulse(self, live: list[Channel], *, renew: bool) -> None:
        """Store, renew, and hear of stops, for these channels."""
        pks = [channel.message_pk for channel in live]
        asked = set(Message.objects.filter(pk__in=pks, stop_requested=True).values_list("pk", flat=True))
        for channel in live:
            if channel.message_pk in asked:
                channel.stopped.set()
            channel.store()
        if renew:
            Message.objects.filter(pk__in=pks, state=Message.State.RUNNING).update(lease_until=Now() + LEASE)


hub = Hub()
