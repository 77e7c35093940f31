"""Server-sent events in the framing clients of the contract read (platform 2.4)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from django.http import StreamingHttpResponse

KEEP_ALIVE = b": keep-alive\n\n"  # a comment: readers of events skip it, proxies see that somebody is there


def frame(event: dict[str, Any]) -> bytes:
    """One event: no space after the colons, the JSON in one line, no other field."""
    return b"event:message\ndata:" + json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"


def streamed(events: AsyncIterator[dict[str, Any] | None]) -> StreamingHttpResponse:
    """The answer that sends events as they come; None becomes a sign of life."""

    async def frames() -> AsyncIterator[bytes]:
        async for event in events:
            yield KEEP_ALIVE if event is None else frame(event)

    response = StreamingHttpResponse(frames(), content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Buffering"] = "no"
    return response
