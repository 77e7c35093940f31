"""What tests of hostile sources share: a feed, a redirect, a bomb, and reading a source to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from werkzeug import Request, Response

import apps.sources.plugins.connectors  # noqa: F401 - registers them
from apps.sources.plugins.protocol import Link, SourceError, connectors
from apps.sources.web import Web
from tests.support.hosted.serving import say

RSS = '<rss version="2.0"><channel><title>F</title>%s</channel></rss>'
Route = Callable[[Request], Response]


def to(address: str) -> Route:
    return lambda _request: say("", 302, Location=address)


BOMB = "<!DOCTYPE rss [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{('&' + chr(97 + n) + ';') * 10}'>" for n in range(9)
) + "]>" + RSS % "<item><title>&j;</title></item>"  # fmt: skip


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
