"""Documents that wait to be parsed get a run; those that were stopped or deleted lose theirs."""

from __future__ import annotations

from django.db.models import F, Q

from apps.common.actor import Actor
from apps.common.events import listen
from apps.common.jobs.models import LIVE
from apps.common.jobs.service import cancel_run
from apps.ingestion import passwords, services, trace
from apps.ingestion.lookers import pictures_start
from apps.ingestion.models import IngestionRun, ReindexRun, Span
from apps.knowledge.events import (
    BaseChanged,
    BaseDeleted,
    ChunksChanged,
    DocumentParseCancelled,
    DocumentsCopied,
    DocumentsDeleted,
    DocumentsRefiled,
    DocumentsReparsed,
    DocumentsRestored,
    DocumentStored,
    SummaryWanted,
)
from apps.knowledge.models import Document, KnowledgeBase, ParseStatus
from apps.llm.events import ModelUseAsked
from apps.llm.failures import FAILURES
from apps.llm.services import deployment_model_id
from apps.retrieval.services import serving_of


@listen(DocumentStored)
def _document_stored(event: DocumentStored) -> None:
    services.runs_supersede(event.document_id, reason="superseded")
    Document.objects.filter(pk=event.document_id).update(attempt=F("attempt") + 1)
    document = Document.objects.get(pk=event.document_id)
    services.run_start(document, services.PARSE, {"trigger": event.trigger, **event.options}, password=event.password)


@listen(DocumentsReparsed)
def _documents_reparsed(event: DocumentsReparsed) -> None:
    services.documents_supersede(event.document_ids, reason="superseded")
    Document.objects.filter(pk__in=event.document_ids).update(attempt=F("attempt") + 1)
    services.parses_start(event.document_ids, {pk: {"trigger": "reparse", **options} for pk, options in event.options.items()})


@listen(DocumentParseCancelled)
def _parse_cancelled(event: DocumentParseCancelled) -> None:
    document = Document.objects.get(pk=event.document_id)
    for run in IngestionRun.objects.filter(document=document, state__in=LIVE):
        cancel_run(run)
    passwords.forget(document.pk)
    trace.end_open(document, document.attempt, Span.Status.CANCELLED, reason="cancelled", error="stopped by a user")


@listen(DocumentsDeleted)
def _documents_deleted(event: DocumentsDeleted) -> None:
    services.documents_supersede(event.document_ids, reason="deleted")


@listen(BaseDeleted)
def _base_deleted(event: BaseDeleted) -> None:
    live = IngestionRun.objects.filter(document__kb_id=event.kb_id, state__in=LIVE)
    for document_id in set(live.values_list("document_id", flat=True)):
        services.runs_supersede(document_id, reason="deleted")
    services.reindexes_stop(event.kb_id, reason="deleted")


@listen(BaseChanged)
def _base_changed(event: BaseChanged) -> None:
    """Meaning was switched on for a base that has documents: their vectors are made, and serve once all are there."""
    if "indexing_strategy" not in event.changed:
        return
    base = KnowledgeBase.objects.get(pk=event.kb_id)
    if not (base.indexing_strategy or {}).get("vector_enabled", True) or not (base.embedding_model_id or deployment_model_id()):
        return
    bare = Document.objects.filter(kb=base, deleted_at__isnull=True, vector_count__lt=F("chunk_count"))
    if bare.exists() and not ReindexRun.objects.filter(kb=base, state__in=LIVE).exists():
        actor = Actor.system(event.space_id, "meaning was switched on")
        services.reindex_start(actor=actor, base=base, model_id=base.embedding_model_id)


@listen(DocumentsRefiled)
def _documents_refiled(event: DocumentsRefiled) -> None:
    """Documents that came into a base without vectors of its own bring the first ones; most are there already, by content."""
    moved = Document.objects.filter(pk__in=event.document_ids, vector_count__gt=0, kb__index_state__isnull=True).select_related("kb")
    services.vectors_start([document for document in moved if document.is_answerable], {"trigger": "move"})


@listen(DocumentsCopied)
def _documents_copied(event: DocumentsCopied) -> None:
    """Copies find the vectors of their sources by content. Where other vectors serve, or some are missing yet, they are made."""
    copies = Document.objects.filter(pk__in=[copy for _source, copy in event.pairs], chunk_count__gt=0, enabled=True).select_related("kb")
    for document in copies.filter(images__read_at__isnull=True).distinct():
        pictures_start(document)  # the source was copied before its pictures were read
    if serving_of(event.source_kb_id).space == serving_of(event.target_kb_id).space:
        copies = copies.filter(Q(parse_status=ParseStatus.FINALIZING) | Q(vector_count__lt=F("chunk_count"), reason__in=FAILURES))
    else:
        copies.update(vector_count=0)
    pairs = Document.objects.filter(pk__in=[copy for _source, copy in event.pairs], type=Document.Type.PAIR)
    lacking = pairs.filter(vector_count__lt=F("chunk_count")).select_related("kb")[:1]
    services.vectors_start([*copies.exclude(type=Document.Type.PAIR), *lacking], {"trigger": "system"})


@listen(DocumentsRestored)
def _documents_restored(event: DocumentsRestored) -> None:
    """The base may have changed its model while they were away: each gets the vectors it lacks (most lack none) and is indexed."""
    rows = Document.objects.filter(pk__in=event.document_ids, chunk_count__gt=0, enabled=True).select_related("kb")
    services.vectors_start([document for document in rows if document.is_answerable], {"trigger": "system"})


@listen(ChunksChanged)
def _chunks_changed(event: ChunksChanged) -> None:
    """Edited passages need new vectors; their words are indexed at once by retrieval."""
    document = Document.objects.select_related("kb").filter(pk=event.document_id, deleted_at__isnull=True).first()
    if document is not None and document.is_answerable:
        services.embed_start(document, {"trigger": "edit"})


@listen(SummaryWanted)
def _summary_wanted(event: SummaryWanted) -> None:
    document = Document.objects.select_related("kb").filter(pk=event.document_id, deleted_at__isnull=True).first()
    if document is not None:
        services.run_start(document, services.ENRICH, {"summary": True})


@listen(ModelUseAsked)
def _model_use_asked(event: ModelUseAsked) -> None:
    """A base on its way to a model uses it already."""
    rows = ReindexRun.objects.filter(space_id=event.space_id, state__in=LIVE, target_model_id=event.model_id)
    event.found.extend(name for name in rows.values_list("kb__name", flat=True) if name not in event.found)
