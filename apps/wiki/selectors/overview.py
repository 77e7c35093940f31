"""The whole wiki at a glance: its index by type, figures, and what is wrong with it (contract content 5.5)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db.models import Count, Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.jobs.models import LIVE
from apps.knowledge.models import KnowledgeBase
from apps.wiki.models import PageLink, PageSource, PageType, WikiIssue, WikiPage, WikiProposal, WikiRun
from apps.wiki.selectors.pages import page_list

INDEX_SLUG = "index"
GROUPS = (PageType.SUMMARY, PageType.ENTITY, PageType.CONCEPT, PageType.SYNTHESIS, PageType.COMPARISON)
THIN_BYTES = 50
RECENT = 10


@dataclass(frozen=True, slots=True)
class IndexGroup:
    type: str
    total: int
    items: list[WikiPage]
    next_cursor: str = ""


@dataclass(frozen=True, slots=True)
class WikiIndex:
    """`intro`, `version`: text and version of the page `index`; empty and 0 when there is none."""

    intro: str
    version: int
    groups: list[IndexGroup]


def wiki_index(*, actor: Actor, base: KnowledgeBase, types: Sequence[str] = (), limit: int = 50, cursor: str = "") -> WikiIndex:
    """Pages by type, by title, a piece of each group at a time; the cursor goes on in all of them.

    Raises: InvalidInput at `cursor`, or without a wiki.
    """
    rows = page_list(actor=actor, base=base).exclude(status=WikiPage.Status.ARCHIVED)
    start = _cursor_read(cursor)
    groups = []
    for kind in types or GROUPS:
        of_kind = rows.filter(page_type=kind)
        total = of_kind.count()
        items = list(of_kind.defer("content").order_by("title", "pk")[start : start + limit])
        more = _cursor_written(start + limit) if start + limit < total else ""
        groups.append(IndexGroup(kind, total, items, more))
    front = rows.filter(slug=INDEX_SLUG).first()
    return WikiIndex(front.content if front else "", front.version if front else 0, groups)


def _cursor_written(offset: int) -> str:
    return base64.urlsafe_b64encode(f"o{offset}".encode()).decode().rstrip("=")


def _cursor_read(cursor: str) -> int:
    if not cursor:
        return 0
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        if text[:1] == "o" and text[1:].isascii() and text[1:].isdigit() and len(text) < 12:
            return int(text[1:])
    except (binascii.Error, UnicodeError, ValueError):
        pass
    raise InvalidInput(_("This is not a cursor of this list. Begin at its start again."), field="cursor")


@dataclass(frozen=True, slots=True)
class WikiStats:
    total_pages: int
    pages_by_type: dict[str, int]
    total_links: int
    orphan_count: int
    recent_updates: list[WikiPage]
    pending_tasks: int
    pending_issues: int
    is_active: bool
    open_proposals: int
    broken_links: int
    sources_changed: int


def wiki_stats(*, actor: Actor, base: KnowledgeBase, recent: int = RECENT, lonely: bool = True) -> WikiStats:
    """Figures of a wiki. `is_active`: work on it is under way now. Without `lonely`, orphans are not counted (0).

    Raises: InvalidInput without a wiki.
    """
    rows = page_list(actor=actor, base=base)
    live = WikiPage.objects.live().filter(kb=base)
    kinds = dict(live.order_by().values_list("page_type").annotate(count=Count("pk")))
    links = PageLink.objects.filter(kb=base).aggregate(
        total=Count("pk", filter=Q(target__isnull=False)), broken=Count("pk", filter=Q(target__isnull=True))
    )
    runs = list(WikiRun.objects.filter(kb_ref=base.pk, state__in=LIVE).values_list("progress_total", "progress_done", "state"))
    changed = live.exclude(state=WikiPage.State.CURRENT).count()
    return WikiStats(
        total_pages=sum(kinds.values()),
        pages_by_type=kinds,
        total_links=links["total"],
        orphan_count=orphans(actor=actor, base=base).count() if lonely else 0,
        recent_updates=list(rows.order_by("-updated_at", "-pk")[:recent]) if recent else [],
        pending_tasks=sum(max(1, total - done) for total, done, _state in runs),
        pending_issues=WikiIssue.objects.filter(kb=base, status=WikiIssue.Status.OPEN, page__document__deleted_at__isnull=True).count(),
        is_active=any(state == "running" for _total, _done, state in runs),
        open_proposals=WikiProposal.objects.filter(
            kb=base, status=WikiProposal.Status.OPEN, page__document__deleted_at__isnull=True
        ).count(),
        broken_links=links["broken"],
        sources_changed=changed,
    )


def orphans(*, actor: Actor, base: KnowledgeBase) -> Any:
    """Pages nobody links to, but for index pages and archived ones; by title."""
    rows = page_list(actor=actor, base=base).exclude(status=WikiPage.Status.ARCHIVED).exclude(page_type=PageType.INDEX)
    linked = PageLink.objects.filter(target=OuterRef("pk")).exclude(page=OuterRef("pk"))
    return rows.filter(~Exists(linked)).exclude(slug=INDEX_SLUG).order_by("title", "pk")


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """An address no page answers to, and the pages that name it."""

    key: str
    label: str
    pages: list[WikiPage]


def broken_links(*, actor: Actor, base: KnowledgeBase) -> list[BrokenLink]:
    """Addresses that lead nowhere, those named most often first. Two queries."""
    pages = {page.pk: page for page in page_list(actor=actor, base=base).filter(out_links__target__isnull=True).defer("content").distinct()}
    found: dict[str, BrokenLink] = {}
    for row in PageLink.objects.filter(kb=base, target__isnull=True, page_id__in=pages).order_by("key", "pk"):
        found.setdefault(row.key, BrokenLink(row.key, row.label, [])).pages.append(pages[row.page_id])
    return sorted(found.values(), key=lambda link: (-len(link.pages), link.key))


@dataclass(frozen=True, slots=True)
class LintIssue:
    type: Literal["orphan_page", "broken_link", "stale_ref", "missing_cross_ref", "empty_content", "duplicate_slug"]
    severity: Literal["info", "warning", "error"]
    page_slug: str
    description: str
    auto_fixable: bool = False
    target_slug: str = ""


@dataclass(frozen=True, slots=True)
class Lint:
    issues: list[LintIssue] = field(default_factory=list)
    health_score: int = 100
    stats: Mapping[str, int] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        return f"{len(self.issues)} issues found, health score {self.health_score}/100"


def wiki_lint(*, actor: Actor, base: KnowledgeBase) -> Lint:
    """What is wrong with a wiki, and how well it is (contract content 5.5). Raises: InvalidInput without a wiki."""
    rows = page_list(actor=actor, base=base).exclude(status=WikiPage.Status.ARCHIVED)
    pages = list(rows.prefetch_related(None).select_related(None).order_by("slug", "pk"))
    lonely = set(orphans(actor=actor, base=base).values_list("pk", flat=True))
    issues = [LintIssue("orphan_page", "info", page.slug, str(_("No page links to this one."))) for page in pages if page.pk in lonely]
    slugs = {page.pk: page.slug for page in pages}
    broken = PageLink.objects.filter(kb=base, target__isnull=True, page_id__in=slugs).order_by("page__slug", "place")
    gone = [(slugs[pk], key) for pk, key in broken.values_list("page_id", "key")]
    issues += [LintIssue("broken_link", "error", slug, str(_("It links to a page that is not there.")), True, key) for slug, key in gone]
    withdrawn = PageSource.objects.filter(page_id__in=slugs, state=WikiPage.State.SOURCE_WITHDRAWN).order_by("page__slug", "place")
    issues += [
        LintIssue("stale_ref", "warning", slugs[pk], str(_("It rests on a document that is gone.")), True, str(uid))
        for pk, uid in withdrawn.values_list("page_id", "document_uid")
    ]
    issues += _unlinked(base, pages)
    thin = [page for page in pages if len(page.content.encode()) < THIN_BYTES]
    issues += [LintIssue("empty_content", "warning", page.slug, str(_("There is hardly any text on it.")), True) for page in thin]
    links = PageLink.objects.filter(kb=base, target__isnull=False).count()
    score = 100 - _share(len(lonely), len(pages)) - 5 * len(gone) - 3 * len(thin) - (15 if len(pages) > 2 and not links else 0)
    stats = {"pages": len(pages), "links": links, "orphans": len(lonely), "broken": len(gone), "empty": len(thin)}
    return Lint(issues, max(0, score), stats)


def _share(part: int, whole: int) -> int:
    if not whole:
        return 0
    return 25 if part * 2 > whole else 10 if part * 4 > whole else 0


def _unlinked(base: KnowledgeBase, pages: Sequence[WikiPage]) -> list[LintIssue]:
    """Pages that name an entity or a concept without a link to it; at most one issue for each pair."""
    named = {page.pk: page for page in pages if page.page_type in (PageType.ENTITY, PageType.CONCEPT) and len(page.title) > 1}
    have = set(PageLink.objects.filter(kb=base, target__isnull=False).values_list("page_id", "target_id"))
    found = []
    for page in pages:
        text = page.content.casefold()
        for pk, other in named.items():
            if pk != page.pk and (page.pk, pk) not in have and other.title.casefold() in text:
                words = str(_("It names a page without a link to it."))
                found.append(LintIssue("missing_cross_ref", "info", page.slug, words, target_slug=other.slug))
    return found
