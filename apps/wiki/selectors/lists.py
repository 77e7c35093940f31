"""Lists of pages: filtered and ordered as clients and pages ask for them; search by title, other names, summary and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Exists, F, IntegerField, OuterRef, Q, Value, When
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.knowledge.models import KnowledgeBase
from apps.wiki.models import PageAlias, PageType, WikiFolder, WikiPage
from apps.wiki.selectors.folders import folder_get
from apps.wiki.selectors.pages import page_list

ORDERS = {
    "title": "title",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "page_type": "page_type",
    "wiki_path": "folder__path",
    "sort_order": "sort_order",
    "depth": "folder__depth",
}
#: Filters and links name pages that have no type by this word; clients may send it empty as well.
MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class PageFilters:
    """`folder_id`: None everywhere, "" pages in no folder. `category_path`: names of folders from the root; `category_depth`: that deep."""

    types: tuple[str, ...] = ()
    status: str = ""
    state: str = ""
    query: str = ""
    folder_id: str | None = None
    category_path: tuple[str, ...] = ()
    category_depth: int | None = None
    sort_by: str = "updated_at"
    ascending: bool = False


def clean_types(names: Sequence[str]) -> tuple[str, ...]:
    """Types of pages as rows have them. Raises: InvalidInput at `page_type` for one there is not."""
    made = []
    for name in names:
        value = "" if name == MANUAL else name
        if value not in ("", *PageType.values):
            raise InvalidInput(_("There is no such type of page."), field="page_type", known=[*PageType.values, MANUAL])
        made.append(value)
    return tuple(dict.fromkeys(made))


def pages_filtered(*, actor: Actor, base: KnowledgeBase, filters: PageFilters) -> Any:
    """The pages asked for, in a total order. Raises: InvalidInput, NotFound at the field at fault."""
    rows = page_list(actor=actor, base=base)
    if filters.types:
        rows = rows.filter(page_type__in=clean_types(filters.types))
    if filters.status:
        if filters.status not in WikiPage.Status.values:
            raise InvalidInput(_("There is no such status."), field="status", known=WikiPage.Status.values)
        rows = rows.filter(status=filters.status)
    if filters.state:
        rows = rows.filter(state=filters.state)
    if filters.folder_id == "":
        rows = rows.filter(folder__isnull=True)
    elif filters.folder_id is not None:
        rows = rows.filter(folder=folder_get(actor=actor, base=base, folder_id=filters.folder_id))
    if filters.category_path:
        path = "/".join(filters.category_path)
        rows = rows.filter(Q(folder__path=path) | Q(folder__path__startswith=f"{path}/"))
    if filters.category_depth is not None:
        rows = rows.filter(folder__depth=filters.category_depth) if filters.category_depth else rows.filter(folder__isnull=True)
    if filters.query:
        rows = rows.filter(_holds(filters.query, Q(content__icontains=filters.query)))
    name = ORDERS.get(filters.sort_by, "updated_at")
    key = F(name).asc(nulls_first=True) if filters.ascending else F(name).desc(nulls_last=True)
    return rows.order_by(key, "pk" if filters.ascending else "-pk")


def _holds(words: str, *more: Q) -> Q:
    """In the title, the address, another name or the summary; or as `more` says."""
    aliases = PageAlias.objects.filter(page=OuterRef("pk"), name__icontains=words)
    found = Q(title__icontains=words) | Q(slug__icontains=words) | Q(summary__icontains=words) | Q(Exists(aliases))
    for each in more:
        found |= each
    return found


def pages_search(*, actor: Actor, base: KnowledgeBase, words: str, limit: int = 10, text: bool = True) -> list[WikiPage]:
    """Pages that hold these words, each word anywhere: those in the title first, then in other names, address, summary and text.

    Archived pages are left out. `text`: whether the text is looked at too.

    Raises: InvalidInput at `q` without words.
    """
    parts = words.split()
    if not parts:
        raise InvalidInput(_("Say what to look for."), field="q")
    rows = page_list(actor=actor, base=base).exclude(status=WikiPage.Status.ARCHIVED)
    for part in parts[:12]:
        rows = rows.filter(_holds(part, *([Q(content__icontains=part)] if text else [])))
    whole = " ".join(parts)
    aliases = PageAlias.objects.filter(page=OuterRef("pk"), name__icontains=whole)
    rank = Case(
        When(title__iexact=whole, then=Value(0)),
        When(title__icontains=whole, then=Value(1)),
        When(Exists(aliases), then=Value(2)),
        When(slug__icontains=whole, then=Value(3)),
        When(summary__icontains=whole, then=Value(4)),
        default=Value(5),
        output_field=IntegerField(),
    )
    return list(rows.annotate(rank=rank).order_by("rank", "-updated_at", "-pk")[:limit])


def folder_trail(page: WikiPage) -> list[str]:
    """The names of the folders a page is in, outermost first."""
    return page.folder.path.split("/") if page.folder else []


def folders_by_path(*, actor: Actor, base: KnowledgeBase) -> list[WikiFolder]:
    """Every folder of a wiki, ordered by path: for choosing one."""
    page_list(actor=actor, base=base)
    return list(WikiFolder.objects.visible_to(actor).filter(kb=base).order_by("path", "pk"))
