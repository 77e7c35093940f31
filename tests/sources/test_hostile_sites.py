"""Sites and stores that mean harm or are merely broken: each ends with a reason, in time, and changes nothing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from werkzeug import Request, Response

import apps.sources.plugins.connectors  # noqa: F401 - registers them
from apps.sources import words
from apps.sources.plugins.protocol import connectors
from tests.support.hosted.hostile import BOMB, Route, link_of, read, to
from tests.support.hosted.serving import Server, say

pytestmark = pytest.mark.usefixtures("nothing_is_left_behind")


URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%s</urlset>'


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
