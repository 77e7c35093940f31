"""Entries follow their documents: deleted, brought back, copied and moved with them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.events import listen
from apps.common.jobs.models import LIVE, RunState
from apps.faq.models import FaqEntry, FaqImportRun, FaqIndexRun, FaqQuestion
from apps.faq.passages import index_mode, question_mode
from apps.faq.results import last_result
from apps.faq.selectors.entries import last_import_of
from apps.faq.services.entries import entries_reindex
from apps.faq.store import draft_of_entry, question_rows
from apps.knowledge.events import (
    BaseChanged,
    BaseDeleted,
    DocumentsCopied,
    DocumentsDeleted,
    DocumentsRefiled,
    DocumentsRestored,
    PairImportAsked,
)
from apps.knowledge.models import Document, KnowledgeBase

ROWS_AT_ONCE = 500


@listen(DocumentsDeleted)
def _documents_deleted(event: DocumentsDeleted) -> None:
    """The questions of what was deleted may be asked of other entries again."""
    FaqQuestion.objects.filter(entry__document_id__in=event.document_ids).delete()


@listen(DocumentsRestored)
def _documents_restored(event: DocumentsRestored) -> None:
    """Raises: Conflict when the base answers one of their questions again. Those of a whole base that came back have never been free."""
    rows = FaqEntry.objects.filter(document_id__in=event.document_ids, questions__isnull=True).order_by("pk")
    for entry in rows.select_related("document"):
        try:
            with transaction.atomic():
                FaqQuestion.objects.bulk_create(question_rows(entry, draft_of_entry(entry).questions))
        except IntegrityError as error:
            words = _("“%(question)s” was added again in the meantime. Delete that entry first.")
            raise Conflict(words % {"question": entry.standard_question[:80]}, code="question_taken") from error


@listen(DocumentsCopied)
def _documents_copied(event: DocumentsCopied) -> None:
    copies = dict(event.pairs)
    entries = list(FaqEntry.objects.filter(document_id__in=copies).order_by("pk"))
    if not entries:
        return
    own = ("id", "document", "kb", "number", "created_at", "updated_at")
    fields = [column.attname for column in FaqEntry._meta.concrete_fields if column.name not in own]
    made = []
    for entry in entries:
        values = {name: getattr(entry, name) for name in fields}
        made.append(FaqEntry(**values, document_id=copies[entry.document_id], kb_id=event.target_kb_id))
    FaqEntry.objects.bulk_create(made, batch_size=ROWS_AT_ONCE)
    _claim_questions(event.target_kb_id, made)
    source, target = (KnowledgeBase.objects.get(pk=pk) for pk in (event.source_kb_id, event.target_kb_id))
    if (index_mode(source), question_mode(source)) != (index_mode(target), question_mode(target)):
        entries_reindex(actor=Actor.system(event.space_id, "entries were copied"), base=target)


def _claim_questions(kb_id: int, entries: Sequence[FaqEntry]) -> None:
    """A mirror that is being made holds its old entries until the new ones are there: their questions pass to these."""
    rows = [row for entry in entries for row in question_rows(entry, draft_of_entry(entry).questions)]
    keys = [row.key for row in rows]
    for start in range(0, len(keys), ROWS_AT_ONCE):
        FaqQuestion.objects.filter(kb_id=kb_id, key__in=keys[start : start + ROWS_AT_ONCE]).delete()
    FaqQuestion.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)


@listen(DocumentsRefiled)
def _documents_refiled(event: DocumentsRefiled) -> None:
    """Entries move with their documents. Raises: Conflict when the other base answers one of their questions already."""
    moved = list(FaqEntry.objects.filter(document_id__in=event.document_ids).exclude(kb=F("document__kb")).select_related("document"))
    for entry in moved:
        try:
            with transaction.atomic():
                FaqEntry.objects.filter(pk=entry.pk).update(kb_id=entry.document.kb_id)
                FaqQuestion.objects.filter(entry=entry).update(kb_id=entry.document.kb_id)
        except IntegrityError as error:
            words = _("“%(question)s” is answered there already.")
            raise Conflict(words % {"question": entry.standard_question[:80]}, code="question_taken") from error


@listen(BaseDeleted)
def _base_deleted(event: BaseDeleted) -> None:
    for model in (FaqImportRun, FaqIndexRun):
        model.objects.filter(kb_ref=event.kb_id, state__in=LIVE).update(
            state=RunState.CANCELLED, reason="deleted", finished_at=timezone.now(), claim_token=None, cancel_requested=True
        )


@listen(BaseChanged)
def _base_changed(event: BaseChanged) -> None:
    """What entries are found by was changed: their passages are made anew."""
    if "options" not in event.changed:
        return
    base = KnowledgeBase.objects.filter(pk=event.kb_id, type=KnowledgeBase.Type.FAQ).first()
    if base is not None and Document.objects.filter(kb=base, type=Document.Type.PAIR, deleted_at__isnull=True).exists():
        entries_reindex(actor=Actor.system(event.space_id, "the settings of the base were changed"), base=base)


@listen(PairImportAsked)
def _pair_import_asked(event: PairImportAsked) -> None:
    run = last_import_of(event.kb_id)
    event.found = last_result(run) if run is not None else None
