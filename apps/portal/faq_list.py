"""The FAQ tab put together: what its address says, rows, filters, pages, the import under way and the last one's result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from apps.common.actor import Actor
from apps.common.policy import allowed
from apps.faq.models import FaqEntry
from apps.faq.selectors import SEARCH_FIELDS, EntryFilters, entry_figures, entry_list, import_last, import_live
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import tag_list
from apps.portal import links
from apps.portal.faq_imports import result_counts

PAGE_SIZE = 50
MAX_PAGE = 100_000
FIELD_WORDS = {
    "": pgettext_lazy("where to look", "Everywhere"),
    "standard_question": gettext_lazy("Standard question"),
    "similar_questions": gettext_lazy("Similar questions"),
    "answers": pgettext_lazy("of a question", "Answers"),
}
Flag = Literal["", "yes", "no"]


def _flag(raw: str) -> Flag:
    return "yes" if raw == "yes" else "no" if raw == "no" else ""


@dataclass(frozen=True, slots=True)
class FaqQuery:
    """`entry`: the document of the one entry to show. Anything unreadable in the address counts as not said."""

    q: str = ""
    field: str = ""
    tags: tuple[str, ...] = ()
    enabled: Flag = ""
    recommended: Flag = ""
    ascending: bool = False
    entry: str = ""
    page: int = 1

    @classmethod
    def read(cls, query: QueryDict) -> FaqQuery:
        page = query.get("page", "1")
        field = query.get("field", "")
        return cls(
            q=" ".join(query.get("q", "").split())[:200],
            field=field if field in SEARCH_FIELDS else "",
            tags=tuple(dict.fromkeys(tag for tag in query.getlist("tag")[:20] if tag)),
            enabled=_flag(query.get("enabled", "")),
            recommended=_flag(query.get("recommended", "")),
            ascending=query.get("order") == "asc",
            entry=query.get("entry", "")[:40],
            page=min(MAX_PAGE, max(1, int(page[:18]))) if page.isascii() and page.isdigit() else 1,
        )

    @property
    def narrowed(self) -> bool:
        return bool(self.q or self.tags or self.enabled or self.recommended or self.entry)

    def filters(self) -> EntryFilters:
        return EntryFilters(
            keyword=self.q,
            search_field=self.field,
            tag_uids=self.tags or None,
            enabled=self.enabled,
            recommended=self.recommended,
            sort_order="asc" if self.ascending else "desc",
            document_uid=self.entry,
        )

    def pairs(self) -> list[tuple[str, Any]]:
        named = (("q", self.q), ("field", self.field if self.q else ""), ("enabled", self.enabled), ("recommended", self.recommended))
        pairs: list[tuple[str, Any]] = [(name, value) for name, value in named if value]
        pairs += [("tag", tag) for tag in self.tags]
        if self.ascending:
            pairs.append(("order", "asc"))
        if self.entry:
            pairs.append(("entry", self.entry))
        if self.page > 1:
            pairs.append(("page", self.page))
        return pairs

    def href(self, address: str = "", **changes: Any) -> str:
        """The address of this list with changes; any change but of the page goes back to page 1."""
        if changes and "page" not in changes:
            changes["page"] = 1
        pairs = (replace(self, **changes) if changes else self).pairs()
        return f"{address}?{urlencode(pairs)}" if pairs else address or "?"

    @property
    def hidden(self) -> list[tuple[str, Any]]:
        """What the search field's form has to carry on."""
        return [(name, value) for name, value in self.pairs() if name not in ("q", "field", "page", "entry")]

    @property
    def query_string(self) -> str:
        return self.href()


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry as the list shows it."""

    entry: FaqEntry
    tags: list[Any]
    edit_href: str


def faq_context(actor: Actor, base: KnowledgeBase, query: FaqQuery) -> dict[str, Any]:
    """Context of `portal/_faq.html`, in a constant number of queries."""
    found = entry_list(actor=actor, base=base, filters=query.filters())
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    query = replace(query, page=min(query.page, pages))
    start = (query.page - 1) * PAGE_SIZE
    entries = list(found[start : start + PAGE_SIZE]) if total else []
    figures = entry_figures(actor=actor, base=base)
    tags = list(tag_list(actor=actor, base=base))
    address = links.base_url(base)
    live, last = import_live(actor=actor, base=base), import_last(actor=actor, base=base)
    return {
        "query": query,
        "here": query.href(address),
        "address": address,
        "rows": [_row(base, entry) for entry in entries],
        "total": total,
        "whole_count": figures["total"],
        "filters": _filters(query, address, figures, tags),
        "field_options": [{"value": value, "label": label} for value, label in FIELD_WORDS.items()],
        "sort_items": _sort_items(query, address),
        "pages": _pages(query, address, pages, total),
        "clear_href": address,
        "live_import": live,
        "last_import": last if last is not None and last.shown == "open" and live is None else None,
        "last_counts": result_counts(last) if last is not None else [],
        "may_write": allowed(actor, "faq.write", base),
        "may_import": allowed(actor, "faq.import", base),
    }


def _row(base: KnowledgeBase, entry: FaqEntry) -> EntryRow:
    tags = sorted(entry.document.tags.all(), key=lambda tag: tag.pk)
    return EntryRow(entry, tags, reverse("faq-edit", args=[base.space_id, base.uid, entry.seq_id]))


def _filters(query: FaqQuery, address: str, figures: dict[str, int], tags: list[Any]) -> list[dict[str, Any]]:
    on, off = figures["enabled"], figures["total"] - figures["enabled"]
    best, rest = figures["recommended"], figures["total"] - figures["recommended"]
    found = [
        _choice("enabled", _("State"), query.enabled, [("yes", _("Enabled"), on), ("no", _("Disabled"), off)], query, address),
        _choice(
            "recommended",
            _("Recommended"),
            query.recommended,
            [("yes", _("Recommended"), best), ("no", _("Not recommended"), rest)],
            query,
            address,
        ),
    ]
    if tags:
        chosen = [tag for tag in tags if str(tag.uid) in query.tags]
        items = []
        for tag in tags:
            uid = str(tag.uid)
            kept = tuple(each for each in query.tags if each != uid) if uid in query.tags else (*query.tags, uid)
            items.append(
                {
                    "label": tag.name,
                    "note": f"{tag.knowledge_count:,}",
                    "href": query.href(address, tags=kept),
                    "checked": "true" if tag in chosen else "false",
                }
            )
        names = ", ".join(tag.name for tag in chosen)
        remove = query.href(address, tags=())
        found.append({"id": "tags", "label": _("Tags"), "current": names, "items": items, "remove_href": remove})
    return found


def _choice(name: str, label: str, current: str, items: list[tuple[str, str, int]], query: FaqQuery, address: str) -> dict[str, Any]:
    drawn = [
        {
            "label": words,
            "note": f"{count:,}",
            "href": query.href(address, **{name: "" if value == current else value}),
            "checked": "true" if value == current else "false",
        }
        for value, words, count in items
    ]
    word = next((words for value, words, _count in items if value == current), "")
    return {"id": name, "label": label, "current": word, "items": drawn, "remove_href": query.href(address, **{name: ""})}


def _sort_items(query: FaqQuery, address: str) -> list[dict[str, Any]]:
    return [
        {"label": label, "href": query.href(address, ascending=way), "checked": "true" if query.ascending is way else "false"}
        for label, way in ((_("Latest change first"), False), (_("Earliest change first"), True))
    ]


def entries_text(count: int) -> str:
    return ngettext("%(count)s entry", "%(count)s entries", count) % {"count": f"{count:,}"}


def _pages(query: FaqQuery, address: str, pages: int, total: int) -> dict[str, Any]:
    start = (query.page - 1) * PAGE_SIZE
    if pages == 1:
        return {"text": entries_text(total), "count": 1}
    shown = sorted({1, pages, *(page for page in range(query.page - 2, query.page + 3) if 1 <= page <= pages)})
    items: list[dict[str, Any]] = []
    for before, page in zip([0, *shown], shown, strict=False):
        if page - before > 1:
            items.append({"gap": True})
        items.append({"number": page, "href": query.href(address, page=page), "current": page == query.page})
    end = min(total, start + PAGE_SIZE)
    return {
        "text": _("%(start)s to %(end)s of %(total)s") % {"start": f"{start + 1:,}", "end": f"{end:,}", "total": f"{total:,}"},
        "count": pages,
        "items": items,
        "previous": query.href(address, page=query.page - 1) if query.page > 1 else "",
        "next": query.href(address, page=query.page + 1) if query.page < pages else "",
    }
