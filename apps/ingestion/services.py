"""Starting and ending ingestion runs, and what that means for their document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.jobs.models import LIVE, RunState
from apps.common.jobs.service import cancel_run, enqueue
from apps.common.policy import authorize
from apps.ingestion import passwords, trace
from apps.ingestion.models import IngestionRun, ReindexRun, Span
from apps.knowledge.models import Chunk, Document, KnowledgeBase, ParseStatus
from apps.knowledge.models.document import IN_FLIGHT
from apps.knowledge.services import has_chat_model, pairs_container, summary_state_set, tagging_wanted
from apps.llm.failures import FAILURES
from apps.llm.services import deployment_model_id, embedding_model_known, is_local, known_space
from apps.retrieval.services import serving_of

PARSE, OCR, EMBED, EMBED_REMOTE, REINDEX, ENRICH = "parse", "ocr", "embed", "embed_remote", "reindex", "enrich"
PICTURES, DESCRIBE = "pictures", "describe"
EMBEDS = (EMBED, EMBED_REMOTE)
#: What goes on beside a document that is complete: it is found all the while.
BESIDE = (ENRICH, PICTURES, DESCRIBE)


def run_start(document: Document, kind: str, options: dict[str, Any] | None = None, *, password: str = "") -> IngestionRun | None:
    """Queue one pass over a document, or None when one of that kind is live already. Runs in the caller's transaction.

    `password` opens a locked file; it is sealed for this pass alone.
    """
    try:
        with transaction.atomic():
            run = IngestionRun.objects.create(
                space_id=document.space_id, document=document, kind=kind, document_attempt=document.attempt, options=options or {}
            )
    except IntegrityError:
        return None
    passwords.keep(run, password)
    enqueue(run)
    return run


def parses_start(document_ids: Sequence[int], options: dict[int, dict[str, Any]]) -> None:
    """Queue a parse of each of many documents that have no live one, in the caller's transaction and a constant number of queries."""
    rows = Document.objects.filter(pk__in=document_ids).order_by("pk").only("pk", "space_id", "attempt")
    runs = [
        IngestionRun(space_id=row.space_id, document=row, kind=PARSE, document_attempt=row.attempt, options=options.get(row.pk, {}))
        for row in rows
    ]
    made = IngestionRun.objects.bulk_create(runs)
    if made:
        enqueue(made[0])  # one bell is enough: a worker goes on until nothing is left


def documents_supersede(document_ids: Sequence[int], *, reason: str) -> None:
    """`runs_supersede` for many documents."""
    passwords.forget_all(document_ids)
    IngestionRun.objects.filter(document_id__in=document_ids, state__in=LIVE).update(
        state=RunState.CANCELLED, reason=reason, finished_at=timezone.now(), claim_token=None, cancel_requested=True
    )


def embed_start(document: Document, options: dict[str, Any] | None = None) -> IngestionRun | None:
    """Queue the making of vectors: endpoints have a line of their own, so that one that does not answer holds up nobody else."""
    model_id = serving_of(document.kb_id).model_id or document.kb.embedding_model_id
    return run_start(document, EMBED if is_local(model_id) else EMBED_REMOTE, options)


def embeds_start(documents: Sequence[Document], options: dict[str, Any]) -> None:
    """`embed_start` for many documents: all rows at once, and one bell for each kind."""
    kinds = {kb_id: EMBED if is_local(serving_of(kb_id).model_id) else EMBED_REMOTE for kb_id in {each.kb_id for each in documents}}
    runs = [
        IngestionRun(space_id=each.space_id, document=each, kind=kinds[each.kb_id], document_attempt=each.attempt, options=options)
        for each in documents
    ]
    IngestionRun.objects.bulk_create(runs, ignore_conflicts=True, batch_size=500)
    for run in {run.kind: run for run in runs}.values():
        enqueue(run)


def vectors_start(documents: Sequence[Document], options: dict[str, Any]) -> None:
    """`embeds_start` for documents of which some may be question pairs: those of a base share one run."""
    embeds_start([each for each in documents if each.type != Document.Type.PAIR], options)
    for kb in {each.kb_id: each.kb for each in documents if each.type == Document.Type.PAIR}.values():
        embed_start(pairs_container(actor=Actor.system(kb.space_id, "vectors of question pairs"), base=kb), options)


def runs_supersede(document_id: int, *, reason: str) -> int:
    """End every live run of a document at once: a worker that holds one loses its hold and stores nothing."""
    passwords.forget(document_id)
    return int(
        IngestionRun.objects.filter(document_id=document_id, state__in=LIVE).update(
            state=RunState.CANCELLED, reason=reason, finished_at=timezone.now(), claim_token=None, cancel_requested=True
        )
    )


def run_ended(run: IngestionRun) -> None:
    """The row ended without its work having said how: make the document's state follow (in the same transaction)."""
    passwords.forget(run.document_id)
    document = Document.objects.select_related("kb").filter(pk=run.document_id).first()
    if document is None or run.document_attempt != document.attempt:
        return
    if run.state == RunState.CANCELLED:
        trace.end_open(document, run.document_attempt, Span.Status.CANCELLED, reason="cancelled")
        document_leave(document, ParseStatus.CANCELLED, reason="cancelled", error="stopped by a user")
    elif run.state == RunState.FAILED and run.kind in EMBEDS:
        embed_failed(document, run)
    elif run.state == RunState.FAILED and run.kind == OCR and document.chunk_count and document.parse_status not in IN_FLIGHT[:2]:
        ocr_failed(document, run.reason or "internal", run.error)
    elif run.state == RunState.FAILED:
        document_fail(document, run.reason or "internal", run.error)


def document_fail(document: Document, reason: str, error: str, *, stage: str = "") -> None:
    """The document could not be read: say why; what was findable before stays out of the index (its passages are gone or old).

    Passages of an earlier version, which serve while a new one is read, go on serving: the new one never came.
    """
    status = Span.Status.FAILED
    if stage:
        trace.finish(document, document.attempt, stage, status, reason=reason, error=error)
    trace.end_open(document, document.attempt, status, reason=reason, error=error)
    serving = Document.objects.filter(pk=document.pk, enabled=True, parse_status__in=IN_FLIGHT[:2], version__gt=1).exists()
    if document_leave(document, ParseStatus.FAILED, reason=reason, error=error) and not serving:
        Chunk.objects.filter(document=document).delete()
        Document.objects.filter(pk=document.pk).update(
            chunk_count=0, vector_count=0, warnings=[], enabled=False, index_rev=F("index_rev") + 1
        )


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


def document_findable(document: Document) -> None:
    """The index has the document's words: what is left are its vectors. Harmless for one that was deleted, stopped or parsed anew."""
    Document.objects.filter(
        pk=document.pk, attempt=document.attempt, deleted_at__isnull=True, parse_status=ParseStatus.PROCESSING, chunk_count__gt=0
    ).update(parse_status=ParseStatus.FINALIZING, updated_at=timezone.now())


def embed_failed(document: Document, run: IngestionRun) -> None:
    """Vectors could not be made: the document stays findable by its words and says so (a failed enrichment never fails a document).

    One whose words never came into the index is not findable: it has failed.
    """
    reason = run.reason if run.reason in ("stalled", "internal") or run.reason in FAILURES else "embedding_unavailable"
    if document.parse_status == ParseStatus.PROCESSING:
        document_fail(document, reason, run.error, stage="embedding")
        return
    trace.finish(document, document.attempt, "embedding", Span.Status.FAILED, reason=reason, error=run.error)
    document_complete(document, remark=reason, error=run.error)
    # One that was complete before (its passages were edited, or its vectors were tried again) stays so, and says what is wrong with it now.
    done = Document.objects.filter(pk=document.pk, parse_status=ParseStatus.COMPLETED, deleted_at__isnull=True)
    done.filter(Q(reason="") | Q(reason__in=FAILURES)).update(reason=reason, error_message=run.error[:4000], updated_at=timezone.now())


def document_embedded(document: Document, *, remark: str = "") -> None:
    """The vectors are made: what was said of their absence is taken back, unless some passage was refused (`remark`)."""
    stale = Document.objects.filter(pk=document.pk, reason__in=FAILURES)
    if stale.update(reason="", error_message="", updated_at=timezone.now()):
        document.reason = ""
    if document.parse_status == ParseStatus.COMPLETED and remark:
        Document.objects.filter(pk=document.pk, reason="").update(reason=remark, updated_at=timezone.now())
    document_complete(document, remark=document.reason or remark)


def document_complete(document: Document, *, remark: str = "", error: str = "") -> None:
    """The last pass of an attempt is over; the document waits for others of its passes if there are any."""
    others = IngestionRun.objects.filter(document=document, document_attempt=document.attempt, state__in=LIVE).exclude(
        kind__in=(*EMBEDS, *BESIDE)
    )
    if others.exists():
        return
    trace.start(document, document.attempt, "postprocess")
    trace.finish(document, document.attempt, "postprocess", passages=document.chunk_count, vectors=document.vector_count)
    trace.finish(document, document.attempt, "knowledge_processing")
    if document_leave(document, ParseStatus.COMPLETED, reason=remark or document.reason, error=error):
        enrich_start(document)


def enrich_start(document: Document) -> IngestionRun | None:
    """Queue what a chat model writes about a document that was parsed: its summary, tags where the base
    wants them, questions where the base or the upload does.

    None without a chat model, and when nothing is wanted. Source: contract knowledge 4.5, `summary_enabled` is true unless it says false.
    """
    wishes = (document.metadata or {}).get("process_overrides") or {}
    questions = wishes.get("question_generation_config") or document.kb.options.get("question_generation_config") or {}
    actor = Actor.system(document.space_id, "parsed")
    has_model = has_chat_model(document.kb)
    summary = has_model and wishes.get("summary_enabled", True) and not document.description
    asks = has_model and bool(questions.get("enabled"))
    tags = tagging_wanted(actor=actor, document=document)
    if not (summary or asks or tags):
        return None
    if summary:
        summary_state_set(actor=actor, document=document, state="pending")
    return run_start(document, ENRICH, {"summary": bool(summary), "questions": asks, **({"tags": True} if tags else {})})


def reindex_start(*, actor: Actor, base: KnowledgeBase, model_id: str) -> ReindexRun:
    """Start bringing a base over to a model ("" is the deployment's own); the vectors it has serve until all new ones are there.

    Raises: InvalidInput for a model that is not there, or a base without vectors; Conflict while one is under way.
    """
    authorize(actor, "base.reindex", base)
    if not (base.indexing_strategy or {}).get("vector_enabled", True):
        raise InvalidInput(_("This base is searched by words only. Turn on meaning first."), field="embedding_model_id", code="vectors_off")
    if not embedding_model_known(model_id) or not (model_id or deployment_model_id()):
        raise InvalidInput(_("There is no such embedding model here. Choose one of the list."), field="embedding_model_id")
    serving = serving_of(base.pk)
    try:
        with transaction.atomic():
            run = ReindexRun.objects.create(
                space_id=base.space_id,
                kind=REINDEX,
                kb=base,
                target_model_id=model_id,
                target_space=known_space(model_id),
                from_space=serving.space,
                starter_id=actor.user_id,
                progress_unit="passages",
            )
            change = {"before": base.embedding_model_id, "after": model_id}
            audit(actor, "kb.reindex_started", base, target_type="knowledge_base", title=base.name, embedding_model_id=change)
            enqueue(run)
    except IntegrityError:
        raise Conflict(_("A re-index of this base is under way. Stop it first."), code="reindex_running") from None
    return run


def reindex_cancel(*, actor: Actor, base: KnowledgeBase) -> bool:
    """Stop the re-index of a base: the vectors that served go on serving. False when none is under way.

    Raises: Conflict once the new vectors have taken over.
    """
    authorize(actor, "base.reindex", base)
    run = ReindexRun.objects.filter(kb=base, state__in=LIVE).first()
    if run is None:
        return False
    if run.switched_at is not None:
        raise Conflict(_("The new vectors are in use already; it is done in a moment. Re-index with the other model to go back."))
    with transaction.atomic():
        cancel_run(run)
        audit(actor, "kb.reindex_cancelled", base, target_type="knowledge_base", title=base.name, done=run.progress_done)
    return True


def reindex_ended(run: Any) -> None:
    """The row ended without having switched: nothing changed for the base."""


def reindexes_stop(base_id: int, *, reason: str) -> None:
    """End the live re-index of a base that is gone; a worker that holds it loses its hold."""
    live = ReindexRun.objects.filter(kb_id=base_id, state__in=LIVE)
    live.update(state=RunState.CANCELLED, reason=reason, finished_at=timezone.now(), claim_token=None, cancel_requested=True)
