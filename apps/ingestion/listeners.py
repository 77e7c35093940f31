"""Documents that wait to be parsed get a run; those that were stopped or deleted lose theirs."""

from __future__ import annotations

from django.db.models import F

from apps.common.events import listen
from apps.common.jobs.models import LIVE
from apps.common.jobs.service import cancel_run
from apps.ingestion import passwords, services, trace
from apps.ingestion.models import IngestionRun, Span
from apps.knowledge.events import BaseDeleted, ChunksChanged, DocumentParseCancelled, DocumentsDeleted, DocumentStored
from apps.knowledge.models import Document


@listen(DocumentStored)
def _document_stored(event: DocumentStored) -> None:
    services.runs_supersede(event.document_id, reason="superseded")
    Document.objects.filter(pk=event.document_id).update(attempt=F("attempt") + 1)
    document = Document.objects.get(pk=event.document_id)
    services.run_start(document, services.PARSE, {"trigger": event.trigger, **event.options}, password=event.password)


@listen(DocumentParseCancelled)
def _parse_cancelled(event: DocumentParseCancelled) -> None:
    document = Document.objects.get(pk=event.document_id)
    for run in IngestionRun.objects.filter(document=document, state__in=LIVE):
        cancel_run(run)
    passwords.forget(document.pk)
    trace.end_open(document, document.attempt, Span.Status.CANCELLED, reason="cancelled", error="stopped by a user")


@listen(DocumentsDeleted)
def _documents_deleted(event: DocumentsDeleted) -> None:
    for document_id in event.document_ids:
        services.runs_supersede(document_id, reason="deleted")


@listen(BaseDeleted)
def _base_deleted(event: BaseDeleted) -> None:
    live = IngestionRun.objects.filter(document__kb_id=event.kb_id, state__in=LIVE)
    for document_id in set(live.values_list("document_id", flat=True)):
        services.runs_supersede(document_id, reason="deleted")


@listen(ChunksChanged)
def _chunks_changed(event: ChunksChanged) -> None:
    """Edited passages need new vectors; their words are indexed at once by retrieval."""
    document = Document.objects.filter(pk=event.document_id, deleted_at__isnull=True).first()
    if document is not None and document.is_answerable:
        services.run_start(document, services.EMBED, {"trigger": "edit"})
