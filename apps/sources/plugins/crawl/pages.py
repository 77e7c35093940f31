"""What a page says about itself: its links, its canonical address, whether it wants to be read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apps.sources.plugins.crawl.addresses import normal

MAX_LINKS = 2_000
LOOKED_AT = 3_000_000


@dataclass(frozen=True, slots=True)
class PageFacts:
    title: str = ""
    canonical: str = ""
    links: tuple[str, ...] = ()
    indexable: bool = True


def facts_of(markup: str, url: str) -> PageFacts:
    """The facts of a page; nothing of a page that cannot be read as HTML."""
    from lxml import etree, html

    text = re.sub(r"\A\s*<\?xml[^>]*\?>", "", markup[:LOOKED_AT].replace("\0", ""))
    try:
        root = html.document_fromstring(text, parser=html.HTMLParser(huge_tree=False, remove_comments=True))
    except (etree.LxmlError, ValueError):
        return PageFacts()
    title, base, canonical, robots = "", url, "", ""
    links: dict[str, None] = {}
    for node in root.iter("title", "base", "link", "meta", "a", "area"):
        if node.tag == "title" and not title:
            title = " ".join(node.text_content().split())[:300]
        elif node.tag == "base" and node.get("href"):
            base = normal(node.get("href"), url) or url
        elif node.tag == "link" and "canonical" in (node.get("rel") or "").lower().split():
            canonical = normal(node.get("href") or "", url)
        elif node.tag == "meta" and (node.get("name") or "").lower() == "robots":
            robots = (node.get("content") or "").lower()
        elif (
            node.tag in ("a", "area") and node.get("href") and "nofollow" not in (node.get("rel") or "").lower() and len(links) < MAX_LINKS
        ):
            if found := normal(node.get("href"), base):
                links[found] = None
    return PageFacts(title, canonical, () if "nofollow" in robots else tuple(links), "noindex" not in robots)
