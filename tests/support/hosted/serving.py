"""A WSGI application on a port of its own, behind a gate that can fail on purpose."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

Answer = Callable[[Request], Response | None]
SHORT = 20  # how many things an answer of a stand-in holds at most: small, so that paging happens


class _Quiet(WSGIRequestHandler):
    def log(self, *_args: Any, **_more: Any) -> None: ...


@dataclass
class Gate:
    """What stands before an application: `rules` answer first (and are used up when `times` is over); `seen` is every request."""

    app: Callable[..., Iterable[bytes]]
    rules: list[tuple[Answer, list[int]]] = field(default_factory=list)
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        self.seen.append((request.method, request.full_path.rstrip("?"), dict(request.headers)))
        for answer, left in self.rules:
            if left[0]:
                response = answer(request)
                if response is not None:
                    left[0] -= 1
                    return response(environ, start_response)
        return self.app(environ, start_response)

    def answer(self, status: int, part: str = "", *, times: int = 1_000_000, body: Any = None, **headers: str) -> None:
        """From now on requests whose path holds `part` get this instead."""

        def made(request: Request) -> Response | None:
            if part not in request.full_path:
                return None
            return say(body if body is not None else {"message": "no"}, status, **headers)

        self.rules.append((made, [times]))

    def clear(self) -> None:
        self.rules.clear()


class Server:
    """`url` is where it listens; to be closed."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self.gate = Gate(app)
        self._server = make_server("127.0.0.1", 0, self.gate, threaded=True, request_handler=_Quiet)
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.02), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()


def say(value: Any, status: int = 200, **headers: str) -> Response:
    body = value if isinstance(value, (bytes, str)) else json.dumps(value, ensure_ascii=False)
    kind = "application/json" if not isinstance(value, (bytes, str)) else "text/html; charset=utf-8"
    found = Response(body, status=status, content_type=headers.pop("Content_Type", kind))
    for name, content in headers.items():
        found.headers[name.replace("_", "-")] = content
    return found


def application(route: Callable[[Request], Response]) -> Callable[..., Iterable[bytes]]:
    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        return route(Request(environ))(environ, start_response)

    return app


@dataclass
class Doc:
    """One document of a stand-in. `revision` goes up with every change of its text."""

    key: str
    title: str
    text: str
    revision: int = 1

    @property
    def changed(self) -> str:
        return f"2026-03-01T10:{self.revision // 60:02d}:{self.revision % 60:02d}.000Z"

    @property
    def seconds(self) -> str:
        return str(1_772_359_200 + self.revision)


class Library:
    """The documents a stand-in serves, and what may be done to them."""

    secret = "s3cr3t-Token-Value-0001"

    def __init__(self) -> None:
        self.docs: dict[str, Doc] = {}

    def write(self, key: str, text: str) -> None:
        doc = self.docs.get(key)
        self.docs[key] = Doc(key, doc.title if doc else f"{key.title()} page", text, doc.revision + 1 if doc else 1)

    def retitle(self, key: str, title: str) -> None:
        self.docs[key].title = title
        self.docs[key].revision += 1

    def remove(self, key: str) -> None:
        del self.docs[key]
