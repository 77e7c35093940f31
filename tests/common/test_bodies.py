"""Bodies larger than a file may be are refused before anything keeps them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from apps.common.bodies import BodyLimit
from apps.knowledge.intake import too_large

LIMIT = 1000


def ask(parts: Sequence[bytes], headers: dict[str, str], path: str = "/api/v1/x") -> tuple[int, Any, int, int]:
    """(status, body, bytes the application saw, messages read) for a body that comes in these parts."""
    seen, read = 0, 0
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal seen
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            seen += len(message["body"])
            if not message["more_body"]:
                break
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": parts[read - 1], "more_body": read < len(parts)}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": path, "headers": raw}
    asyncio.run(BodyLimit(app, LIMIT, too_large)(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"]), seen, read


def test_a_body_within_the_limit_passes() -> None:
    assert ask([b"x" * 500, b"x" * 500], {"content-length": "1000"}) == (200, {}, 1000, 2)


@pytest.mark.parametrize(("language", "word"), [("zh-CN,zh;q=0.9", "文件过大"), ("en", "The file is too large")])
def test_a_declared_length_over_the_limit_is_refused_and_kept_nowhere(language: str, word: str) -> None:
    status, body, seen, read = ask([b"x" * 600, b"x" * 600], {"content-length": "1200", "accept-language": language})
    assert (status, seen, read) == (400, 0, 2)
    assert body["success"] is False and body["error"]["details"]["reason"] == "too_large" and word in body["error"]["message"]


def test_a_body_without_a_length_is_cut_off_at_the_limit() -> None:
    status, body, seen, _read = ask([b"x" * 400] * 9, {"transfer-encoding": "chunked", "accept-language": "en"})
    assert (status, body["error"]["details"]["reason"]) == (400, "too_large")
    assert seen <= LIMIT


def test_the_last_part_may_be_the_one_too_many() -> None:
    status, body, seen, read = ask([b"x" * 600, b"x" * 600], {"accept-language": "en"})
    assert (status, body["error"]["details"]["reason"], seen, read) == (400, "too_large", 600, 2), "nothing more is waited for"


def test_a_hopeless_body_is_not_read_to_its_end() -> None:
    status, _body, seen, read = ask([b"x" * 400] * 1000, {"content-length": "400000"}, path="/v1/knowledge/x")
    assert (status, seen, read) == (400, 0, 10), "four times the limit, then the connection is closed"
