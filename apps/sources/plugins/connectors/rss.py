"""RSS, Atom and JSON feeds. An entry that leaves a feed has not vanished: feeds drop what is old, so nothing is ever deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.sources.plugins.feeds import Entry, Feed, read_feed
from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, Resource, SourceError, connectors
from apps.sources.plugins.readable import readable_page
from apps.sources.plugins.support import Plugin, bad, batches, html_file, mark, web_address

FEED_LIMIT = 20 << 20
MAX_FEEDS = 200
ACCEPT = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


@connectors.register("rss")
class Feeds(Plugin):
    meta = ConnectorMeta(
        "rss",
        _("RSS or Atom feed"),
        _("Entries of news feeds and blogs, with their full text."),
        "source",
        12,
        "custom",
        ("incremental",),
        (
            Input(
                "feed_urls", _("Addresses of the feeds"), "lines", "settings", required=True,
                hint=_("One per line: RSS, Atom or JSON Feed."),
            ),
            Input(
                "full_text",
                _("Text of an entry"),
                "choice",
                "settings",
                choices=(
                    ("auto", _("The feed's text; the linked page where there is only a summary")),
                    ("feed", _("Only what the feed holds")),
                    ("page", _("Always the linked page")),
                ),
                default="auto",
            ),
            Input(
                "auth_headers", _("Headers to send"), "secret", "credentials",
                hint=_("One per line, like Authorization: Bearer … . Only the feeds get them."),
            ),
        ),
    )  # fmt: skip

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        known = {**settings}
        if not isinstance(known.get("feed_urls", ""), str):
            known.pop("feed_urls")  # the contract ignores what is not a text
        found = super().clean(known)
        _urls(found)
        return found

    def check(self, link: Link) -> None:
        urls = _urls(link.settings) or _urls(link.credentials)
        if not urls:
            raise bad("feed_urls", _("Give at least one address."))
        for url in urls:
            _load(link, url, {})

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        if parent_id:
            return []
        found = []
        for url in _urls(link.settings):
            feed, _state = _load(link, url, {})
            found.append(Resource(url, (feed.title if feed else "") or url, "feed", url=url))
        return found

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        states: dict[str, Any] = dict((cursor or {}).get("feeds") or {})
        urls = _urls(link.settings)
        if link.resource_ids:
            urls = [url for url in urls if url in link.resource_ids]
        states = {url: state for url, state in states.items() if url in urls and isinstance(state, dict)}
        failed: list[SourceError] = []
        for url in urls:
            try:
                feed, state = _load(link, url, states.get(url, {}))
            except SourceError as error:
                error.item = error.item or url
                failed.append(error)
                if len(failed) == len(urls):
                    raise
                yield Page((), {"feeds": dict(states)}, faults=(error,))
                continue
            pages = list(batches(_item(url, entry) for entry in feed.entries)) if feed else [()]
            for batch in pages[:-1]:
                yield Page(batch, {"feeds": dict(states)})
            states[url] = state
            yield Page(pages[-1], {"feeds": dict(states)})

    def fetch(self, link: Link, item: Item) -> Content | None:
        url = str(item.handle["feed"])
        feed, _state = _load(link, url, {})
        entry = next((found for found in feed.entries if found.key == item.handle["key"]), None) if feed else None
        if entry is None:
            raise SourceError("not_found", "the entry is no longer in the feed", item=item.external_id)
        return _content(link, url, entry)


def _urls(values: Mapping[str, Any]) -> list[str]:
    raw = values.get("feed_urls")
    if not isinstance(raw, str):
        return []
    urls = list(dict.fromkeys(part for part in re.split(r"[\s,]+", raw) if part))
    if len(urls) > MAX_FEEDS:
        raise bad("feed_urls", _("These are too many addresses."))
    return [web_address("feed_urls", url) for url in urls]


def auth_headers(raw: str) -> dict[str, str]:
    """Headers written as lines of `Name: Value`. Raises: SourceError(bad_settings)."""
    found = {}
    for line in filter(None, map(str.strip, raw.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or not _HEADER.fullmatch(name.strip()) or not value.strip() or not value.isprintable():
            raise bad("auth_headers", _("Write each header on a line of its own, like Authorization: Bearer …"))
        if name.strip().lower() in ("host", "connection", "content-length", "transfer-encoding", "accept-encoding"):
            raise bad("auth_headers", _("This header cannot be set."))
        found[name.strip()] = value.strip()
    return found


def _load(link: Link, url: str, state: Mapping[str, Any]) -> tuple[Feed | None, dict[str, str]]:
    """The feed and what to send next time; None where the server says that nothing changed."""
    headers = {"Accept": ACCEPT, **auth_headers(str(link.credentials.get("auth_headers") or ""))}
    if not state:  # within a run a feed is read once
        return link.web.keep("feed", url, lambda: _ask(link, url, headers))
    if state.get("etag"):
        headers["If-None-Match"] = str(state["etag"])
    if state.get("modified"):
        headers["If-Modified-Since"] = str(state["modified"])
    found = _ask(link, url, headers)
    if found[0] is not None:
        link.web.drop("feed")
        return link.web.keep("feed", url, lambda: found)
    return None, {**{name: str(value) for name, value in state.items()}, **found[1]}


def _ask(link: Link, url: str, headers: Mapping[str, str]) -> tuple[Feed | None, dict[str, str]]:
    with link.web.request("GET", url, headers=headers, max_bytes=FEED_LIMIT, ok=(200, 304)) as answer:
        kept = {"etag": answer.headers.get("etag", ""), "modified": answer.headers.get("last-modified", "")}
        state = {name: value for name, value in kept.items() if value and value.isascii() and value.isprintable() and len(value) < 500}
        if answer.status == 304:
            return None, state
        charset = re.search(r"charset\s*=\s*\"?([\w:.-]{1,40})", answer.headers.get("content-type", ""), re.I)
        return read_feed(answer.read(), answer.url, charset.group(1) if charset else ""), state


def _item(url: str, entry: Entry) -> Item:
    return Item(
        f"{mark(url)[:12]}:{entry.key}"[:500] if len(entry.key) < 400 else f"{mark(url)[:12]}:{mark(entry.key)}",
        title=entry.title or entry.link or entry.key[:100],
        fingerprint=entry.fingerprint,
        url=entry.link,
        modified_at=entry.published,
        resource_id=url,
        metadata={"author": entry.author} if entry.author else {},
        handle={"feed": url, "key": entry.key},
    )


def _content(link: Link, url: str, entry: Entry) -> Content | None:
    how = str(link.settings.get("full_text") or "auto")
    text = entry.content or ("" if how == "auto" else entry.teaser)
    if entry.link and (how == "page" or (how == "auto" and not text)):
        try:
            page = readable_page(link.web, entry.link, title=entry.title)
        except SourceError as error:
            if error.passing or how == "page":
                raise
            page = None  # a page that cannot be read is no reason to lose the summary
        if page is not None:
            return page
    return html_file(text or entry.teaser, entry.title or entry.link, url=entry.link)
