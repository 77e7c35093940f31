"""A web site: the pages its sitemap names, or those that links lead to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.sources.plugins.crawl.addresses import normal, prefixes
from apps.sources.plugins.crawl.walk import MAX_PAGES, Site
from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, connectors
from apps.sources.plugins.readable import ACCEPT, FILE_LIMIT, document_of
from apps.sources.plugins.support import Plugin, bad, lines_of, web_address


@connectors.register("web_crawler")
class WebSite(Plugin):
    meta = ConnectorMeta(
        "web_crawler",
        _("Web site"),
        _("Pages of a site, by its sitemap or by following links."),
        "globe",
        9,
        "none",
        ("incremental", "deletion_sync"),
        (
            Input(
                "start_urls", _("Start addresses"), "lines", "settings", required=True,
                hint=_("One per line. The address of a sitemap works too. Only pages of the same hosts are read."),
            ),
            Input(
                "mode", _("Find pages by"), "choice", "settings", default="auto",
                choices=(
                    ("auto", _("the sitemap if there is one, else links")),
                    ("sitemap", _("the sitemap")),
                    ("crawl", _("following links")),
                ),
            ),
            Input(
                "path_prefix", _("Only below these paths"), "lines", "settings",
                hint=_("One per line, like /docs/. Empty: the whole host."),
            ),
            Input("max_pages", _("Pages at most"), "number", "settings", default=500),
            Input(
                "max_depth", _("Links deep"), "number", "settings", default=5,
                hint=_("How many links may lie between a start address and a page."),
            ),
        ),
    )  # fmt: skip

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        found = super().clean(settings)
        urls = [web_address("start_urls", url) for url in lines_of(found["start_urls"])]
        if len(urls) > 50 or not all(map(normal, urls)):
            raise bad("start_urls", _("These are too many addresses, or one is not a web address."))
        if not 1 <= found.get("max_pages", 500) <= MAX_PAGES:
            raise bad("max_pages", _("Choose a number from 1 to %(limit)d.") % {"limit": MAX_PAGES})
        if not 0 <= found.get("max_depth", 5) <= 50:
            raise bad("max_depth", _("Choose a number from 0 to %(limit)d.") % {"limit": 50})
        return found

    def check(self, link: Link) -> None:
        self._site(link).check()

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        yield from self._site(link).pages()

    def fetch(self, link: Link, item: Item) -> Content | None:
        url = str(item.handle["url"])
        answer = self._site(link).taken(url)
        if answer is None:
            answer = link.web.request("GET", url, headers={"Accept": ACCEPT}, max_bytes=FILE_LIMIT)
        return document_of(answer)

    def _site(self, link: Link) -> Site:
        settings = link.settings
        starts = tuple(normal(url) for url in lines_of(settings.get("start_urls")))
        key = (starts, str(settings.get("path_prefix")), settings.get("max_pages"), settings.get("max_depth"), settings.get("mode"))
        found: Site = link.web.keep(
            "site",
            key,
            lambda: Site(
                link.web,
                starts,
                prefixes(lines_of(settings.get("path_prefix"))),
                mode=str(settings.get("mode") or "auto"),
                max_pages=int(settings.get("max_pages") or 500),
                max_depth=int(settings.get("max_depth", 5)),
            ),
        )
        return found
