"""What a chat model writes about a document in the background: its summary, its tags, and the questions its passages answer.

The document is findable all the while, and a model that fails never fails a document: the summary says `failed` and keeps its old text.
"""

from __future__ import annotations

import json

from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.jobs.claims import Claim
from apps.common.jobs.models import RunState
from apps.common.jobs.service import cancel_run
from apps.ingestion import services
from apps.ingestion.models import IngestionRun
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import (
    questions_of,
    questions_regenerate,
    summary_draft,
    summary_state_set,
    summary_store,
    tags_propose,
)


def enrich_work(claim: Claim) -> None:
    """Write what the run's options ask for; begun again it goes on with the passages that have no questions yet.

    Raises: TransientError when the model may answer later, DomainError when it will not, Stop.
    """
    run = IngestionRun.objects.get(pk=claim.run.pk)
    document = _document(run)
    if document is None:
        claim.finish(RunState.CANCELLED, reason="deleted")
        return
    actor = Actor.system(document.space_id, f"run {run.pk}")
    if run.options.get("summary"):
        _summarise(claim, actor, document)
    if run.options.get("tags"):
        claim.check()
        tags_propose(actor=actor, document=document)
    if run.options.get("questions"):
        _ask(claim, actor, document)
    claim.finish(RunState.DONE)


def _document(run: IngestionRun) -> Document | None:
    rows = Document.objects.select_related("kb").filter(pk=run.document_id, deleted_at__isnull=True, attempt=run.document_attempt)
    return rows.filter(kb__deleted_at__isnull=True).first()


def _summarise(claim: Claim, actor: Actor, document: Document) -> None:
    """Once more where the document changed while the model wrote: a summary of an earlier text is none."""
    summary_state_set(actor=actor, document=document, state="processing")
    while True:
        claim.check()
        document.refresh_from_db()
        made_from = _made_from(document)
        text = summary_draft(document)
        claim.check()
        now = Document.objects.select_related("kb").get(pk=document.pk)
        if _made_from(now) == made_from:
            summary_store(actor=actor, document=document, text=text)
            return


def _made_from(document: Document) -> str:
    rows = Chunk.objects.filter(document=document).order_by("pk").values_list("pk", "content_revision")
    return json.dumps([document.title, document.custom_metadata, list(rows)], sort_keys=True, default=str)


def _ask(claim: Claim, actor: Actor, document: Document) -> None:
    chunks = Chunk.objects.select_related("kb", "document").filter(document=document, chunk_type=Chunk.Type.TEXT, is_enabled=True)
    todo = [chunk for chunk in chunks.order_by("chunk_index", "pk") if not questions_of(chunk)]
    config = ((document.metadata or {}).get("process_overrides") or {}).get("question_generation_config")
    for done, chunk in enumerate(todo):
        claim.check()
        claim.progress(done, len(todo), "passages")
        questions_regenerate(actor=actor, chunk=chunk, config=config)
    claim.progress(len(todo), len(todo), "passages")


def enrich_ended(run: IngestionRun) -> None:
    """The run ended without having written the summary: the document says so and keeps what it had."""
    document = _document(run)
    if document is not None and run.options.get("summary"):
        summary_state_set(actor=Actor.system(run.space_id, f"run {run.pk}"), document=document, state="failed")


def retry_enrich(actor: Actor, run: IngestionRun) -> None:
    """Ask the model again. Raises: Conflict when the document is gone, parsed anew, or being written about already."""
    document = _document(run)
    if document is None:
        raise Conflict(_("The document was deleted or parsed again; there is nothing to try again."), code="deleted")
    if run.options.get("summary"):
        summary_state_set(actor=actor, document=document, state="pending")
    if services.run_start(document, services.ENRICH, run.options) is None:
        raise Conflict(_("The document is being worked on already."), code="live")


def cancel_enrich(actor: Actor, run: IngestionRun) -> None:
    """Stop it; the document keeps the summary and the questions it has."""
    cancel_run(run)
    if run.state == RunState.CANCELLED:  # nobody held it, so nobody else says how it ended
        enrich_ended(run)
