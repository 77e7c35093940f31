"""A door before Django's: request bodies larger than any file may be are not even written to the disk."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.utils import translation

from apps.common.api.errors import body_of, is_proxied, status_of
from apps.common.errors import DomainError
from apps.common.middleware import language_asked_for

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class BodyLimit:
    """Answers `refusal()`, as every REST error is answered, to bodies of more than `max_bytes`.

    Django copies a whole body to the disk before any view is asked, whoever sent it; without this anybody could fill the disk. What is
    too large is read on for a while, so that the client hears the answer instead of a broken connection, but kept nowhere.
    """

    def __init__(self, app: App, max_bytes: int, refusal: Callable[[], DomainError]) -> None:
        self.app = app
        self.max_bytes = max_bytes
        self.refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self.max_bytes):
            await self._swallow(receive, int(declared))
            await self._refuse(scope, send)
            return
        taken, over, ended, answered = 0, False, False, False

        async def counted() -> MutableMapping[str, Any]:
            nonlocal taken, over, ended
            message = await receive()
            taken += len(message.get("body") or b"")
            if taken > self.max_bytes:  # sent in chunks, without a length
                over, ended = True, not message.get("more_body", False)
                return {"type": "http.disconnect"}
            return message

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal answered
            answered = answered or message["type"] == "http.response.start"
            await send(message)

        await self.app(scope, counted, watched)
        if over and not answered:
            if not ended:
                await self._swallow(receive, self.max_bytes * 3)
            await self._refuse(scope, send)

    async def _swallow(self, receive: Receive, declared: int) -> None:
        left = min(declared, self.max_bytes * 4)
        while left > 0:
            message = await receive()
            left -= len(message.get("body") or b"")
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return

    async def _refuse(self, scope: Scope, send: Send) -> None:
        asked = dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1")
        with translation.override(language_asked_for(asked)):
            error = self.refusal()
            status, _code = status_of(error)
            body = json.dumps(body_of(error, proxied=is_proxied(scope["path"])), ensure_ascii=False).encode()
        start = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": status, "headers": start})
        await send({"type": "http.response.body", "body": body})
