"""A scripted server on the loopback that speaks OpenAI's `/embeddings` and `/chat/completions`, or misbehaves as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIMENSION = 8


def letters(text: str) -> list[float]:
    """A vector that depends on the text and is not of length 1."""
    return [3.0 * sum(1 for c in text if ord(c) % DIMENSION == at) + 0.5 for at in range(DIMENSION)]


class Endpoint:
    """An OpenAI-compatible server on the loopback; `behave` may replace the answer, given the request and the handler."""

    def __init__(self) -> None:
        self.requests: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.behave: Callable[[dict, BaseHTTPRequestHandler], object] | None = None
        self.says: str | Callable[[dict], str] = "A text."  # what a chat model answers
        self.released = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append({**asked, "path": self.path})
                endpoint.headers.append({k.lower(): v for k, v in self.headers.items()})
                rows = [{"index": i, "object": "embedding", "embedding": letters(t)} for i, t in enumerate(asked.get("input", []))]
                body: object = {"object": "list", "model": asked["model"], "data": rows}
                if "messages" in asked:
                    said = endpoint.says(asked) if callable(endpoint.says) else endpoint.says
                    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]}
                if endpoint.behave is not None:
                    body = endpoint.behave(body, self)  # type: ignore[arg-type]
                if body is not None:
                    answer(self, 200, body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


def answer(handler: BaseHTTPRequestHandler, status: int, body: object, headers: dict[str, str] | None = None) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(raw)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(raw)


@contextmanager
def serving() -> Iterator[Endpoint]:
    made = Endpoint()
    try:
        yield made
    finally:
        made.close()
