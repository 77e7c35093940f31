"""Sitemaps and their indexes (sitemaps.org), plain or gzipped, never more of them than a site needs."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apps.sources.plugins.crawl.addresses import normal
from apps.sources.plugins.protocol import SourceError
from apps.sources.plugins.support import local_name, xml_root

FILE_LIMIT = 16 << 20
MAX_FILES = 100
MAX_ADDRESSES = 50_000


@dataclass(frozen=True, slots=True)
class Place:
    url: str
    changed: str  # as the sitemap says it; "" when it does not


def read_sitemaps(web: Any, addresses: list[str]) -> Iterator[Place]:
    """Every address the sitemaps name, in order, repeats included.

    Raises: SourceError, too_many for an index without end; it is raised where the reading stops, after what came before.
    """
    waiting, seen, named = list(dict.fromkeys(addresses)), set(addresses), 0
    while waiting:
        current = waiting.pop(0)
        root = xml_root(_unpacked(web.read(current, max_bytes=FILE_LIMIT)))
        kind = local_name(root)
        if kind not in ("urlset", "sitemapindex"):
            raise SourceError("bad_answer", "this is no sitemap", item=current)
        for node in root:
            url = normal(_child(node, "loc"), current)
            if not url:
                continue
            if kind == "sitemapindex":
                if url not in seen:
                    seen.add(url)
                    waiting.append(url)
                    if len(seen) > MAX_FILES:
                        raise SourceError("too_many", f"more than {MAX_FILES} sitemaps", item=current, params={"limit": MAX_FILES})
                continue
            named += 1
            if named > MAX_ADDRESSES:
                raise SourceError("too_many", f"more than {MAX_ADDRESSES} addresses", item=current, params={"limit": MAX_ADDRESSES})
            yield Place(url, _child(node, "lastmod")[:40])


def _child(node: Any, name: str) -> str:
    return next(((child.text or "").strip() for child in node if local_name(child) == name), "")


def _unpacked(data: bytes) -> bytes:
    if data[:2] != b"\x1f\x8b":
        return data
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = unpacker.decompress(data, FILE_LIMIT)
    except zlib.error:
        raise SourceError("bad_answer", "the sitemap is damaged") from None
    if unpacker.unconsumed_tail:
        raise SourceError("too_large", "the sitemap swells beyond the limit", params={"limit": FILE_LIMIT})
    return found
