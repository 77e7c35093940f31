"""Fetching from a real server on the loopback: what is refused, capped and cut off."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from apps.common import http
from apps.common.errors import InvalidInput, TransientError
from apps.common.http import addresses

GBK = "<html><head><meta charset=gbk><title>安全生产</title></head><body>传感器</body></html>".encode("gbk")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: Any) -> None: ...

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Host")))  # type: ignore[attr-defined]
        path = self.path.split("?")[0]
        route = getattr(self, "on_" + path.strip("/").replace("/", "_"), None)
        if route is None:
            self.answer(b"none", 404)
        else:
            route()

    def on_page(self) -> None:
        self.answer(GBK, Content_Type="text/html; charset=iso-8859-1")

    def on_hop(self) -> None:
        self.answer(b"", 302, Location="/page?x=1")

    def on_private(self) -> None:
        self.answer(b"", 302, Location="http://169.254.169.254/latest/meta-data")

    def on_file(self) -> None:
        self.answer(b"", 302, Location="file:///etc/passwd")

    def on_loop(self) -> None:
        self.answer(b"", 301, Location="/loop")

    def on_far(self) -> None:
        number = int(self.path.partition("?")[2] or 0)
        self.answer(b"", 307, Location=f"/far?{number + 1}")

    def on_large(self) -> None:
        self.answer(b"x" * 5000)

    def on_unsized(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for _ in range(100):
                self.wfile.write(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass

    def on_chunked(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")

    def on_gzip(self) -> None:
        self.answer(gzip.compress(GBK), Content_Encoding="gzip")

    def on_deflate(self) -> None:
        self.answer(zlib.compress(GBK), Content_Encoding="deflate")

    def on_bomb(self) -> None:
        self.answer(gzip.compress(b"\0" * 50_000_000), Content_Encoding="gzip")

    def on_brotli(self) -> None:
        self.answer(b"??", Content_Encoding="br")

    def on_torn(self) -> None:
        self.answer(gzip.compress(GBK)[:-9], Content_Encoding="gzip")

    def on_short(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"only this")
        self.close_connection = True

    def on_silent(self) -> None:
        self.server.released.wait(20)  # type: ignore[attr-defined]

    def on_drip(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            while not self.server.released.wait(0.05):  # type: ignore[attr-defined]
                self.wfile.write(b".")
                self.wfile.flush()
        except OSError:
            pass

    def on_dripheaders(self) -> None:
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.server.released.wait(0.05):  # type: ignore[attr-defined]
                self.wfile.write(b"X-A: b\r\n"[:1])
                self.wfile.flush()
        except OSError:
            pass


@pytest.fixture
def server() -> Iterator[Any]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    made.seen = []  # type: ignore[attr-defined]
    made.released = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.released.set()  # type: ignore[attr-defined]
    made.shutdown()
    made.server_close()


@pytest.fixture
def get(server: Any, settings: Any) -> Callable[..., bytes]:
    settings.FETCH_ALLOW = ["127.0.0.1/32"]

    def run(path: str, **options: Any) -> bytes:
        with http.fetch(f"http://127.0.0.1:{server.server_port}{path}", **{"max_bytes": 1_000_000, "timeout_s": 5, **options}) as answer:
            return answer.path.read_bytes()

    return run


def test_bytes_come_through_untouched(get: Any, server: Any) -> None:
    with http.fetch(f"http://127.0.0.1:{server.server_port}/page", max_bytes=10_000, timeout_s=5) as answer:
        assert (answer.status, answer.media_type, answer.headers["content-type"]) == (200, "text/html", "text/html; charset=iso-8859-1")
        assert answer.path.read_bytes() == GBK
        path = answer.path
    assert not path.exists()
    assert get("/hop") == GBK
    assert server.seen[-1] == ("/page?x=1", f"127.0.0.1:{server.server_port}")
    assert get("/chunked") == b"hello world"
    assert get("/gzip") == GBK == get("/deflate")
    assert get("/missing") == b"none", "what a status means is the caller's business"


def test_progress_is_told_and_may_stop(get: Any) -> None:
    seen: list[int] = []
    get("/large", on_chunk=seen.append)
    assert seen[-1] == 5000

    class Stop(Exception): ...

    def stop(_done: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        get("/large", on_chunk=stop)


@pytest.mark.parametrize(
    ("path", "code", "options"),
    [
        ("/private", "refused_address", {}),
        ("/file", "bad_url", {}),
        ("/loop", "redirect_loop", {}),
        ("/far", "redirect_loop", {}),
        ("/large", "too_large", {"max_bytes": 4999}),
        ("/unsized", "too_large", {"max_bytes": 4999}),
        ("/bomb", "too_large", {}),
        ("/brotli", "bad_encoding", {}),
    ],
)
def test_refusals(get: Any, path: str, code: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        get(path, **options)
    assert caught.value.code == code


@pytest.mark.parametrize("path", ["/torn", "/short"])
def test_a_body_that_ends_early_is_no_body(get: Any, path: str) -> None:
    with pytest.raises(TransientError) as caught:
        get(path)
    assert caught.value.code == "fetch_failed"


@pytest.mark.parametrize("path", ["/silent", "/drip", "/dripheaders"])
def test_slow_servers_are_cut_off_at_the_deadline(get: Any, path: str) -> None:
    start = time.monotonic()
    with pytest.raises(TransientError) as caught:
        get(path, timeout_s=0.6)
    assert caught.value.code == "timeout"
    assert time.monotonic() - start < 3


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    from django.test import override_settings

    with override_settings(FETCH_ALLOW=["127.0.0.0/8"]), pytest.raises(TransientError) as caught:
        http.fetch(f"http://127.0.0.1:{port}/", max_bytes=10, timeout_s=2)
    assert caught.value.code == "fetch_failed"


def test_without_an_allowance_the_loopback_is_refused(server: Any, settings: Any) -> None:
    settings.FETCH_ALLOW = []
    with pytest.raises(InvalidInput) as caught:
        http.fetch(f"http://127.0.0.1:{server.server_port}/page", max_bytes=10_000, timeout_s=5)
    assert caught.value.code == "refused_address" and server.seen == []


def test_a_name_that_changes_its_mind_gains_nothing(server: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the address that was checked: the name is looked up once."""
    settings.FETCH_ALLOW = ["127.0.0.1/32"]
    looked_up: list[str] = []

    def resolve(host: str, port: int, **_kwargs: Any) -> Any:
        looked_up.append(host)
        address = "127.0.0.1" if len(looked_up) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with http.fetch(f"http://rebind.example:{server.server_port}/page", max_bytes=10_000, timeout_s=5) as answer:
        assert answer.path.read_bytes() == GBK
    assert looked_up == ["rebind.example"]
    assert server.seen == [("/page", f"rebind.example:{server.server_port}")], "the Host header keeps the name"


def test_one_private_address_among_several_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.FETCH_ALLOW = []
    places = [("93.184.216.34", 80), ("10.0.0.7", 80)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places])
    with pytest.raises(InvalidInput) as caught:
        http.check_url("http://mixed.example/")
    assert caught.value.code == "refused_address"


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::", False),
        ("ff02::1", False),
    ],
)
def test_ranges(address: str, allowed: bool, settings: Any) -> None:
    import ipaddress

    settings.FETCH_ALLOW = []
    assert addresses.allowed("x", ipaddress.ip_address(address)) is allowed


def test_addresses_are_normalised(settings: Any) -> None:
    settings.FETCH_ALLOW = ["127.0.0.1"]
    assert (
        http.check_url(" http://127.0.0.1:8080/手册 ".strip() + "?q=安全#part")
        == "http://127.0.0.1:8080/%E6%89%8B%E5%86%8C?q=%E5%AE%89%E5%85%A8"
    )
    assert http.check_url("http://127.0.0.1") == "http://127.0.0.1/"
