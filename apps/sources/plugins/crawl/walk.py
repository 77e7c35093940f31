"""Going through a site: bounded in pages, depth and failures, at the pace it asks for, and honest about what was not read."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any
from urllib.parse import urlsplit

from apps.common.http import Fetched
from apps.sources.plugins.crawl.addresses import Scope, normal, origin
from apps.sources.plugins.crawl.pages import PageFacts, facts_of
from apps.sources.plugins.crawl.robots import Robots, read_robots
from apps.sources.plugins.crawl.sitemaps import read_sitemaps
from apps.sources.plugins.protocol import Item, Page, SourceError
from apps.sources.plugins.readable import ACCEPT, FILE_LIMIT, kind_of, page_text
from apps.sources.plugins.support import moment

MAX_PAGES = 10_000
BATCH = 20  # pages that are listed, taken over, and let go of together
GAP_S = 0.2
MAX_FAULTS = 100
GIVE_UP_AFTER = 10  # failures one after the other: the site is down, not the page
ROBOTS_LIMIT = 512 << 10

#: A page that says this is no page of the site; everything else that goes wrong is a fault.
_NO_PAGE = ("not_found", "forbidden", "auth", "too_large")


class Site:
    """One pass over a site. Pages that were loaded to find their links are kept until the next batch, so that each is loaded once."""

    def __init__(self, web: Any, starts: tuple[str, ...], prefixes: tuple[str, ...], *, mode: str, max_pages: int, max_depth: int) -> None:
        self.web, self.starts, self.mode = web, starts, mode
        self.max_pages, self.max_depth = max_pages, max_depth
        self.scope = Scope({origin(url) for url in starts}, prefixes)
        self._robots: dict[str, Robots] = {}
        self._loaded: dict[str, Fetched] = {}
        self._reset()

    def _reset(self) -> None:
        self.scope.variants.clear()
        self.seen: set[str] = set()  # addresses that were asked for or are waiting
        self.named: set[str] = set()  # ids of pages
        self.faults: list[SourceError] = []
        self.failures = 0
        self.cut = False

    def close(self) -> None:
        for answer in self._loaded.values():
            answer.close()
        self._loaded.clear()

    def taken(self, url: str) -> Fetched | None:
        """The page if this pass has just loaded it; the caller closes it."""
        return self._loaded.pop(url, None)

    def check(self) -> None:
        """Returns when the first start address can be read. Raises: SourceError."""
        self._allowed_or_raise()
        for url in self.starts:
            self.web.request("GET", url, headers={"Accept": ACCEPT}, max_bytes=FILE_LIMIT).close()

    def robots(self, url: str) -> Robots:
        """The rules of a host; none where it has no robots.txt. Raises: SourceError when nobody can say."""
        host = origin(url)
        if host not in self._robots:
            netloc = urlsplit(url).netloc
            self.web.pace(netloc, GAP_S)
            try:
                text = self.web.read(f"{host}/robots.txt", max_bytes=ROBOTS_LIMIT).decode("utf-8", "replace")
            except SourceError as error:
                if error.code not in ("not_found", "forbidden", "auth", "bad_answer", "too_large", "redirect_loop"):
                    raise
                text = ""
            self._robots[host] = read_robots(text)
            self.web.pace(netloc, self._robots[host].delay_s)
        return self._robots[host]

    def _allowed_or_raise(self) -> None:
        if not any(self.robots(url).allows(url) for url in self.starts):
            raise SourceError("robots", "robots.txt asks not to read the start addresses")

    def pages(self) -> Iterator[Page]:
        """The site, in batches; the last one says whether that was all of it."""
        self._reset()
        self._allowed_or_raise()
        batch: list[Item] = []
        for item in self._items():
            batch.append(item)
            if len(batch) == BATCH:
                yield Page(tuple(batch))
                self.close()
                batch = []
        if self.cut:
            limit = SourceError("too_many", f"more than {self.max_pages} pages", params={"limit": self.max_pages})
            self.faults.append(limit)
        yield Page(tuple(batch), {"pages": len(self.named)}, whole=not self.faults, faults=tuple(self.faults[:MAX_FAULTS]))
        self.close()

    def _items(self) -> Iterator[Item]:
        sitemaps = [url for url in self.starts if urlsplit(url).path.lower().endswith((".xml", ".xml.gz"))]
        given = bool(sitemaps)
        if not given and self.mode != "crawl":
            for host in sorted(self.scope.origins):
                found = [url for raw in self.robots(host + "/").sitemaps if (url := normal(raw, host + "/"))]
                sitemaps += found or [f"{host}/sitemap.xml"]
            given = self.mode == "sitemap"
        if sitemaps and (yield from self._from_sitemaps(sitemaps, needed=given)):
            return
        yield from self._crawl()

    def _from_sitemaps(self, sitemaps: list[str], *, needed: bool) -> Generator[Item, None, bool]:
        """Whether there was a sitemap to go by."""
        any_place = False
        try:
            for place in read_sitemaps(self.web, sitemaps):
                any_place = True
                if place.url in self.seen or not self.scope.holds(place.url) or not self.robots(place.url).allows(place.url):
                    continue
                if self._full():
                    break
                self.seen.add(place.url)
                if place.changed:
                    self.named.add(place.url)
                    yield Item(
                        place.url, title=_name(place.url), fingerprint=place.changed, url=place.url, modified_at=moment(place.changed),
                        handle={"url": place.url},
                    )  # fmt: skip
                else:
                    item, _facts = self._look(place.url)
                    if item is not None:
                        yield item
        except SourceError as error:
            if not any_place and not needed and error.code in ("not_found", "bad_answer", "forbidden", "auth"):
                return False  # no sitemap: links then
            if not any_place:
                raise
            self.faults.append(error)
        return any_place or needed

    def _crawl(self) -> Iterator[Item]:
        waiting = deque((url, 0) for url in self.starts)
        self.seen.update(self.starts)
        while waiting:
            url, depth = waiting.popleft()
            if not self.robots(url).allows(url):
                continue
            if self._full():
                return
            item, facts = self._look(url, first=depth == 0)
            if item is not None:
                yield item
            if depth >= self.max_depth:
                continue
            for link in facts.links:
                if link not in self.seen and self.scope.admits(link):
                    self.seen.add(link)
                    waiting.append((link, depth + 1))
                    if len(self.seen) > 20 * MAX_PAGES:
                        self.cut = True
                        return

    def _full(self) -> bool:
        self.cut = self.cut or len(self.named) >= self.max_pages
        return self.cut

    def _look(self, url: str, *, first: bool = False) -> tuple[Item | None, PageFacts]:
        """The item a page makes, if any, and what the page says; failures are kept as faults."""
        try:
            answer = self.web.request("GET", url, headers={"Accept": ACCEPT}, max_bytes=FILE_LIMIT)
        except SourceError as error:
            if first and len(self.starts) == 1:
                raise
            if error.code not in _NO_PAGE or first:
                error.item = url
                self.faults.append(error)
                self.failures += 1
                if self.failures >= GIVE_UP_AFTER or len(self.faults) > MAX_FAULTS:
                    raise
            return None, PageFacts()
        self.failures = 0
        try:
            return self._judge(url, answer, first)
        except BaseException:
            answer.close()
            raise

    def _judge(self, url: str, answer: Fetched, first: bool) -> tuple[Item | None, PageFacts]:
        final = normal(answer.url) or url
        if first:
            self.scope.origins.add(origin(final))  # example.org that sends us on to www.example.org
        kind = kind_of(answer)
        facts = PageFacts()
        data = answer.read() if kind == "html" else b""
        if kind == "html":
            facts = facts_of(page_text(data), final)
        page = facts.canonical if facts.canonical and self.scope.holds(facts.canonical) else final
        wanted = kind and facts.indexable and page not in self.named and self.scope.holds(final) and answer.path.stat().st_size
        if not wanted or (final != url and not self.robots(final).allows(final)):
            answer.close()
            return None, facts
        self.named.add(page)
        self.seen.update((final, page))
        self._loaded[final] = answer
        item = Item(
            page, title=facts.title or _name(page), fingerprint=_fingerprint(answer), url=page,
            modified_at=moment(answer.headers.get("last-modified")), handle={"url": final},
        )  # fmt: skip
        return item, facts


def _fingerprint(answer: Fetched) -> str:
    """The server's own word for this state of the page, else its bytes (a time is no word: many servers say "now")."""
    if own := answer.headers.get("etag", ""):
        return own[:200]
    digest = hashlib.sha256()
    with answer.path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:32]


def _name(url: str) -> str:
    parts = urlsplit(url)
    return parts.path.rstrip("/").rpartition("/")[2] or parts.netloc
