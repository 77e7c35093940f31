"""Starting and ending ingestion runs, and what that means for their document."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from apps.common.jobs.models import LIVE, RunState
from apps.common.jobs.service import enqueue
from apps.ingestion import trace
from apps.ingestion.models import IngestionRun, Span
from apps.knowledge.models import Chunk, Document, ParseStatus
from apps.knowledge.models.document import IN_FLIGHT

PARSE, OCR, EMBED = "parse", "ocr", "embed"


def run_start(document: Document, kind: str, options: dict[str, Any] | None = None) -> IngestionRun | None:
    """Queue one pass over a document, or None when one of that kind is live already. Runs in the caller's transaction."""
    try:
        with transaction.atomic():
            run = IngestionRun.objects.create(
                space_id=document.space_id, document=document, kind=kind, document_attempt=document.attempt, options=options or {}
            )
    except IntegrityError:
        return None
    enqueue(run)
    return run


def runs_supersede(document_id: int, *, reason: str) -> int:
    """End every live run of a document at once: a worker that holds one loses its hold and stores nothing."""
    return int(
        IngestionRun.objects.filter(document_id=document_id, state__in=LIVE).update(
            state=RunState.CANCELLED, reason=reason, finished_at=timezone.now(), claim_token=None, cancel_requested=True
        )
    )


def run_ended(run: IngestionRun) -> None:
    """The row ended without its work having said how: make the document's state follow (in the same transaction)."""
    document = Document.objects.select_related("kb").filter(pk=run.document_id).first()
    if document is None or run.document_attempt != document.attempt:
        return
    if run.state == RunState.CANCELLED:
        trace.end_open(document, run.document_attempt, Span.Status.CANCELLED, reason="cancelled")
        document_leave(document, ParseStatus.CANCELLED, reason="cancelled", error="stopped by a user")
    elif run.state == RunState.FAILED and run.kind == EMBED:
        embed_failed(document, run)
    elif run.state == RunState.FAILED and run.kind == OCR and document.chunk_count:
        ocr_failed(document, run.reason or "internal", run.error)
    elif run.state == RunState.FAILED:
        document_fail(document, run.reason or "internal", run.error)


def document_fail(document: Document, reason: str, error: str, *, stage: str = "") -> None:
    """The document could not be read: say why; what was findable before stays out of the index (its passages are gone or old)."""
    status = Span.Status.FAILED
    if stage:
        trace.finish(document, document.attempt, stage, status, reason=reason, error=error)
    trace.end_open(document, document.attempt, status, reason=reason, error=error)
    if document_leave(document, ParseStatus.FAILED, reason=reason, error=error):
        Chunk.objects.filter(document=document).delete()
        Document.objects.filter(pk=document.pk).update(chunk_count=0, vector_count=0, enabled=False, index_rev=F("index_rev") + 1)


def ocr_failed(document: Document, reason: str, error: str) -> None:
    """OCR of a document that has text already did not work: it keeps what it has, with a warning, and gets its vectors."""
    trace.finish(document, document.attempt, "multimodal", Span.Status.FAILED, reason=reason, error=error)
    document.warnings = [*document.warnings, {"code": reason, "message": error, "count": 1, "position": {}}]
    document.save(update_fields=["warnings", "updated_at"])
    run_start(document, EMBED)


def document_leave(document: Document, status: str, *, reason: str = "", error: str = "") -> bool:
    """Move a document in flight to a final state; False when it is not in flight any more (deleted, superseded)."""
    moved = Document.objects.filter(pk=document.pk, attempt=document.attempt, deleted_at__isnull=True, parse_status__in=IN_FLIGHT).update(
        parse_status=status,
        reason=reason,
        error_message=error[:4000],
        pending_subtasks_count=0,
        processed_at=timezone.now(),
        updated_at=timezone.now(),
    )
    return bool(moved)


def embed_failed(document: Document, run: IngestionRun) -> None:
    """Vectors could not be made: the document stays findable by its words and says so (a failed enrichment never fails a document)."""
    reason = run.reason if run.reason in ("stalled", "internal") else "embedding_unavailable"
    trace.finish(document, document.attempt, "embedding", Span.Status.FAILED, reason=reason, error=run.error)
    document_complete(document, remark=reason, error=run.error)


def document_complete(document: Document, *, remark: str = "", error: str = "") -> None:
    """The last pass of an attempt is over; the document waits for others of its passes if there are any."""
    others = IngestionRun.objects.filter(document=document, document_attempt=document.attempt, state__in=LIVE).exclude(kind=EMBED)
    if others.exists():
        return
    trace.start(document, document.attempt, "postprocess")
    trace.finish(document, document.attempt, "postprocess", passages=document.chunk_count, vectors=document.vector_count)
    trace.finish(document, document.attempt, "knowledge_processing")
    document_leave(document, ParseStatus.COMPLETED, reason=remark or document.reason, error=error)
