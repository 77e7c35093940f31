"""Reading entries and imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import Forbidden, InvalidInput, NotFound
from apps.common.jobs.models import LIVE, RunState
from apps.common.policy import authorize
from apps.faq.models import FIRST_NUMBER, FaqEntry, FaqImportRow, FaqImportRun
from apps.knowledge.models import Chunk, Document, KnowledgeBase, Tag
from apps.knowledge.selectors import as_uuid, base_get

RESULT_KEPT = timedelta(days=7)
FAILURES_AT_ONCE = 100
SEARCH_FIELDS = ("standard_question", "similar_questions", "answers")
_TASK = re.compile(r"faq_import_(\d{1,18})_\d{1,20}_[0-9a-f]{8}_([0-9a-fA-F-]{32,36})")


@dataclass(frozen=True, slots=True)
class EntryFilters:
    """What a list of entries is narrowed by (contract content F1). `enabled`, `recommended`: "yes", "no" or ""."""

    keyword: str = ""
    search_field: str = ""
    tag_uids: Sequence[Any] | None = None
    tag_pk: int = 0
    enabled: Literal["", "yes", "no"] = ""
    recommended: Literal["", "yes", "no"] = ""
    sort_order: str = "desc"
    document_uid: str = ""


def faq_base_get(*, actor: Actor, kb_id: Any) -> KnowledgeBase:
    """The FAQ base of this id. Raises: NotFound; InvalidInput when it is of another type."""
    base = base_get(actor=actor, kb_id=kb_id)
    check_faq(base)
    return base


def check_faq(base: KnowledgeBase) -> None:
    """Raises: InvalidInput when the base holds no question pairs."""
    if base.type != KnowledgeBase.Type.FAQ:
        raise InvalidInput(_("Only FAQ bases have question pairs. Choose one, or make one."), code="not_a_faq_base", api_code=1000)


def _rows(actor: Actor) -> Any:
    return FaqEntry.objects.visible_to(actor).select_related("kb", "document").prefetch_related("document__tags")


def entry_list(*, actor: Actor, base: KnowledgeBase, filters: EntryFilters = EntryFilters()) -> Any:
    """Entries of a base as a queryset, latest change first, disabled ones included."""
    authorize(actor, "faq.read", base)
    rows = _rows(actor).filter(kb=base)
    if filters.tag_uids is not None:
        tagged = Document.objects.filter(kb=base, tags__uid__in=[uid for each in filters.tag_uids if (uid := as_uuid(each))])
        rows = rows.filter(document__in=tagged.values("pk"))
    elif filters.tag_pk:
        rows = rows.filter(document__in=Document.objects.filter(kb=base, tags__pk=filters.tag_pk).values("pk"))
    if filters.keyword:
        rows = rows.filter(_holds(filters.keyword, filters.search_field))
    if filters.document_uid:
        rows = rows.filter(document__uid=as_uuid(filters.document_uid) or UUID(int=0))
    if filters.enabled:
        rows = rows.filter(is_enabled=filters.enabled == "yes")
    if filters.recommended:
        rows = rows.filter(is_recommended=filters.recommended == "yes")
    sign = "" if filters.sort_order == "asc" else "-"
    return rows.order_by(f"{sign}updated_at", f"{sign}pk")


def _holds(keyword: str, field: str) -> Q:
    columns = {"standard_question": "standard_question", "similar_questions": "similar_text", "answers": "answers_text"}
    if field in columns:
        return Q(**{f"{columns[field]}__icontains": keyword})
    every = Q()
    for column in (*columns.values(), "negative_text"):
        every |= Q(**{f"{column}__icontains": keyword})
    return every


def entries_in_order(*, actor: Actor, base: KnowledgeBase) -> Any:
    """Every entry in the order in which it came, for exports."""
    authorize(actor, "faq.read", base)
    return _rows(actor).filter(kb=base).order_by("pk")


def number_filter(numbers: Iterable[int]) -> Q:
    """Entries that clients know by one of these numbers."""
    own: list[int] = []
    brought: list[int] = []
    for number in numbers:
        (own if number >= FIRST_NUMBER else brought).append(number)
    return Q(number__isnull=True, pk__in=[n - FIRST_NUMBER for n in own if n < 2**62]) | Q(number__in=brought)


def entry_number(raw: Any) -> int:
    """The number of an entry as it stands in an address. Raises: InvalidInput."""
    text = str(raw)
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):
        raise InvalidInput(_("An entry id is a whole number above 0."), field="entry_id", api_code=1000)
    return int(text)


def entry_get(*, actor: Actor, base: KnowledgeBase, entry_id: Any) -> FaqEntry:
    """The entry of this base by its number. Raises: InvalidInput when it is none; NotFound."""
    found = _rows(actor).filter(number_filter([entry_number(entry_id)]), kb=base).first()
    if found is None:
        raise NotFound(_("Entry not found."))
    return found  # type: ignore[no-any-return]


def entry_to_change(*, actor: Actor, base: KnowledgeBase, entry_id: Any) -> FaqEntry:
    """The same for whoever changes it. Raises: as `entry_get`; Forbidden when it is in another base of the space (contract content F5)."""
    found = entry_anywhere(actor=actor, entry_id=entry_id)
    if found is None:
        raise NotFound(_("Entry not found."))
    if found.kb_id != base.pk:
        raise Forbidden(_("This entry is in another base."), code="other_base")
    return found


def entry_anywhere(*, actor: Actor, entry_id: Any) -> FaqEntry | None:
    """The entry of this number in whichever base of the actor it is."""
    return _rows(actor).filter(number_filter([entry_number(entry_id)])).first()  # type: ignore[no-any-return]


def entries_get(*, actor: Actor, base: KnowledgeBase, numbers: Iterable[int]) -> dict[int, FaqEntry]:
    """{number: entry} of those that are in the base."""
    wanted = sorted(set(numbers))
    found: dict[int, FaqEntry] = {}
    for start in range(0, len(wanted), 500):
        for entry in _rows(actor).filter(number_filter(wanted[start : start + 500]), kb=base):
            found[entry.seq_id] = entry
    return found


def entries_of(*, actor: Actor, document_ids: Iterable[int]) -> dict[int, FaqEntry]:
    """{primary key of its document: entry}."""
    return {entry.document_id: entry for entry in _rows(actor).filter(document_id__in=list(document_ids))}


def entry_figures(*, actor: Actor, base: KnowledgeBase) -> dict[str, int]:
    """How many entries there are in all, enabled, recommended; one query."""
    authorize(actor, "faq.read", base)
    rows = FaqEntry.objects.visible_to(actor).filter(kb=base)
    counted: dict[str, int] = rows.aggregate(
        total=Count("pk"), enabled=Count("pk", filter=Q(is_enabled=True)), recommended=Count("pk", filter=Q(is_recommended=True))
    )
    return counted


def task_parts(task_id: str) -> tuple[int, str]:
    """(space, base) that the id of an import names. Raises: InvalidInput when it is no such id."""
    found = _TASK.fullmatch(task_id)
    if found is None or as_uuid(found[2]) is None:
        raise InvalidInput(_("This is not the id of a task: invalid task ID."), field="task_id", api_code=1000)
    return int(found[1]), found[2]


def import_get(*, actor: Actor, task_id: str) -> FaqImportRun:
    """The latest run of an import. Raises: InvalidInput when it is no such id; NotFound when it is unknown, foreign, or a week old."""
    authorize(actor, "faq.progress")
    space, _kb = task_parts(task_id)
    rows = FaqImportRun.objects.visible_to(actor).filter(task_id=task_id, created_at__gt=timezone.now() - RESULT_KEPT)
    found = rows.order_by("-pk").first()
    hidden = found is not None and actor.kb_uids is not None and found.kb_uid not in actor.kb_uids
    alive = found is not None and KnowledgeBase.objects.visible_to(actor).filter(uid=found.kb_uid).exists()
    if found is None or hidden or not alive or space != found.space_id:
        raise NotFound(_("Import not found: task not found."))
    return found  # type: ignore[no-any-return]


def import_live(*, actor: Actor, base: KnowledgeBase) -> FaqImportRun | None:
    """The import of the base that is waiting or under way."""
    authorize(actor, "faq.read", base)
    return FaqImportRun.objects.filter(kb_ref=base.pk, state__in=LIVE).first()  # type: ignore[no-any-return]


def import_last(*, actor: Actor, base: KnowledgeBase) -> FaqImportRun | None:
    """The last import of the base that changed it."""
    authorize(actor, "faq.read", base)
    return last_import_of(base.pk)


def last_import_of(kb_pk: int) -> FaqImportRun | None:
    """The last import that changed this base of the open scope, for those who have checked that it may be read."""
    rows = FaqImportRun.objects.filter(kb_ref=kb_pk, dry_run=False, state=RunState.DONE)
    return rows.order_by("-pk").first()  # type: ignore[no-any-return]


def import_failures(*, actor: Actor, run: FaqImportRun, offset: int = 0, limit: int = FAILURES_AT_ONCE) -> tuple[list[FaqImportRow], int]:
    """(rows that could not be taken whole, in their order, how many there are): those that failed and those that lost questions."""
    authorize(actor, "faq.progress")
    rows = FaqImportRow.objects.filter(Q(state=FaqImportRow.State.FAILED) | Q(is_partial=True), run=run).order_by("index")
    return list(rows[offset : offset + limit]), rows.count()


def import_rows(*, actor: Actor, run: FaqImportRun, states: Sequence[str]) -> Any:
    """Rows of an import in these states, in their order."""
    authorize(actor, "faq.progress")
    return FaqImportRow.objects.filter(run=run, state__in=states).order_by("index")


def import_base(run: FaqImportRun) -> KnowledgeBase | None:
    """The live base of an import; within the open scope."""
    return KnowledgeBase.objects.filter(pk=run.kb_ref, deleted_at__isnull=True).first()  # type: ignore[no-any-return]


def container_uid(*, actor: Actor, base: KnowledgeBase) -> str:
    """The id clients know as the home of every entry of a base; "" before anything was written."""
    authorize(actor, "faq.read", base)
    found = Document.objects.filter(kb=base, type=Document.Type.FAQ, deleted_at__isnull=True).values_list("uid", flat=True).first()
    return str(found) if found else ""


def heads_of(*, actor: Actor, entries: Iterable[FaqEntry]) -> dict[int, str]:
    """{primary key of its document: id of its first passage}; one query."""
    documents = [entry.document_id for entry in entries]
    rows = Chunk.objects.visible_to(actor).filter(document_id__in=documents, chunk_type=Chunk.Type.FAQ, chunk_index=0)
    return {document: str(uid) for document, uid in rows.values_list("document_id", "uid")}


def tag_exists(*, actor: Actor, base: KnowledgeBase, number: int) -> bool:
    authorize(actor, "faq.read", base)
    return bool(Tag.objects.visible_to(actor).filter(kb=base, pk=number).exists())


def entries_by_pk(*, actor: Actor, base: KnowledgeBase, pks: Sequence[int]) -> dict[int, FaqEntry]:
    """{primary key: entry} of those that are in the base."""
    found: dict[int, FaqEntry] = {}
    for start in range(0, len(pks), 500):
        found |= {entry.pk: entry for entry in _rows(actor).filter(kb=base, pk__in=pks[start : start + 500])}
    return found


def import_all_failures(*, actor: Actor, run: FaqImportRun) -> Any:
    """Every row that could not be taken whole, in their order."""
    authorize(actor, "faq.progress")
    return FaqImportRow.objects.filter(Q(state=FaqImportRow.State.FAILED) | Q(is_partial=True), run=run).order_by("index")


def import_counts(*, actor: Actor, run: FaqImportRun) -> dict[str, int]:
    """What became of the rows so far (contract content F12): they add up to what was submitted once all are done."""
    authorize(actor, "faq.progress")
    settled = Q() if run.dry_run else Q(is_planned=False)
    rows: Any = FaqImportRow.objects.filter(run=run)
    state = FaqImportRow.State
    found = rows.aggregate(
        added=Count("pk", filter=settled & Q(state=state.ADDED)),
        merged=Count("pk", filter=settled & Q(state=state.MERGED)),
        skipped=Count("pk", filter=Q(state=state.SKIPPED)),
        failed=Count("pk", filter=Q(state=state.FAILED)),
        partial=Count("pk", filter=settled & Q(is_partial=True) & Q(state__in=[state.ADDED, state.MERGED])),
    )
    return {name: int(value) for name, value in found.items()}
