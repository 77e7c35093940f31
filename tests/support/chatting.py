"""A scripted chat model that streams, on the loopback, in the catalogue of a library's space."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from django.conf import settings

from apps.common.scope import unscoped
from apps.llm.models import Model
from tests.support.endpoint import Endpoint, serving
from tests.support.library import Library


def stream(handler: BaseHTTPRequestHandler, pieces: Sequence[str | dict[str, Any]], *, whole: bool = True) -> None:
    """Send pieces as the deltas of a streamed answer; not `whole`: the connection breaks after them."""
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("connection", "close")
    if not whole:
        handler.send_header("content-length", "1000000")
    handler.end_headers()
    for piece in pieces:
        delta = {"content": piece} if isinstance(piece, str) else piece
        row = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }
        handler.wfile.write(f"data: {json.dumps(row)}\n\n".encode())
        handler.wfile.flush()
    if whole:
        handler.wfile.write(b"data: [DONE]\n\n")
    handler.close_connection = True


@contextmanager
def chat_model(
    library: Library, script: Callable[[dict[str, Any]], Sequence[str | dict[str, Any]]], *, whole: bool = True
) -> Iterator[tuple[Endpoint, Model]]:
    """`script` gets each request and gives the pieces of its answer."""
    with serving() as endpoint:

        def behave(_body: object, handler: BaseHTTPRequestHandler) -> None:
            stream(handler, script(endpoint.requests[-1]), whole=whole)

        endpoint.behave = behave
        before = settings.MODEL_ALLOW
        settings.MODEL_ALLOW = ["127.0.0.1"]
        try:
            with unscoped("test data"):
                row = Model.objects.create(
                    space=library.space, name="talker", type=Model.Type.CHAT, base_url=endpoint.url, read_timeout_s=2
                )
            yield endpoint, row
        finally:
            settings.MODEL_ALLOW = before
