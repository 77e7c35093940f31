"""Trying background work again and stopping it: a document has a state of its own, which has to follow."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.jobs.models import LIVE
from apps.common.jobs.service import cancel_run
from apps.ingestion import services
from apps.ingestion.models import IngestionRun, ReindexRun
from apps.knowledge.models import IN_FLIGHT, Document, ParseStatus
from apps.knowledge.services import document_cancel, document_reparse

NO_VECTORS = ("embedding_unavailable", "stalled", "internal")


def retry_pass(actor: Actor, run: IngestionRun) -> None:
    """Read the document again, or make its vectors; the failed row stays as it is, a new one does the work.

    Raises: Conflict when the document is gone, or is being worked on already; what `document_reparse` raises.
    """
    document = Document.objects.select_related("kb").filter(pk=run.document_id, deleted_at__isnull=True).first()
    if document is None or document.kb.deleted_at is not None:
        raise Conflict(_("The document was deleted; there is nothing to try again."), code="deleted")
    if IngestionRun.objects.filter(document=document, state__in=LIVE).exists():
        raise Conflict(_("The document is being worked on already."), code="live")
    if run.kind not in (services.EMBED, services.EMBED_REMOTE):
        document_reparse(actor=actor, document=document)
        return
    with transaction.atomic():
        # Findable all the while; "finalizing" is what a document is called whose vectors are being made.
        rows = Document.objects.filter(pk=document.pk, parse_status=ParseStatus.COMPLETED, reason__in=NO_VECTORS)
        rows.update(parse_status=ParseStatus.FINALIZING, reason="", error_message="", pending_subtasks_count=1)
        if services.run_start(document, services.EMBED, {"trigger": "moderator"}) is None:
            raise Conflict(_("The document is being worked on already."), code="live")


def cancel_pass(actor: Actor, run: IngestionRun) -> None:
    """Stop the work on the run's document; a pass that only makes vectors of a finished document ends alone."""
    document = Document.objects.select_related("kb").filter(pk=run.document_id, deleted_at__isnull=True).first()
    if document is not None and document.parse_status in IN_FLIGHT:
        document_cancel(actor=actor, document=document)
    else:
        cancel_run(run)


def retry_reindex(actor: Actor, run: ReindexRun) -> None:
    """Start the re-index of the base again, to the same model; vectors that were made are used. Raises: what `reindex_start` raises."""
    if run.kb.deleted_at is not None:
        raise Conflict(_("The knowledge base was deleted; there is nothing to try again."), code="deleted")
    services.reindex_start(actor=actor, base=run.kb, model_id=run.target_model_id)


def cancel_reindex(actor: Actor, run: ReindexRun) -> None:
    """Stop it; the vectors that served go on serving. Raises: Conflict once the new vectors have taken over."""
    services.reindex_cancel(actor=actor, base=run.kb)
