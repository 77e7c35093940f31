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
from apps.common.storage import temp_folder
from apps.sources import words
from apps.sources.plugins.protocol import Link, SourceError, connectors
from apps.sources.web import Web
from tests.support.hosted.serving import Server, application, say

RSS = '<rss version="2.0"><channel><title>F</title>%s</channel></rss>'
ITEM = "<item><guid>%d</guid><title>Entry %d</title><description>Text %d</description></item>"
Route = Callable[[Request], Response]
URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%s</urlset>'


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


def to(address: str) -> Route:
    return lambda _request: say("", 302, Location=address)


BOMB = "<!DOCTYPE rss [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{('&' + chr(97 + n) + ';') * 10}'>" for n in range(9)
) + "]>" + RSS % "<item><title>&j;</title></item>"  # fmt: skip
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


@pytest.fixture
def serve(settings: Any) -> Iterator[Callable[[Route], Server]]:
    settings.FETCH_ALLOW = ["127.0.0.1/32"]
    made: list[Server] = []

    def start(route: Route) -> Server:
        made.append(Server(application(route)))
        return made[-1]

    yield start
    for server in made:
        server.close()


def link_of(kind: str, settings: dict[str, Any], timeout_s: float = 10.0) -> Link:
    return Link({}, connectors.get(kind).clean(settings), (), Web(sleep=lambda _s: None, timeout_s=timeout_s))


def read(kind: str, settings: dict[str, Any], timeout_s: float = 10.0) -> tuple[list[Any], list[SourceError], bool]:
    """(items, faults, whole) of one listing; a listing that raises is a fault of its own."""
    link = link_of(kind, settings, timeout_s)
    items: list[Any] = []
    faults: list[SourceError] = []
    whole = False
    with link.web:
        try:
            for page in connectors.get(kind).listing(link, None):
                items += page.items
                faults += page.faults
                whole = page.whole
        except SourceError as error:
            faults.append(error)
            whole = False
    return items, faults, whole


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    yield
    assert [path.name for path in temp_folder().iterdir() if path.name.startswith(("kb-fetch-", "kb-source-", "kb-git-"))] == []


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
    with pytest.raises(SourceError, match="web address"):
        connectors.get("git").clean({"url": "file:///etc"})
    with pytest.raises(SourceError, match="web address"):
        connectors.get("git").clean({"url": "ssh://git@example.com/x"})


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


# -- sites


def site(pages: dict[str, Any]) -> Route:
    def route(request: Request) -> Response:
        found = pages.get(request.path, pages.get("*"))
        if callable(found):
            return found(request)
        return (
            say("none", 404)
            if found is None
            else say(found, Content_Type="application/xml" if request.path.endswith(".xml") else "text/html")
        )

    return route


def page(*links: str, text: str = "Some text", head: str = "") -> str:
    return (
        f"<html><head><title>T</title>{head}</head><body><p>{text}</p>{''.join(f'<a href={link!r}>x</a>' for link in links)}</body></html>"
    )


def calendar(request: Request) -> Response:
    number = int(request.args.get("day", 0))
    return say(page(f"/calendar?day={number + 1}", f"/calendar?day={number + 2}", text=f"Day {number}"))


def rooms(request: Request) -> Response:
    number = int(request.path.strip("/").removeprefix("room-") or 0) if request.path != "/" else 0
    return say(page(f"/room-{number + 1}", text=f"Room {number}"))


def index(request: Request) -> Response:
    number = int(request.path.removeprefix("/sitemap").removesuffix(".xml") or 0)
    inner = "".join(f"<sitemap><loc>/sitemap{number * 60 + n}.xml</loc></sitemap>" for n in range(1, 61))
    return say(f"<sitemapindex>{inner}</sitemapindex>", Content_Type="application/xml")


SITES: dict[str, tuple[dict[str, Any], dict[str, Any], str, int]] = {
    "pages without end": ({"/sitemap.xml": None, "*": rooms}, {"max_pages": 30, "max_depth": 50}, "too_many", 30),
    "robots.txt forbids everything": ({"/robots.txt": "User-agent: *\nDisallow: /", "/": page()}, {}, "robots", 0),
    "robots.txt cannot be read": ({"/robots.txt": lambda _r: say("down", 503), "/": page()}, {}, "unavailable", 0),
    "a sitemap index without end": ({"*": index}, {"mode": "sitemap"}, "too_many", 0),
    "a sitemap of entities": ({"/sitemap.xml": BOMB}, {"mode": "sitemap"}, "bad_answer", 0),
    "a sitemap that swells": (
        {"/sitemap.xml": lambda _r: Response(gzip.compress(b" " * 60_000_000), content_type="application/xml")}, {"mode": "sitemap"}, "too_large", 0
    ),
    "a sitemap that is no sitemap": ({"/sitemap.xml": "<rss/>"}, {"mode": "sitemap"}, "bad_answer", 0),
    "a start that asks for a password": ({"/": lambda _r: say("no", 401)}, {}, "auth", 0),
    "a start that leads inside": ({"/": to("http://192.168.0.1/")}, {}, "refused_address", 0),
    "a page that leads inside": ({"/": page("/in"), "/in": to("http://169.254.169.254/")}, {}, "refused_address", 1),
    "a page that is down": ({"/": page("/down"), "/down": lambda _r: say("x", 500)}, {}, "unavailable", 1),
    "a site that dies": ({"/": page(*(f"/p{n}" for n in range(30))), "*": lambda r: say("x", 404 if r.path[1] in "rs" else 503)}, {}, "unavailable", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", SITES)
def test_a_hostile_site_ends_with_a_reason(name: str, serve: Callable[[Route], Server]) -> None:
    pages, settings, code, count = SITES[name]
    server = serve(site({"/robots.txt": lambda _r: say("none", 404), **({} if "*" in pages else {"/sitemap.xml": None}), **pages}))

    items, faults, whole = read("web_crawler", {"start_urls": server.url + "/", **settings})

    assert {fault.code for fault in faults} == {code}
    assert (whole, len(items)) == (False, count)
    assert code in words.WORDS


def test_a_calendar_and_circles_come_to_an_end(serve: Callable[[Route], Server]) -> None:
    pages = {
        "/": page("/calendar?day=1", "/a", "/x/y/", "mailto:a@b", "javascript:x()", "//other.test/", "/film.mp4"),
        "/calendar": calendar,
        "/a": page("/b", "/a?utm_source=x", "/a#part"),
        "/b": page("/a", "/"),
        "/x/y/": page("x/y/"),
        "*": lambda request: say(page("x/y/")) if request.path.startswith("/x/y") else say("none", 404),
    }
    server = serve(site(pages))

    items, faults, whole = read("web_crawler", {"start_urls": server.url + "/", "max_depth": 50})

    assert (faults, whole) == ([], True)
    days = [item for item in items if "calendar" in item.external_id]
    assert len(days) == 50
    assert {item.external_id.removeprefix(server.url) for item in items if item not in days} == {
        "/", "/a", "/b", "/x/y/", "/x/y/x/y/", "/x/y/x/y/x/y/"
    }  # fmt: skip


def test_what_is_no_page_is_left_out(serve: Callable[[Route], Server]) -> None:
    pages = {
        "/": page("/binary", "/empty", "/hidden", "/copy", "/doc", "/nul", "/secret/x"),
        "/robots.txt": "User-agent: *\nDisallow: /secret/\nUser-agent: kbportal\nAllow: /s\nDisallow: /*/x$\nCrawl-delay: 2",
        "/binary": lambda _r: say(b"\x7fELF\0\0\0" * 100),
        "/nul": lambda _r: say(b"\0" * 1000),
        "/empty": "",
        "/hidden": page(head='<meta name="robots" content="noindex">'),
        "/copy": page(head='<link rel="canonical" href="/original">', text="The original"),
        "/original": page(text="The original"),
        "/doc": lambda _r: say(b"%PDF-1.4 not really", Content_Type="text/html"),
        "/secret/x": page(text="secret"),
    }
    server = serve(site(pages))

    items, faults, whole = read("web_crawler", {"start_urls": server.url + "/"})

    assert {item.external_id.removeprefix(server.url) for item in items} == {"/", "/original", "/doc"}
    assert (faults, whole) == ([], True)


@pytest.mark.parametrize(
    ("header", "meta", "codec"),
    [("gbk", "", "gbk"), ("", "gbk", "gbk"), ("iso-8859-1", "gbk", "gbk"), ("", "", "gbk"), ("gbk", "big5", "utf-8")],
    ids=["header", "meta", "conflicting", "neither", "both lie"],
)
def test_a_chinese_page_is_read_whatever_it_claims(header: str, meta: str, codec: str, serve: Callable[[Route], Server]) -> None:
    claim = f'<meta charset="{meta}">' if meta else ""
    body = f"<html><head>{claim}<title>安全生产</title></head><body><main><p>传感器每年校准一次，记录保存五年。</p></main></body></html>"
    kind = "text/html" + (f"; charset={header}" if header else "")
    server = serve(site({"/": lambda _r: say(body.encode(codec), Content_Type=kind)}))
    link = link_of("web_crawler", {"start_urls": server.url + "/"})
    connector = connectors.get("web_crawler")
    with link.web:
        ((item, content),) = [(item, connector.fetch(link, item)) for page_ in connector.listing(link, None) for item in page_.items]
        assert content is not None
        text = content.path.read_text(encoding="utf-8")
        content.path.unlink()

    assert (item.title, content.title) == ("安全生产", "安全生产")
    assert "传感器每年校准一次，记录保存五年。" in text


def test_a_sitemap_says_which_pages_there_are_and_when_they_changed(serve: Callable[[Route], Server]) -> None:
    inner = URLSET % "<url><loc>/docs/a</loc><lastmod>2026-03-01</lastmod></url><url><loc>/docs/b</loc></url><url><loc>/blog/c</loc></url>"
    pages = {
        "/robots.txt": "Sitemap: /deep.xml",
        "/deep.xml": "<sitemapindex><sitemap><loc>/one.xml.gz</loc></sitemap></sitemapindex>",
        "/one.xml.gz": lambda _r: Response(gzip.compress(inner.encode()), content_type="application/x-gzip"),
        "/docs/a": page(),
        "/docs/b": page("/docs/d"),
        "/docs/d": page(),
    }
    server = serve(site(pages))

    items, faults, whole = read("web_crawler", {"start_urls": server.url, "path_prefix": "/docs/"})

    assert [item.external_id.removeprefix(server.url) for item in items] == ["/docs/a", "/docs/b"]
    assert (items[0].fingerprint, faults, whole) == ("2026-03-01", [], True)
    asked = [path for _method, path, _headers in server.gate.seen]
    assert "/docs/a" not in asked  # what says when it changed is only loaded when it did


# -- stores


def multistatus(*hrefs: str) -> Route:
    entry = "<d:response><d:href>%s</d:href><d:propstat><d:prop><d:resourcetype>%s</d:resourcetype><d:getetag>1</d:getetag></d:prop></d:propstat></d:response>"
    made = "".join(entry % (href, "<d:collection/>" if href.endswith("/") else "") for href in hrefs)
    return lambda _request: say(f'<d:multistatus xmlns:d="DAV:">{made}</d:multistatus>', 207, Content_Type="application/xml")


def test_a_webdav_server_cannot_name_what_is_not_below_the_folder(serve: Callable[[Route], Server]) -> None:
    hrefs = (
        "/dav/", "/dav/fine.md", "/dav/../../etc/passwd.md", "/dav/%2e%2e/up.md", "/other/x.md", "http://evil.test/dav/x.md", "/dav/a%0ab.md",
        "/dav/a%00.md", "/dav/deep/far.md", "/dav/..%2f..%2fx.md", "/dav/",
    )  # fmt: skip
    server = serve(multistatus(*hrefs))

    items, faults, whole = read("webdav", {"url": server.url + "/dav/"})

    assert ([item.external_id for item in items], faults, whole) == (["fine.md"], [], True)


def test_webdav_folders_without_end(serve: Callable[[Route], Server]) -> None:
    server = serve(lambda request: multistatus(request.path, request.path + "again/")(request))

    items, faults, whole = read("webdav", {"url": server.url + "/dav/"})

    assert (items, faults, whole) == ([], [], True)
    assert len(server.gate.seen) <= 42


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (
            "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken></ListBucketResult>",
            "bad_answer",
        ),
        ("<html/>", "bad_answer"),
        ("", "bad_answer"),
        (BOMB, "bad_answer"),
    ],
    ids=["pages without end", "a page", "empty", "entities"],
)
def test_a_hostile_bucket_ends_with_a_reason(body: str, code: str, serve: Callable[[Route], Server]) -> None:
    server = serve(lambda _request: say(body, Content_Type="application/xml"))

    items, faults, whole = read("s3", {"endpoint_url": server.url, "bucket": "docs"})

    assert ([fault.code for fault in faults], items, whole) == ([code], [], False)
