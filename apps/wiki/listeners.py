"""Pages follow their documents: deleted, brought back, copied and moved with them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import F
from django.utils import timezone

from apps.common.events import listen, publish
from apps.common.jobs.models import LIVE, RunState
from apps.knowledge.events import (
    BaseChanged,
    BaseDeleted,
    BaseFilled,
    CopyStarted,
    DocumentsCopied,
    DocumentsDeleted,
    DocumentsRefiled,
    DocumentsRestored,
)
from apps.knowledge.models import Document, KnowledgeBase
from apps.wiki.copying import folders_copy, pages_copy, sources_follow
from apps.wiki.enabling import has_wiki
from apps.wiki.linking import current_text, links_mend, links_write, turned
from apps.wiki.models import PageLink, PageSlug, WikiPage, WikiRun
from apps.wiki.slugs import numbered

ROWS_AT_ONCE = 500


@listen(DocumentsDeleted)
def _documents_deleted(event: DocumentsDeleted) -> None:
    """Links to deleted pages are broken, their addresses free; what it takes to bring them back is kept with them."""
    for start in range(0, len(event.document_ids), ROWS_AT_ONCE):
        pages = list(WikiPage.objects.filter(document_id__in=event.document_ids[start : start + ROWS_AT_ONCE]))
        if pages:
            _put_away(pages)


def _put_away(pages: Sequence[WikiPage]) -> None:
    pks = [page.pk for page in pages]
    slugs: dict[int, list[str]] = {}
    for page_id, slug in PageSlug.objects.filter(page_id__in=pks).order_by("-is_current", "pk").values_list("page_id", "slug"):
        slugs.setdefault(page_id, []).append(slug)
    links: dict[int, dict[str, int]] = {}
    for page_id, key, target in PageLink.objects.filter(page_id__in=pks, target__isnull=False).values_list("page_id", "key", "target_id"):
        links.setdefault(page_id, {})[key] = target
    for page in pages:
        page.trashed = {"slugs": slugs.get(page.pk, [page.slug]), "links": links.get(page.pk, {})}
    WikiPage.objects.bulk_update(pages, ["trashed"], batch_size=ROWS_AT_ONCE)
    PageSlug.objects.filter(page_id__in=pks).delete()
    PageLink.objects.filter(page_id__in=pks).delete()
    PageLink.objects.filter(target_id__in=pks).update(target=None)


@listen(DocumentsRestored)
def _documents_restored(event: DocumentsRestored) -> None:
    """Pages get their addresses back as far as nobody has taken them, and links mean what they meant. A whole base had never lost them."""
    pages = list(WikiPage.objects.select_related("kb").filter(document_id__in=event.document_ids).exclude(trashed={}).order_by("pk"))
    for page in pages:
        _addresses_back(page)
    for page in pages:
        known = {key: target for key, target in page.trashed.get("links", {}).items() if _is_live(page.kb_id, target)}
        links_write(page, known)
        page.content = current_text(page.content, turned([page.pk]).get(page.pk, {}))
        links_write(page, dict(_targets(page)))
        links_mend(page)
        page.trashed = {}
        page.save(update_fields=["content", "trashed"])


def _targets(page: WikiPage) -> list[tuple[str, int]]:
    rows = PageLink.objects.filter(page=page, target__isnull=False)
    return list(rows.values_list("target__slug", "target_id"))


def _is_live(kb_id: int, pk: int) -> bool:
    return bool(WikiPage.objects.live().filter(kb_id=kb_id, pk=pk).exists())


def _addresses_back(page: WikiPage) -> None:
    had = page.trashed.get("slugs") or [page.slug]
    taken = {row.slug: row for row in PageSlug.objects.filter(kb_id=page.kb_id, slug__in=had)}
    slug = had[0]
    for number in range(2, 10_000):
        if not PageSlug.objects.filter(kb_id=page.kb_id, slug=slug).exists():
            break
        slug = numbered(had[0], number)
    rows = [PageSlug(space_id=page.space_id, kb_id=page.kb_id, page=page, slug=slug, is_current=True)]
    rows += [
        PageSlug(space_id=page.space_id, kb_id=page.kb_id, page=page, slug=old, is_current=False) for old in had[1:] if old not in taken
    ]
    PageSlug.objects.bulk_create(rows)
    if slug != page.slug:
        page.slug = slug
        page.save(update_fields=["slug"])


@listen(DocumentsCopied)
def _documents_copied(event: DocumentsCopied) -> None:
    pages_copy(event.space_id, event.target_kb_id, dict(event.pairs))


@listen(CopyStarted)
def _copy_started(event: CopyStarted) -> None:
    folders_copy(event.space_id, event.source_kb_id, event.target_kb_id)


@listen(BaseFilled)
def _base_filled(event: BaseFilled) -> None:
    sources_follow(event.kb_id)


@listen(BaseChanged)
def _base_changed(event: BaseChanged) -> None:
    """Pages of a wiki that is turned off are kept and not found; turned on again, they are found again."""
    base = KnowledgeBase.objects.filter(pk=event.kb_id).first() if "indexing_strategy" in event.changed else None
    if base is None:
        return
    is_on = has_wiki(base)
    pages = WikiPage.objects.live().filter(kb=base, status=WikiPage.Status.PUBLISHED).exclude(document__enabled=is_on)
    pks = list(pages.order_by("document_id").values_list("document_id", flat=True))
    for start in range(0, len(pks), ROWS_AT_ONCE):
        part = pks[start : start + ROWS_AT_ONCE]
        Document.objects.filter(pk__in=part).update(enabled=is_on, index_rev=F("index_rev") + 1, updated_at=timezone.now())
        publish(DocumentsRefiled(space_id=event.space_id, document_ids=tuple(part)))


@listen(BaseDeleted)
def _base_deleted(event: BaseDeleted) -> None:
    WikiRun.objects.filter(kb_ref=event.kb_id, state__in=LIVE).update(
        state=RunState.CANCELLED, reason="deleted", finished_at=timezone.now(), claim_token=None, cancel_requested=True
    )
