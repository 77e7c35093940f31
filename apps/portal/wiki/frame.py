"""What every page of the wiki shows around its content: tabs, tree of folders, types with their counts."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.actor import Actor
from apps.common.policy import allowed
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.portal.base_frame import base_frame
from apps.wiki.models import PageType, WikiFolder, WikiPage
from apps.wiki.selectors import MANUAL, FolderRow, folder_get, folder_tree, wiki_stats

MAX_PAGE = 100_000
Tree = dict[int | None, list[FolderRow]]
TYPE_WORDS: dict[str, Any] = {"": gettext_lazy("Page made by hand"), **{kind.value: kind.label for kind in PageType}}
TYPE_GROUPS: dict[str, Any] = {
    PageType.SUMMARY: gettext_lazy("Summaries"),
    PageType.ENTITY: gettext_lazy("Entities"),
    PageType.CONCEPT: gettext_lazy("Concepts"),
    PageType.SYNTHESIS: gettext_lazy("Syntheses"),
    PageType.COMPARISON: gettext_lazy("Comparisons"),
    PageType.INDEX: gettext_lazy("Indexes"),
    "": gettext_lazy("Pages made by hand"),
}
STATE_WORDS = {
    WikiPage.State.CURRENT: gettext_lazy("Current"),
    WikiPage.State.SOURCE_CHANGED: gettext_lazy("Source changed"),
    WikiPage.State.SOURCE_WITHDRAWN: gettext_lazy("Source withdrawn"),
}
SOURCE_WORDS = {
    WikiPage.Source.PERSON: gettext_lazy("a person"),
    WikiPage.Source.SYSTEM: gettext_lazy("the portal"),
    WikiPage.Source.CONNECTOR: gettext_lazy("a data source"),
    WikiPage.Source.AGENT: gettext_lazy("an agent"),
    WikiPage.Source.REVERT: gettext_lazy("brought back"),
}
MODE_WORDS = {
    WikiPage.Mode.RULES: gettext_lazy("Made without a model"),
    WikiPage.Mode.MODEL: gettext_lazy("Written by a model"),
    WikiPage.Mode.IMPORT: gettext_lazy("Imported"),
    WikiPage.Mode.AGENT: gettext_lazy("Written by an agent"),
}


@dataclass(frozen=True, slots=True)
class WikiQuery:
    """What the address of the list says. `folder`: None everywhere, "" in no folder; unreadable values count as not said."""

    q: str = ""
    folder: str | None = None
    type: str | None = None
    state: str = ""
    page: int = 1

    @classmethod
    def read(cls, query: QueryDict) -> WikiQuery:
        page, kind = query.get("page", "1"), query.get("type")
        folder = query.get("folder")
        return cls(
            q=" ".join(query.get("q", "").replace("\0", "").split())[:200],
            folder=folder if folder is None or folder == "" else str(as_uuid(folder) or "") or None,
            type="" if kind == MANUAL else kind if kind in PageType.values else None,
            state=query.get("state", "") if query.get("state") in WikiPage.State.values else "",
            page=min(MAX_PAGE, max(1, int(page[:18]))) if page.isascii() and page.isdigit() else 1,
        )

    def href(self, address: str, **changes: Any) -> str:
        values: dict[str, Any] = {"q": self.q, "folder": self.folder, "type": self.type, "state": self.state, "page": self.page}
        values |= changes if "page" in changes else {**changes, "page": 1} if changes else {}
        pairs: list[tuple[str, Any]] = [("q", values["q"])] if values["q"] else []
        pairs += [("folder", values["folder"])] if values["folder"] is not None else []
        pairs += [("type", values["type"] or MANUAL)] if values["type"] is not None else []
        pairs += [("state", values["state"])] if values["state"] else []
        pairs += [("page", values["page"])] if values["page"] > 1 else []
        return f"{address}?{urlencode(pairs)}" if pairs else address


def wiki_url(base: KnowledgeBase) -> str:
    return reverse("base-wiki", args=[base.space_id, base.uid])


def page_url(page: WikiPage, kb_uid: uuid.UUID | None = None) -> str:
    return reverse("wiki-page", args=[page.space_id, kb_uid or page.kb.uid, page.uid])


def wiki_frame(actor: Actor, base: KnowledgeBase, query: WikiQuery | None = None, *, page: WikiPage | None = None) -> dict[str, Any]:
    """Context of every wiki page: the frame of the base, the tree beside it, who may write."""
    query = query or WikiQuery(folder=str(page.folder.uid) if page and page.folder else None)
    frame = base_frame(actor, base, "wiki")
    address = wiki_url(base)
    stats = wiki_stats(actor=actor, base=base, recent=0, lonely=False)
    crumbs = [*frame["crumbs"][:-1], {"label": base.name, "href": address}]
    return {
        **frame,
        "crumbs": [*crumbs, {"label": page.title}] if page else frame["crumbs"],
        "stats": stats,
        "tree_nodes": tree_nodes(actor, base, query, stats.total_pages),
        "type_nodes": _type_nodes(query, address, stats.pages_by_type),
        "address": address,
        "export_href": _export_url(actor, base),
        "query": query,
        "folder_text": query.folder or "",
        "may_write": allowed(actor, "wiki.write", base),
        "space_id": base.space_id,
    }


def _export_url(actor: Actor, base: KnowledgeBase) -> str:
    """The route names the space itself, because a link can carry no header."""
    family = "/v1/knowledge" if actor.space_kind == "personal" else f"/v1/tenants/{base.space_id}/knowledge"
    return f"{family}/bases/{base.uid}/wiki/export"


def tree_nodes(actor: Actor, base: KnowledgeBase, query: WikiQuery, total: int) -> list[dict[str, Any]]:
    """Nodes of `components/tree.html`: all pages, the folders as far as they are open, pages in no folder."""
    address = wiki_url(base)
    chosen = folder_get(actor=actor, base=base, folder_id=query.folder) if query.folder else None
    every = {
        "label": _("All pages"),
        "href": address,
        "count": f"{total:,}",
        "icon": "layers",
        "current": query == WikiQuery(),
    }
    loose = {
        "label": _("Not in a folder"),
        "href": WikiQuery(folder="").href(address),
        "icon": "inbox",
        "current": query.folder == "" and query.type is None,
        "attrs": {"data-wiki-folder": "", "data-folder-name": _("Not in a folder")},
    }
    return [every, *_level(base, folder_tree(actor=actor, base=base), None, chosen), loose]


def level_nodes(actor: Actor, base: KnowledgeBase, parent: WikiFolder) -> list[dict[str, Any]]:
    """One level of the tree."""
    return _level(base, folder_tree(actor=actor, base=base), parent.pk, None)


def _level(base: KnowledgeBase, tree: Tree, above: int | None, chosen: WikiFolder | None) -> list[dict[str, Any]]:
    """The folders in one; the way to the chosen folder is open."""
    return [_node(base, tree, row, chosen) for row in tree.get(above, [])]


def _node(base: KnowledgeBase, tree: Tree, row: FolderRow, chosen: WikiFolder | None) -> dict[str, Any]:
    folder = row.folder
    leads = chosen is not None and f"{chosen.path}/".startswith(f"{folder.path}/")
    is_open = leads and row.has_children
    level = reverse("wiki-level", args=[base.space_id, base.uid])
    return {
        "label": folder.name,
        "href": WikiQuery(folder=str(folder.uid)).href(wiki_url(base)),
        "count": f"{row.page_count:,}",
        "current": chosen is not None and chosen.pk == folder.pk,
        "open": is_open,
        "attrs": {"data-wiki-folder": str(folder.uid), "data-folder-name": folder.name},
        "children": _level(base, tree, folder.pk, chosen) if is_open else [],
        "load": f"{level}?folder={folder.uid}" if row.has_children and not is_open else "",
    }


def _type_nodes(query: WikiQuery, address: str, counts: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "href": WikiQuery(type=kind).href(address),
            "count": f"{counts.get(kind, 0):,}",
            "current": query.type == kind,
            "icon": "circle",
            "attrs": {"data-page-type": kind or MANUAL},
        }
        for kind, label in TYPE_GROUPS.items()
        if counts.get(kind)
    ]
