"""Addresses of pages and names in links, in one normal form."""

from __future__ import annotations

import re
import unicodedata

MAX_SLUG = 255
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff<>:\"\\|?*\[\]#^`%]+")
_GAPS = re.compile(r"[\s\-]*-[\s\-]*")


def slug_of(text: str) -> str:
    """The address a text is written as: lower case, `-` for spaces, Chinese kept, `/` between parts; empty when nothing is left of it.

    What links, file names and addresses cannot hold is dropped, so that a page keeps its address in an export.
    """
    parts = []
    for part in unicodedata.normalize("NFKC", text).lower().replace("\\", "/").split("/"):
        line = "-".join(_UNFIT.sub("-", part).split())
        line = _GAPS.sub("-", line).strip("-. ")
        if line:
            parts.append(line)
    slug = "/".join(parts)
    while len(slug) > MAX_SLUG or len(slug.encode()) > 3 * MAX_SLUG:
        slug = slug[: min(MAX_SLUG, len(slug) - 1)].rstrip("-./ ")
    return slug


def link_key(target: str) -> str:
    """What a link's target is looked up by: its address without a heading (`#...`) and without `.md`."""
    text = target.split("#", 1)[0].strip()
    return slug_of(text[:-3] if text.lower().endswith(".md") else text)


def numbered(slug: str, number: int) -> str:
    """The address with a number behind it, within the length addresses may have."""
    tail = f"-{number}"
    return slug[: MAX_SLUG - len(tail)].rstrip("-./") + tail
