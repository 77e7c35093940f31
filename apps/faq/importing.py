"""The work of an import: check every row, then write in slices, each in one transaction with what it says of its rows.

Killed anywhere and begun again it ends the same: rows that are done are marked done by the transaction that did them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, Max, OuterRef
from django.utils import timezone

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.events import publish
from apps.common.jobs.claims import Claim, Stop
from apps.common.jobs.models import RunState
from apps.faq.drafts import Draft, key_of
from apps.faq.models import FaqEntry, FaqImportRow, FaqImportRun
from apps.faq.planning import State, as_submitted, clash_of, fail, is_same, merge, plan
from apps.faq.selectors.entries import import_counts
from apps.faq.services.entries import UNCATEGORIZED, tag_named, vectors_follow
from apps.faq.store import entries_create, entry_rewrite, flags_set, tags_set, taken_questions
from apps.knowledge.events import BaseFilled
from apps.knowledge.models import Document, DocumentTag, KnowledgeBase, Tag
from apps.knowledge.services import documents_delete

SLICE = 100
VERDICTS = 250
STEPS = 3  # of the check, for each row: reading it, deciding, keeping the verdict
ROWS_AT_ONCE = 500
WRITTEN = ["state", "is_planned", "is_partial", "reason", "facts", "draft", "entry_ref"]


@dataclass(slots=True)
class Work:
    claim: Claim
    run: FaqImportRun
    actor: Actor
    base: KnowledgeBase
    total: int = 0
    done: int = 0
    tags: dict[str, Tag] = field(default_factory=dict)

    def progress(self) -> None:
        self.claim.progress(min(self.done, max(0, self.total - 1)), self.total, "rows")


def work_import(claim: Claim) -> None:
    """Raises: DomainError when the base is gone; Stop."""
    run = FaqImportRun.objects.get(pk=claim.run.pk)
    base = KnowledgeBase.objects.filter(pk=run.kb_ref, deleted_at__isnull=True).first()
    if base is None:
        raise DomainError("the base was deleted", code="deleted")
    work = Work(claim, run, Actor.system(run.space_id, f"import {run.task_id}"), base, total=run.progress_total)
    if not run.is_checked:
        _check(work)
    if not run.dry_run:
        if run.mode == FaqImportRun.Mode.REPLACE:
            _remove_others(work)
        work.done = FaqImportRow.objects.filter(run=run, is_planned=False).count()
        while _slice(work):
            work.progress()
            claim.check()
    _finish(work)


def _check_progress(work: Work, step: int) -> None:
    """Steps of the check done so far, three for each row; a worker that was told to stop stops here."""
    work.claim.check()
    work.claim.progress(min(step // STEPS, max(0, work.total - 1)), work.total, "checked")


def _check(work: Work) -> None:
    """Decide what becomes of every row and keep it, so that a worker that takes over decides nothing twice.

    The verdicts are kept in slices, so that progress is seen to move; they count once `is_checked` is set, after the last of them. A worker
    that takes over before that decides again, from the rows as they came.
    """
    run = work.run
    work.progress()
    rows = [as_submitted(row) for row in FaqImportRow.objects.filter(run=run).order_by("index")]
    plan(work.base, run, rows, lambda step: _check_progress(work, step))
    highest = FaqEntry.objects.filter(kb=work.base).aggregate(top=Max("pk"))["top"] or 0
    for start in range(0, len(rows), VERDICTS):
        _check_progress(work, 2 * len(rows) + start)
        with transaction.atomic():
            work.claim.hold()
            _save(rows[start : start + VERDICTS])
    work.claim.check()
    if not work.claim.rows().update(is_checked=True, highest=highest):
        raise Stop("lost")
    run.is_checked, run.highest = True, highest


def _remove_others(work: Work) -> None:
    """Replacing: what was there when the rows were checked and is not among them goes."""
    kept = FaqImportRow.objects.filter(run=work.run, entry_ref=OuterRef("pk"))
    old = FaqEntry.objects.filter(~Exists(kept), kb=work.base, pk__lte=work.run.highest or 0, document__deleted_at__isnull=True)
    while documents := [entry.document for entry in old.select_related("document").order_by("pk")[: 2 * SLICE]]:
        work.claim.check()
        with transaction.atomic():
            work.claim.hold()
            gone = documents_delete(actor=work.actor, base=work.base, documents=documents).count
            work.run.removed += gone
            work.claim.rows().update(removed=work.run.removed)
        work.progress()


def _slice(work: Work) -> bool:
    """Do the next planned rows; False when none is left."""
    rows = list(FaqImportRow.objects.filter(run=work.run, is_planned=True).order_by("index")[:SLICE])
    if not rows:
        return False
    try:
        _write(work, rows)
    except IntegrityError:  # somebody added one of these questions at this moment: find out which row it is
        work.tags.clear()
        for row in rows:
            row.refresh_from_db()
            try:
                _write(work, [row])
            except IntegrityError:
                _give_up(work, row)
    work.done += len(rows)
    return True


def _write(work: Work, rows: Sequence[FaqImportRow]) -> None:
    with transaction.atomic():
        work.claim.hold()
        if not KnowledgeBase.objects.filter(pk=work.base.pk, deleted_at__isnull=True).exists():
            raise DomainError("the base was deleted", code="deleted")
        _add(work, [row for row in rows if row.state == State.ADDED])
        for row in rows:
            if row.state == State.MERGED:
                _merge(work, row)
        for row in rows:
            row.is_planned = False
        _save(rows)


def _save(rows: Sequence[FaqImportRow]) -> None:
    """Write what became of rows that are there: one statement for many, where `bulk_update` is slow to say what it means."""
    FaqImportRow.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE, update_conflicts=True, unique_fields=["id"], update_fields=WRITTEN)


def _give_up(work: Work, row: FaqImportRow) -> None:
    row.refresh_from_db()
    fail(row, "changed_meanwhile")
    with transaction.atomic():
        work.claim.hold()
        row.save(update_fields=WRITTEN)


def _tag(work: Work, draft: Draft) -> Tag:
    if draft.tag_id > 0 and (found := Tag.objects.filter(kb=work.base, pk=draft.tag_id).first()) is not None:
        return found  # type: ignore[no-any-return]
    name = draft.tag_name or UNCATEGORIZED
    if name not in work.tags:
        work.tags[name] = tag_named(actor=work.actor, base=work.base, name=name)
    return work.tags[name]


def _add(work: Work, rows: Sequence[FaqImportRow]) -> None:
    drafts = [Draft.from_json(row.draft or {}) for row in rows]
    taken = taken_questions(work.base, (key_of(question) for draft in drafts for question in draft.questions))
    wanted: list[tuple[FaqImportRow, Draft]] = []
    for row, draft in zip(rows, drafts, strict=True):
        if any(key_of(question) in taken for question in draft.questions):
            fail(row, "changed_meanwhile")
        else:
            wanted.append((row, draft))
    if not wanted:
        return
    entries = entries_create(work.base, [(draft, _tag(work, draft)) for _row, draft in wanted], work.run.starter_id)
    for (row, _draft), entry in zip(wanted, entries, strict=True):
        row.entry_ref = entry.pk


def _merge(work: Work, row: FaqImportRow) -> None:
    rows = FaqEntry.objects.select_related("document").filter(pk=row.entry_ref, document__deleted_at__isnull=True)
    entry = rows.select_for_update(of=("self",)).first()
    draft = Draft.from_json(row.draft or {})
    if entry is None:
        fail(row, "changed_meanwhile")
        return
    if work.run.mode == FaqImportRun.Mode.REPLACE:
        flags_set(work.base, [entry.pk], is_enabled=draft.is_enabled, is_recommended=draft.is_recommended)
        if draft.answer_strategy is not None and draft.answer_strategy != entry.answer_strategy:
            FaqEntry.objects.filter(pk=entry.pk).update(answer_strategy=draft.answer_strategy, updated_at=timezone.now())
        if draft.tag_id or draft.tag_name:
            tags_set(work.base, {entry.pk: _tag(work, draft)})
        return
    final = merge(entry, draft)
    taken = taken_questions(work.base, map(key_of, final.questions))
    if clash_of(final) or any(found.entry_id != entry.pk for found in taken.values()):
        fail(row, "changed_meanwhile")
    elif is_same(entry, final, draft):
        row.state = State.SKIPPED
    else:
        entry_rewrite(work.base, entry, final)


def _finish(work: Work) -> None:
    run = work.run
    counts = import_counts(actor=work.actor, run=run)
    with transaction.atomic():
        work.claim.hold()
        if not run.dry_run:
            if run.mode == FaqImportRun.Mode.REPLACE:
                Tag.objects.filter(~Exists(DocumentTag.objects.filter(tag=OuterRef("pk"))), kb=work.base).delete()
            if Document.objects.filter(kb=work.base, type=Document.Type.PAIR, deleted_at__isnull=True).exists():
                vectors_follow(actor=work.actor, base=work.base)
            publish(BaseFilled(space_id=run.space_id, kb_id=work.base.pk))
            _record(work.actor, run, "faq.import_completed", "partial" if counts["failed"] or counts["partial"] else "success", counts)
        work.claim.rows().update(counts=counts, progress_done=run.progress_total, progress_failed=counts["failed"])
        if not work.claim.finish(RunState.DONE):
            raise Stop("lost")


def end_import(run: Any) -> None:
    """An import that ended early: what is in the base by then stays, and is found."""
    actor = Actor.system(run.space_id, f"import {run.task_id}")
    counts = import_counts(actor=actor, run=run)
    run.counts = counts
    run.save(update_fields=["counts", "updated_at"])
    if run.dry_run:
        return
    base = KnowledgeBase.objects.filter(pk=run.kb_ref, deleted_at__isnull=True).first()
    if base is not None and counts["added"] + counts["merged"]:
        vectors_follow(actor=actor, base=base)
        publish(BaseFilled(space_id=run.space_id, kb_id=base.pk))
    _record(actor, run, "faq.import_failed", "canceled" if run.state == RunState.CANCELLED else "failed", counts)


def _record(actor: Actor, run: FaqImportRun, action: str, outcome: str, counts: dict[str, int]) -> None:
    audit(
        actor,
        action,
        base=run.kb_uid,
        target_type="knowledge_base",
        target_id=str(run.kb_uid),
        outcome=outcome,
        title=run.file_name or None,
        task_id=run.task_id,
        count=run.progress_total,
        added=counts["added"],
        merged=counts["merged"],
        skipped=counts["skipped"],
        failed=counts["failed"],
        removed=run.removed or None,
        mode=run.mode,
        status=run.reason or None,
        trigger="system",
    )
