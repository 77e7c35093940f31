"""A web page as what a reader reads of it: its article as Markdown, without menus, banners and footers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from apps.common.http import Fetched
from apps.common.text import clean_line, display_name
from apps.sources.plugins.protocol import Content, SourceError
from apps.sources.plugins.support import READABLE, decoded, has_extension, html_file, markdown_file, taken

PAGE_LIMIT = 10 << 20
FILE_LIMIT = 100 << 20
ARTICLE_LIMIT = 1_500_000  # a longer page is left to the parser, which works in a process with limits
ACCEPT = "text/html, application/xhtml+xml, application/pdf;q=0.9, text/plain;q=0.8, */*;q=0.5"
HTML = ("text/html", "application/xhtml+xml")
FILES = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/epub+zip": "epub",
    "text/csv": "csv",
}
_CLAIM = re.compile(rb"""<meta[^>]{0,300}charset\s*=\s*["']?\s*([\w:.-]{1,40})""", re.I)


def readable_page(web: Any, url: str, *, title: str = "", max_bytes: int = PAGE_LIMIT) -> Content | None:
    """What is at an address, as a document; None when there is nothing in it. Raises: SourceError."""
    answer = web.request("GET", url, headers={"Accept": ACCEPT}, max_bytes=max_bytes)
    return document_of(answer, title)


def kind_of(answer: Fetched) -> str:
    """ "html", the extension of a file the portal reads, or "" for everything else; the bytes have the last word."""
    with answer.path.open("rb") as stream:
        head = stream.read(2048)
    if head.startswith(b"%PDF-"):
        return "pdf"
    name = urlsplit(answer.url).path.rpartition("/")[2]
    by_name = name.rpartition(".")[2].lower() if has_extension(name, READABLE) else ""
    if answer.media_type in FILES:
        kind = FILES[answer.media_type]
        return by_name if kind == "txt" and by_name in ("md", "markdown", "csv", "rst", "json") else kind
    if answer.media_type in HTML or not answer.media_type:
        start = head.lstrip(b"\xef\xbb\xbf\x00 \t\r\n").lower()
        looks = start.startswith((b"<!doctype html", b"<html", b"<")) or b"<html" in head.lower() or b"<body" in head.lower()
        binary = head.count(b"\0") > len(head) // 3 and head[:2] not in (b"\xff\xfe", b"\xfe\xff")
        return "html" if looks or (head.strip() and not binary and answer.media_type and b"\0" not in head[:64]) else ""
    if answer.media_type == "application/octet-stream":
        return by_name if by_name not in ("html", "htm") else ""
    return ""


def document_of(answer: Fetched, title: str = "") -> Content | None:
    """An answer as a document; the answer is used up. Raises: SourceError(bad_answer): neither a page nor a file the portal reads."""
    kind = kind_of(answer)
    if not kind:
        empty = not answer.path.stat().st_size
        answer.close()
        if empty:
            return None
        raise SourceError("bad_answer", f"neither a page nor a readable file: {answer.media_type[:60] or 'unknown type'}")
    if kind != "html":
        name = display_name(unquote(urlsplit(answer.url).path.rpartition("/")[2]), fallback=f"document.{kind}")
        name = name if name.lower().endswith("." + kind) or has_extension(name, READABLE) else f"{name}.{kind}"
        return taken(answer, name, url=answer.url, title=title)
    with answer:
        data = answer.read()
    charset = re.search(r"charset\s*=\s*\"?([\w:.-]{1,40})", answer.headers.get("content-type", ""), re.I)
    return page_document(page_text(data, charset.group(1) if charset else ""), url=answer.url, title=title)


def page_text(data: bytes, header: str = "") -> str:
    """The text of a page; `header` is the charset of its Content-Type."""
    claim = _CLAIM.search(data[:4096])
    return decoded(data, header, claim.group(1).decode() if claim else "")


def page_document(markup: str, *, url: str = "", title: str = "") -> Content | None:
    """A page as Markdown where an article can be made out, else as it is."""
    own = clean_line(re.sub(r"<[^>]+>", "", title)) or title_of(markup)
    article = _article(markup, url) if len(markup) <= ARTICLE_LIMIT else ""
    if article:
        return markdown_file(article, own, url=url)
    page = html_file(markup, own, url=url)
    return replace(page, title=own) if page else None


def title_of(markup: str) -> str:
    import html

    found = re.search(r"<title[^>]*>([^<]{1,1000})", markup[:200_000], re.I)
    return clean_line(html.unescape(found.group(1)))[:300] if found else ""


def _article(markup: str, url: str) -> str:
    import trafilatura

    text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", "", markup)
    try:
        found = trafilatura.extract(
            text, url=url or None, output_format="markdown", include_links=True, include_tables=True, include_formatting=True,
            include_comments=False, favor_recall=True,
        )  # fmt: skip
    except (ValueError, RecursionError, AttributeError, TypeError, AssertionError):  # what it raises on pages that are hardly pages
        return ""
    return found or ""
