"""Feeds as people publish them: RSS 0.9 to 2.0, RDF, Atom and JSON Feed, in any encoding, with broken dates and repeated ids."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urljoin

from apps.common.text import clean_line
from apps.sources.plugins.protocol import SourceError
from apps.sources.plugins.support import decoded, local_name, mark, moment, xml_root

MAX_ENTRIES = 5_000
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}encoding\s*=\s*["']([\w:.-]{1,40})""", re.I)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `content`: the whole of it as HTML; `teaser`: where there is only a summary."""

    key: str  # guid, else link, else title
    title: str
    link: str
    content: str
    teaser: str
    published: datetime | None
    author: str

    @property
    def fingerprint(self) -> str:
        return mark(self.title, self.link, self.content, self.teaser, self.published)


@dataclass(frozen=True, slots=True)
class Feed:
    title: str
    entries: tuple[Entry, ...]


def read_feed(data: bytes, url: str, charset: str = "") -> Feed:
    """A feed's title and entries, each key once (the first wins). `charset`: what the header claimed.

    Raises: SourceError(bad_answer) for what is no feed; too_many beyond `MAX_ENTRIES`.
    """
    if not data.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        raise SourceError("bad_answer", "the feed is empty")
    head = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    found = _json_feed(data, url) if head == b"{" else _xml_feed(_as_utf8(data, charset), url)
    entries: dict[str, Entry] = {}
    for entry in found.entries:
        if entry.key:
            entries.setdefault(entry.key, entry)
    return Feed(found.title, tuple(entries.values()))


def _as_utf8(data: bytes, charset: str) -> bytes:
    """The document as UTF-8, without a declaration and without what XML does not allow."""
    declared = _DECLARED.search(data[:512])
    text = decoded(data, charset, declared.group(1).decode() if declared else "")
    text = re.sub(r"\A\ufeff?\s*<\?xml[^>]*\?>", "", text)
    text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "", text)
    return text.encode("utf-8")


def _xml_feed(data: bytes, url: str) -> Feed:
    root = xml_root(data, recover=True)
    kind = local_name(root)
    if kind not in ("rss", "rdf", "feed"):
        raise SourceError("bad_answer", "the address holds no RSS, Atom or JSON feed")
    channel = root if kind == "feed" else next((child for child in root if local_name(child) == "channel"), root)
    nodes = [node for node in root.iter() if local_name(node) in ("item", "entry")]
    if len(nodes) > MAX_ENTRIES:
        raise SourceError("too_many", f"more than {MAX_ENTRIES} entries", params={"limit": MAX_ENTRIES})
    return Feed(_text(channel, "title"), tuple(_entry(node, url) for node in nodes))


def _entry(node: Any, url: str) -> Entry:
    link = _link(node, url)
    title = _text(node, "title")
    content = _markup(node, "encoded") or _markup(node, "content")
    teaser = _markup(node, "description") or _markup(node, "summary")
    key = (
        _text(node, "guid")
        or _text(node, "id")
        or str(node.get("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}about") or "")
        or link
        or title
    )
    when = next(
        filter(None, (moment(_text(node, name)) for name in ("updated", "modified", "pubdate", "published", "date", "issued"))), None
    )
    return Entry(key[:2000], title, link, content, teaser, when, _author(node))


def _children(node: Any, name: str) -> Iterator[Any]:
    return (child for child in node if local_name(child) == name)


def _text(node: Any, name: str) -> str:
    """A child's text in one line; titles often hold escaped markup."""
    for child in _children(node, name):
        if text := clean_line(html.unescape(re.sub(r"<[^>]+>", "", "".join(child.itertext())))):
            return text
    return ""


def _markup(node: Any, name: str) -> str:
    """A child's content as HTML: escaped or CDATA text, or the markup inside (Atom's type "xhtml")."""
    from lxml import etree

    for child in _children(node, name):
        if len(child):
            inner = (child.text or "") + "".join(etree.tostring(part, encoding="unicode", method="html") for part in child)
            return re.sub(r"<(/?)[\w-]+:(\w)", r"<\1\2", inner).strip()
        text = (child.text or "").strip()
        if text:
            return html.escape(text) if child.get("type") == "text" else text
    return ""


def _link(node: Any, url: str) -> str:
    for child in _children(node, "link"):
        if child.get("href") and child.get("rel", "alternate") == "alternate":
            return _absolute(url, child.get("href"))
        if child.text and child.text.strip():
            return _absolute(url, child.text.strip())
    for child in _children(node, "guid"):
        if child.get("ispermalink", child.get("isPermaLink", "true")).lower() == "true" and re.match(
            r"https?://", (child.text or "").strip()
        ):
            return (child.text or "").strip()[:2048]
    return ""


def _absolute(url: str, link: str) -> str:
    if not link.strip():
        return ""
    try:
        found = urljoin(url, link.strip())
    except ValueError:
        return ""
    return found[:2048] if found.startswith(("http://", "https://")) else ""


def _author(node: Any) -> str:
    for child in (*_children(node, "creator"), *_children(node, "author")):
        name = _text(child, "name") or clean_line("".join(child.itertext()))
        if name:
            return name[:200]
    return ""


def _json_feed(data: bytes, url: str) -> Feed:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise SourceError("bad_answer", "the feed is neither XML nor JSON") from None
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list):
        raise SourceError("bad_answer", "the address holds no RSS, Atom or JSON feed")
    if len(items) > MAX_ENTRIES:
        raise SourceError("too_many", f"more than {MAX_ENTRIES} entries", params={"limit": MAX_ENTRIES})
    return Feed(clean_line(str(value.get("title") or "")), tuple(_json_entry(item, url) for item in items if isinstance(item, dict)))


def _json_entry(item: dict[str, Any], url: str) -> Entry:
    link = _absolute(url, str(item.get("url") or item.get("external_url") or ""))
    title = clean_line(str(item.get("title") or ""))
    text = item.get("content_text")
    content = str(item.get("content_html") or "") or (f"<p>{html.escape(str(text))}</p>" if text else "")
    when = moment(item.get("date_modified")) or moment(item.get("date_published"))
    authors = item.get("authors") if isinstance(item.get("authors"), list) else [item.get("author")]
    names = [str(author.get("name") or "") for author in authors or [] if isinstance(author, dict)]
    return Entry(
        str(item.get("id") or "")[:2000] or link or title,
        title,
        link,
        content,
        str(item.get("summary") or ""),
        when,
        clean_line(", ".join(names)),
    )
