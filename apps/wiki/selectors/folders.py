"""Folders of a wiki, level by level, with the number of pages below each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.wiki.enabling import check_wiki
from apps.wiki.foldering import below
from apps.wiki.models import WikiFolder, WikiPage


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A folder with the pages in it and below it that are not archived, and whether it holds folders."""

    folder: WikiFolder
    page_count: int
    has_children: bool


def folder_get(*, actor: Actor, base: KnowledgeBase, folder_id: Any, field: str = "folder_id") -> WikiFolder:
    """A folder of the wiki. Raises: NotFound, the same for a foreign id as for one that never was."""
    authorize(actor, "wiki.read", base)
    uid = as_uuid(folder_id)
    found = WikiFolder.objects.visible_to(actor).filter(kb=base, uid=uid).select_related("kb").first() if uid else None
    if found is None:
        raise NotFound(_("There is no such folder in this wiki."), field=field)
    return found  # type: ignore[no-any-return]


def folder_level(
    *, actor: Actor, base: KnowledgeBase, parent: WikiFolder | None = None, types: Sequence[str] = (), every: bool = False
) -> list[FolderRow]:
    """The folders in one folder (or at the root), by name; the counts are of the whole subtree (contract content 5.4).

    With more than one type, empty folders are there and those with pages of other types only are not; otherwise only folders with pages
    are there. `every`: all of them, whatever they hold. Three queries.

    Raises: InvalidInput without a wiki.
    """
    authorize(actor, "wiki.read", base)
    check_wiki(base)
    folders = WikiFolder.objects.visible_to(actor).filter(kb=base)
    level = list(folders.filter(parent=parent).select_related("kb", "parent").order_by("sort_order", "name", "pk"))
    places = {row.pk: (row.path, row.parent_id) for row in below(base.pk, parent.path if parent is not None else "")}
    pages = WikiPage.objects.visible_to(actor).filter(kb=base, folder_id__isnull=False).exclude(status=WikiPage.Status.ARCHIVED)
    if parent is not None:
        pages = pages.filter(folder__path__startswith=f"{parent.path}/")
    counted = list(pages.order_by().values_list("folder_id", "page_type").annotate(count=Count("pk")))
    depth = len(parent.path.split("/")) if parent is not None else 0
    chosen, total = Counter[str](), Counter[str]()
    for folder_id, kind, count in counted:
        if folder_id not in places:
            continue
        name = places[folder_id][0].split("/")[depth]
        total[name] += count
        if not types or kind in types:
            chosen[name] += count
    parents = {up for _path, up in places.values() if up is not None}
    rows = [FolderRow(folder, chosen[folder.name], folder.pk in parents) for folder in level]
    if every:
        return rows
    if len(types) > 1:
        return [row for row in rows if row.page_count or not total[row.folder.name]]
    return [row for row in rows if row.page_count]


def folder_tree(*, actor: Actor, base: KnowledgeBase) -> dict[int | None, list[FolderRow]]:
    """{folder, None for the root: the folders in it, by name} of a whole wiki, each with its figures, whatever it holds. Two queries."""
    authorize(actor, "wiki.read", base)
    check_wiki(base)
    rows = list(WikiFolder.objects.visible_to(actor).filter(kb=base).order_by("sort_order", "name", "pk"))
    pages = WikiPage.objects.live().filter(kb=base, folder_id__isnull=False).exclude(status=WikiPage.Status.ARCHIVED)
    total = Counter(dict(pages.order_by().values_list("folder_id").annotate(count=Count("pk"))))
    for row in sorted(rows, key=lambda row: -row.depth):  # the deepest first, so that each is whole before it counts above
        if row.parent_id is not None:
            total[row.parent_id] += total[row.pk]
    parents = {row.parent_id for row in rows}
    found: dict[int | None, list[FolderRow]] = {}
    for row in rows:
        found.setdefault(row.parent_id, []).append(FolderRow(row, total[row.pk], row.pk in parents))
    return found


def folder_row(*, actor: Actor, folder: WikiFolder) -> FolderRow:
    """One folder with its figures."""
    authorize(actor, "wiki.read", folder)
    inside = [row.pk for row in below(folder.kb_id, folder.path)]
    pages = WikiPage.objects.visible_to(actor).filter(folder_id__in=[folder.pk, *inside]).exclude(status=WikiPage.Status.ARCHIVED)
    return FolderRow(folder, pages.count(), bool(inside))
