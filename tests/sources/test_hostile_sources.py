"""Feeds, sites and stores that mean harm or are merely broken: each ends with a reason, in time, and changes nothing."""

from __future__ import annotations

import gzip
import http.server
import json
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from werkzeug import Request, Response

import apps.sources.plugins.connectors  # noqa: F401 - registers them
from apps.sources import words
from apps.sources.plugins.protocol import Link, SourceError, connectors
from apps.sources.web import Web
from tests.support.hosted.hostile import BOMB, RSS, Route, link_of, read, to
from tests.support.hosted.serving import Server, say

pytestmark = pytest.mark.usefixtures("nothing_is_left_behind")


ITEM = "<item><guid>%d</guid><title>Entry %d</title><description>Text %d</description></item>"


def feed(body: bytes | str, **headers: str) -> Route:
    return lambda _request: say(body, Content_Type="application/rss+xml", **headers)


def stream(blocks: Callable[[], Iterator[bytes]]) -> Route:
    return lambda _request: Response(blocks(), content_type="application/rss+xml")


def endless() -> Iterator[bytes]:
    yield b"<rss><channel>"
    while True:
        yield b"<item><title>x</title></item>" * 20_000


def drip() -> Iterator[bytes]:
    while True:
        time.sleep(0.05)
        yield b" "


def loop(request: Request) -> Response:
    return say("", 302, Location="/b" if request.path == "/a" else "/a")


def forever(request: Request) -> Response:
    return say("", 307, Location=f"/{int(request.path.strip('/') or 0) + 1}" if request.path.strip("/").isdigit() else "/1")


OUTSIDE = '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + RSS % "<item><title>&x;</title></item>"

FEEDS: dict[str, tuple[Route, str]] = {
    "a redirect in circles": (loop, "redirect_loop"),
    "a redirect without end": (forever, "redirect_loop"),
    "a redirect to the metadata service": (to("http://169.254.169.254/latest/meta-data/"), "refused_address"),
    "a redirect to a private network": (to("http://10.0.0.1/"), "refused_address"),
    "a redirect to a mapped address": (to("http://[::ffff:169.254.169.254]/"), "refused_address"),
    "a redirect to a translated address": (to("http://[64:ff9b::a9fe:a9fe]/"), "refused_address"),
    "a redirect to a file": (to("file:///etc/passwd"), "bad_settings"),
    "a redirect with credentials": (to("http://user:pass@127.0.0.1/"), "bad_settings"),
    "an address written as a number": (to("http://2852039166/"), "refused_address"),
    "a body that swells": (feed(gzip.compress(b" " * 60_000_000), Content_Encoding="gzip"), "too_large"),
    "a body that swells, deflated": (feed(zlib.compress(b" " * 60_000_000), Content_Encoding="deflate"), "too_large"),
    "an unknown packing": (feed(b"??", Content_Encoding="br"), "bad_answer"),
    "a torn gzip": (feed(gzip.compress(b"<rss/>" * 1000)[:-9], Content_Encoding="gzip"), "unavailable"),
    "a body without end": (stream(endless), "too_large"),
    "a body in drips": (stream(drip), "timeout"),
    "a length that promises too much": (
        lambda _r: Response(iter([b"x"]), content_type="text/xml", headers={"Content-Length": str(1 << 40)}),
        "too_large",
    ),
    "entities that multiply": (feed(BOMB), "bad_answer"),
    "entities that multiply, in UTF-16": (feed(BOMB.encode("utf-16")), "bad_answer"),
    "an entity from outside": (feed(OUTSIDE), "bad_answer"),
    "an empty answer": (feed(b""), "bad_answer"),
    "NUL bytes": (feed(b"\0" * 5000), "bad_answer"),
    "a page instead of a feed": (lambda _r: say("<html><body>Sign in</body></html>"), "bad_answer"),
    "JSON of another kind": (feed(b'{"items": "none"}'), "bad_answer"),
    "JSON nested too deep": (feed(b'{"items": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"), "bad_answer"),
    "a hundred thousand entries": (feed(RSS % "".join(ITEM % (n, n, n) for n in range(100_000))), "too_many"),
    "a server error": (lambda _r: say("down", 500), "unavailable"),
    "a teapot": (lambda _r: say("short and stout", 418), "bad_answer"),
    "gone for good": (lambda _r: say("gone", 410), "not_found"),
}


@pytest.mark.parametrize("name", FEEDS)
def test_a_hostile_feed_ends_with_a_reason(name: str, serve: Callable[[Route], Server]) -> None:
    route, code = FEEDS[name]
    server = serve(route)

    items, faults, whole = read("rss", {"feed_urls": server.url + "/a"}, timeout_s=1.0 if code == "timeout" else 10.0)

    assert ([fault.code for fault in faults], items, whole) == ([code], [], False)
    assert code in words.WORDS


@pytest.mark.parametrize(
    "address",
    ["http://169.254.169.254/feed", "http://10.1.2.3/", "http://[fd00::1]/", "http://[::1]:8/", "http://localhost:8/", "http://0.0.0.0/",
     "http://0x7f.1/", "http://[::ffff:10.0.0.1]/", "http://100.64.0.1/"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["rss", "web_crawler", "webdav", "s3", "git"])
def test_a_private_address_is_refused_by_every_kind(kind: str, address: str, settings: Any) -> None:
    settings.FETCH_ALLOW = []
    given = {
        "rss": {"feed_urls": address},
        "web_crawler": {"start_urls": address},
        "webdav": {"url": address},
        "git": {"url": address},
    }.get(kind, {"endpoint_url": address, "bucket": "docs"})

    items, faults, whole = read(kind, given)

    assert ([fault.code for fault in faults], items, whole) == (["refused_address"], [], False)


def test_git_over_its_own_protocol_is_refused_private_addresses_too(settings: Any) -> None:
    settings.FETCH_ALLOW = []
    assert [fault.code for fault in read("git", {"url": "git://127.0.0.1/x"})[1]] == ["refused_address"]
    with pytest.raises(SourceError) as caught:
        connectors.get("git").clean({"url": "file:///etc"})
    assert (caught.value.code, caught.value.field) == ("bad_settings", "url")
    with pytest.raises(SourceError) as caught:
        connectors.get("git").clean({"url": "ssh://git@example.com/x"})
    assert (caught.value.code, caught.value.field) == ("bad_settings", "url")


def test_a_name_that_changes_its_mind_gains_nothing(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """The check sees a public address; were the name asked again for the connection, it would be the loopback."""
    settings.FETCH_ALLOW = []
    asked: list[str] = []
    reached: list[Any] = []

    def resolve(host: str, port: int, *_args: Any, **_more: Any) -> list[Any]:
        asked.append(host)
        address = "93.184.216.34" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    def connect(_self: socket.socket, place: Any) -> None:
        reached.append(place[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket.socket, "connect", connect)
    faults = read("rss", {"feed_urls": "http://rebind.test/feed"})[1]

    assert reached == ["93.184.216.34"]
    assert [fault.code for fault in faults] == ["refused_address"]  # the next try asks again, and is refused


def test_a_certificate_nobody_vouches_for(tmp_path: Path, settings: Any) -> None:
    settings.FETCH_ALLOW = ["127.0.0.1/32"]
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = tmp_path / "pem"
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.handle_error = lambda *_args: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        faults = read("rss", {"feed_urls": f"https://127.0.0.1:{server.server_port}/feed"})[1]
    finally:
        server.shutdown()
        server.server_close()
    assert [(fault.code, fault.passing) for fault in faults] == [("tls", False)]


# -- feeds that are odd and still to be read


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'<?xml version="1.0" encoding="gb2312"?>' + (RSS % "<item><guid>1</guid><title>安全生产</title></item>").encode("gbk"), {}),
        (b'<?xml version="1.0" encoding="utf-8"?>' + (RSS % "<item><guid>1</guid><title>安全生产</title></item>").encode("gbk"), {}),
        (
            (RSS % "<item><guid>1</guid><title>安全生产</title></item>").encode("gbk"),
            {"Content_Type": "application/rss+xml; charset=iso-8859-1"},
        ),
        ((RSS % "<item><guid>1</guid><title>安全生产</title></item>").encode(), {"Content_Type": "application/rss+xml; charset=gbk"}),
        ((RSS % "<item><guid>1</guid><title>安全生产</title></item>").encode("utf-16"), {}),
        ((RSS % "<item><guid>1</guid><title>安全生产</title></item>").encode("utf-8-sig"), {"Content_Type": "text/plain"}),
    ],
    ids=["declared", "declared wrongly", "in the header wrongly", "in the header wrongly, valid UTF-8", "UTF-16", "with a mark"],
)
def test_a_feed_in_any_encoding(body: bytes, headers: dict[str, str], serve: Callable[[Route], Server]) -> None:
    server = serve(lambda _request: say(body, **{"Content_Type": "application/rss+xml", **headers}))

    items, faults, _whole = read("rss", {"feed_urls": server.url})

    assert ([item.title for item in items], faults) == (["安全生产"], [])


def test_a_broken_feed_gives_what_can_be_made_out(serve: Callable[[Route], Server]) -> None:
    body = (
        "<rss><channel><title>F & G</title>"
        "<item><guid>1</guid><title>First &amp; best</title><pubDate>yesterday at noon</pubDate><description>a</description></item>"
        "<item><guid>1</guid><title>The same again</title></item>"
        "<item><title>No guid\x0b</title><link>/relative</link><pubDate>Sun, 31 Feb 2026 10:00:00 GMT</pubDate></item>"
        "<item><description>nothing to go by</description></item>"
        "<item><guid>../../etc/passwd</guid><title>../../etc/passwd</title><pubDate>9999-99-99</pubDate></item>"
        "<item><guid>7</guid><title>never closed"
    )
    server = serve(feed(body))

    items, faults, _whole = read("rss", {"feed_urls": server.url + "/feed"})

    assert faults == []
    assert [item.title for item in items] == ["First & best", "No guid", "../../etc/passwd", "never closed"]
    assert [item.modified_at for item in items] == [None, None, None, None]
    assert items[1].url == server.url + "/relative"
    assert len({item.external_id for item in items}) == 4


def test_atom_and_json_feeds_are_read_too(serve: Callable[[Route], Server]) -> None:
    atom = (
        '<feed xmlns="http://www.w3.org/2005/Atom"><title>A</title><entry><id>urn:1</id><title type="html">&lt;b&gt;Pump&lt;/b&gt;</title>'
        '<link href="/p"/><updated>2026-03-01T10:00:00+08:00</updated>'
        '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Every <b>five</b> years</p></div></content></entry></feed>'
    )
    made = json.dumps(
        {"version": "https://jsonfeed.org/version/1.1", "items": [{"id": 2, "content_text": "a < b", "date_published": "2026-03-01"}]}
    )
    server = serve(lambda request: say(made if "json" in request.path else atom, Content_Type="application/xml"))
    link = link_of("rss", {"feed_urls": f"{server.url}/atom,{server.url}/json"})
    connector = connectors.get("rss")
    with link.web:
        found = [(item, connector.fetch(link, item)) for page in connector.listing(link, None) for item in page.items]
    texts = [content.path.read_text(encoding="utf-8") for _item, content in found if content]
    for _item, content in found:
        assert content is not None
        content.path.unlink()

    assert [item.title for item, _content in found] == ["Pump", "2"]
    assert found[0][0].modified_at == datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
    assert "Every <b>five</b> years" in texts[0]
    assert "a &lt; b" in texts[1]


def test_headers_for_a_feed_stay_with_its_host(serve: Callable[[Route], Server]) -> None:
    page = serve(lambda _request: say("<html><head><title>T</title></head><body><article><p>The whole story.</p></article></body></html>"))
    entry = f"<item><guid>1</guid><title>T</title><description>teaser</description><link>{page.url}/story</link></item>"
    target = serve(feed(RSS % entry))
    first = serve(to(target.url + "/feed"))
    connector = connectors.get("rss")
    given = {"auth_headers": "Authorization: Bearer abc-secret-1\nX-Key: abc-secret-2"}
    link = Link(given, connector.clean({"feed_urls": first.url + "/feed"}), (), Web(secrets=given.values()))
    with link.web:
        (item,) = [item for page_ in connector.listing(link, None) for item in page_.items]
        content = connector.fetch(link, item)

    assert content is not None
    assert "The whole story." in content.path.read_text(encoding="utf-8")
    content.path.unlink()
    assert first.gate.seen[0][2]["X-Key"] == "abc-secret-2"
    for server in (target, page):
        assert [headers for _method, _path, headers in server.gate.seen if "X-Key" in headers or "Authorization" in headers] == []
