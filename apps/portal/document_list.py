"""The documents tab put together: rows, filters, folders, pages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from apps.common.actor import Actor
from apps.knowledge.models import Document, KnowledgeBase, ParseStatus
from apps.knowledge.selectors import FolderTree, document_list, folder_tree, tag_list
from apps.knowledge.selectors.figures import Facets, document_facets
from apps.portal import links
from apps.portal.document_query import PAGE_SIZE, STATUSES, ListQuery
from apps.portal.document_rows import TYPE_NAMES, Row, rows_of
from apps.portal.folder_tree import SHOWN, children_of, tree_nodes

STATUS_WORDS = {
    ParseStatus.DRAFT: lambda: _("Draft"),
    ParseStatus.PENDING: lambda: _("Waiting"),
    ParseStatus.PROCESSING: lambda: _("Reading"),
    ParseStatus.FINALIZING: lambda: _("Searchable, finishing"),
    ParseStatus.COMPLETED: lambda: _("Ready"),
    ParseStatus.FAILED: lambda: _("Failed"),
    ParseStatus.CANCELLED: lambda: _("Stopped"),
}


def list_context(actor: Actor, base: KnowledgeBase, query: ListQuery) -> dict[str, Any]:
    """Context of `portal/_documents.html` and `portal/_folders.html`, in a constant number of queries."""
    found = document_list(actor=actor, base=base, filters=query.filters())
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    query = replace(query, page=min(query.page, pages))
    start = (query.page - 1) * PAGE_SIZE
    documents: list[Document] = list(found[start : start + PAGE_SIZE]) if total else []
    rows = rows_of(actor, documents, show_folder=query.folder is None or query.narrowed)
    tree = folder_tree(actor=actor, base=base)
    facets = document_facets(actor=actor, base=base)
    tags = list(tag_list(actor=actor, base=base))
    address = links.base_url(base)
    return {
        "query": query,
        "here": query.href(address),
        "address": address,
        "rows": rows,
        "total": total,
        "filters": _filters(query, address, facets, tags),
        "sort_items": _sort_items(query, address),
        "columns": columns(query, address),
        "pages": _pages(query, address, pages, total),
        "tree_nodes": tree_nodes(base, query, address, tree),
        "trail": _trail(query, address),
        "tiles": _tiles(query, address, tree),
        "clear_href": address if query.folder is None else ListQuery(folder=query.folder).href(address),
        "whole_count": tree.total_document_count,
        "live_url": live_url(base, rows, query, tree.total_document_count),
        "live_ms": 2000 if any(row.in_flight for row in rows) else 10_000,
        "has_tags": bool(tags),
    }


def live_url(base: KnowledgeBase, rows: list[Row], query: ListQuery, count: int) -> str:
    """Where the list asks for news: the rows in flight by id, and how many documents it knows of."""
    ids = ",".join(str(row.document.uid) for row in rows if row.in_flight)
    folder = "1" if query.folder is None or query.narrowed else ""
    return f"{reverse('documents-live', args=[base.space_id, base.uid])}?ids={ids}&count={count}&folder={folder}"


def columns(query: ListQuery, address: str) -> list[dict[str, Any]]:
    """Head of the table; sortable ones say which way."""

    def sortable(label: str, sort: Any, **more: Any) -> dict[str, Any]:
        way = ("ascending" if query.ascending else "descending") if query.sort == sort else "none"
        return {"label": label, "sort": way, "href": query.href(address, **query.sorted_by(sort)), **more}

    return [
        sortable(_("Name"), "file_name", kind="main"),
        {"label": _("State"), "kind": "state"},
        {"label": _("Tags"), "kind": "tags"},
        {"label": _("Passages"), "kind": "num"},
        sortable(_("Updated"), "updated_at", kind="when"),
        {"label": _("Actions"), "hidden": True, "kind": "actions"},
    ]


def _filters(query: ListQuery, address: str, facets: Facets, tags: list[Any]) -> list[dict[str, Any]]:
    status_items = [
        {"label": STATUS_WORDS[ParseStatus(status)](), "note": f"{facets.statuses.get(status, 0):,}", "value": status}
        for status in STATUSES
        if facets.statuses.get(status) or status == query.status
    ]
    type_items = [
        {"label": str(TYPE_NAMES.get(kind, kind.upper())), "note": f"{count:,}", "value": kind}
        for kind, count in sorted(facets.types.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    found = [
        _choice("status", _("State"), query.status, status_items, query, address),
        _choice("type", pgettext("document", "Type"), query.type, type_items, query, address),
    ]
    if tags:
        chosen = [tag for tag in tags if str(tag.uid) in query.tags]
        items = [
            {
                "label": tag.name,
                "note": f"{tag.knowledge_count:,}",
                "href": query.href(address, **query.with_tag(str(tag.uid))),
                "checked": "true" if tag in chosen else "false",
            }
            for tag in tags
        ]
        found.append(
            {
                "id": "tags",
                "label": _("Tags"),
                "current": ", ".join(tag.name for tag in chosen),
                "items": items,
                "remove_href": query.href(address, tags=()),
            }
        )
    return found


def _choice(name: str, label: str, current: str, items: list[dict[str, Any]], query: ListQuery, address: str) -> dict[str, Any]:
    for item in items:
        is_on = item["value"] == current
        item["href"] = query.href(address, **{name: "" if is_on else item["value"]})
        item["checked"] = "true" if is_on else "false"
    word = next((item["label"] for item in items if item["value"] == current), current.upper())
    return {"id": name, "label": label, "current": word, "items": items, "remove_href": query.href(address, **{name: ""})}


def _sort_items(query: ListQuery, address: str) -> list[dict[str, Any]]:
    choices: list[tuple[str, Any, bool]] = [
        (_("Latest change first"), "updated_at", False),
        (_("Newest first"), "created_at", False),
        (_("Oldest first"), "created_at", True),
        (_("Name A to Z"), "file_name", True),
        (_("Name Z to A"), "file_name", False),
    ]
    return [
        {
            "label": label,
            "href": query.href(address, sort=sort, ascending=ascending),
            "checked": "true" if (query.sort, query.ascending) == (sort, ascending) else "false",
        }
        for label, sort, ascending in choices
    ]


def _pages(query: ListQuery, address: str, pages: int, total: int) -> dict[str, Any]:
    start = (query.page - 1) * PAGE_SIZE
    end = min(total, start + PAGE_SIZE)
    if pages == 1:
        text = ngettext("%(count)s document", "%(count)s documents", total) % {"count": f"{total:,}"}
        return {"text": text, "count": 1}
    shown = sorted({1, pages, *(page for page in range(query.page - 2, query.page + 3) if 1 <= page <= pages)})
    items: list[dict[str, Any]] = []
    for before, page in zip([0, *shown], shown, strict=False):
        if page - before > 1:
            items.append({"gap": True})
        items.append({"number": page, "href": query.href(address, page=page), "current": page == query.page})
    return {
        "text": _("%(start)s to %(end)s of %(total)s") % {"start": f"{start + 1:,}", "end": f"{end:,}", "total": f"{total:,}"},
        "count": pages,
        "items": items,
        "previous": query.href(address, page=query.page - 1) if query.page > 1 else "",
        "next": query.href(address, page=query.page + 1) if query.page < pages else "",
    }


def _trail(query: ListQuery, address: str) -> list[dict[str, str]]:
    """From all documents to the open folder; empty outside folders."""
    if not query.folder:
        return []
    parts = query.folder.split("/")
    trail = [{"label": _("All documents"), "href": query.href(address, folder=None)}]
    for depth, part in enumerate(parts, start=1):
        trail.append({"label": part, "href": query.href(address, folder="/".join(parts[:depth]))})
    return trail


def _tiles(query: ListQuery, address: str, tree: FolderTree) -> list[dict[str, Any]]:
    """Folders right below the open one, as tiles; none while something is searched for."""
    if not query.folder or query.narrowed:
        return []
    below = children_of(tree, query.folder)[:SHOWN]
    return [
        {"name": folder.name, "href": query.href(address, folder=folder.path), "path": folder.path, "count": f"{folder.total_count:,}"}
        for folder in below
    ]
