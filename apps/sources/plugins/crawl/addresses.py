"""Which addresses are pages of a site, and in which form one page has one address."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit, urlunsplit

MAX_URL = 2048
MAX_SEGMENTS = 20
MAX_VARIANTS = 50  # addresses that differ in their query alone: beyond it is a calendar or a filter
_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|yclid|mc_[ce]id|sessionid|phpsessid|jsessionid|sid", re.I)
_SKIPPED = re.compile(
    r"\.(?:css|js|mjs|map|ico|svg|png|jpe?g|gif|webp|avif|woff2?|ttf|eot|mp[34]|m4a|avi|mov|webm|ogg|wav"
    r"|zip|gz|tgz|bz2|xz|7z|rar|exe|msi|dmg|iso|apk|jar|bin|rss|atom)\Z",
    re.I,
)


def normal(url: str, base: str = "") -> str:
    """The one form of an address: no fragment, no default port, no tracking; "" for what is no web address."""
    try:
        parts = urlsplit(urljoin(base, url.strip()) if base else url.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host or any(ord(sign) < 33 for sign in host):
        return ""
    host = f"[{host}]" if ":" in host else host
    netloc = host if port in (None, 80 if parts.scheme == "http" else 443) else f"{host}:{port}"
    query = parts.query
    if _TRACKING.search(query):
        query = urlencode([(key, value) for key, value in parse_qsl(query, keep_blank_values=True) if not _TRACKING.fullmatch(key)])
    path = quote(_dotless(parts.path or "/"), safe="/%:@!$&'()*+,;=~-._")
    found = urlunsplit((parts.scheme, netloc, path, quote(query, safe="/%:@!$&'()*+,;=~-._?"), ""))
    return found if len(found) <= MAX_URL else ""


def _dotless(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1] or [""]
        elif part != ".":
            parts.append(part)
    return "/".join(parts) if parts and parts[0] == "" else "/" + "/".join(parts)


@dataclass(slots=True)
class Scope:
    """The pages of a site: its hosts, the path prefixes, and what looks like a trap left out."""

    origins: set[str]
    prefixes: tuple[str, ...] = ()
    variants: Counter[str] = field(default_factory=Counter)

    def holds(self, url: str) -> bool:
        parts = urlsplit(url)
        if origin(url) not in self.origins or _SKIPPED.search(parts.path):
            return False
        return not self.prefixes or any(_under(parts.path, prefix) for prefix in self.prefixes)

    def admits(self, url: str) -> bool:
        """Whether to follow a link; counts addresses that differ in their query alone."""
        if not self.holds(url):
            return False
        parts = urlsplit(url)
        segments = [part for part in parts.path.split("/") if part]
        if len(segments) > MAX_SEGMENTS or any(count > 3 for count in Counter(segments).values()):
            return False
        if parts.query:
            self.variants[parts.path] += 1
            return self.variants[parts.path] <= MAX_VARIANTS
        return True


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _under(path: str, prefix: str) -> bool:
    return path == prefix.rstrip("/") or path.startswith(prefix)


def prefixes(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(quote("/" + line.lstrip("/"), safe="/%:@!$&'()*+,;=~-._") for line in lines)
