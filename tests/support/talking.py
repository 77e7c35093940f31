"""Asking over REST and reading the stream, for tests."""

from __future__ import annotations

import json
from typing import Any

from tests.support.library import Library


def events_of(raw: bytes) -> list[dict[str, Any]]:
    """The events of a stream; its framing is checked byte by byte."""
    frames = raw.split(b"\n\n")
    assert frames.pop() == b""
    found = []
    for frame in frames:
        head, _newline, data = frame.partition(b"\n")
        assert head == b"event:message", frame
        assert data.startswith(b"data:{") and b"\n" not in data, frame
        found.append(json.loads(data[5:]))
    return found


class Talk:
    """A conversation of `client` in the library's space."""

    def __init__(self, library: Library, client: Any = None) -> None:
        self.library, self.client = library, client or library.client
        self.headers = {"X-Tenant-ID": str(library.space.pk), "Accept-Language": "en"}
        self.id = self.call("post", "sessions", {}).json()["data"]["id"]

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        send = getattr(self.client, method)
        extra: dict[str, Any] = {"headers": {**self.headers, **headers}}
        if method == "get":
            return send(f"/api/v1/{path}", body or {}, **extra)
        return send(f"/api/v1/{path}", json.dumps({} if body is None else body), content_type="application/json", **extra)

    def ask(self, query: str, *, route: str = "knowledge-chat", **body: Any) -> list[dict[str, Any]]:
        body.setdefault("knowledge_base_ids", [str(self.library.base.uid)])
        answer = self.call("post", f"{route}/{self.id}", {"query": query, **body}, **{"X-Request-ID": "turn-1"})
        assert answer.status_code == 200, answer.content
        return events_of(b"".join(answer))

    def messages(self) -> list[dict[str, Any]]:
        return list(self.call("get", f"messages/{self.id}/load").json()["data"])


def types(events: list[dict[str, Any]]) -> list[str]:
    """Kinds of events in order, runs of one kind as one."""
    kinds = [event["response_type"] for event in events]
    return [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] != kind]


def said(events: list[dict[str, Any]]) -> str:
    return "".join(event["content"] for event in events if event["response_type"] == "answer")


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["response_type"] == kind]
