"""Making vectors of passages: the low-priority pass that completes a document.

Vectors are kept by content, so an unchanged passage is never embedded twice, and a pass that was killed goes on where it stopped.
"""

from __future__ import annotations

import time

from django.db import transaction
from django.db.models import F

from apps.common.errors import DomainError, TransientError, Unavailable
from apps.common.jobs.claims import Claim, Stop, others_wait
from apps.common.jobs.models import RunState
from apps.ingestion import services, trace
from apps.ingestion.models import IngestionRun
from apps.knowledge.models import Chunk, Document
from apps.llm.plugins.protocol import Embedder
from apps.llm.services import embedder
from apps.retrieval.plugins.protocol import INDEX_FAILURES
from apps.retrieval.services import (
    INDEXED_TYPES,
    index_documents,
    meaning_hash,
    meaning_of,
    serving_space,
    set_serving_space,
    store_vectors,
    stored_vectors,
)

BATCH = 8
SHARE_S = 20.0  # a long document gives way after this long when another space waits


def embed_work(claim: Claim) -> None:
    """Index the words (again, if that failed), make the missing vectors, index them, complete the document.

    Raises: TransientError when the embedder may answer later; Stop.
    """
    run = IngestionRun.objects.get(pk=claim.run.pk)
    document = (
        Document.objects.select_related("kb").filter(pk=run.document_id, deleted_at__isnull=True, attempt=run.document_attempt).first()
    )
    if document is None or document.kb.deleted_at is not None:
        claim.finish(RunState.CANCELLED, reason="deleted")
        return
    trace.start(document, document.attempt, "embedding", parent="knowledge_processing", passages=document.chunk_count)
    _index(document)
    model = _model_of(document)
    while True:
        rev = Document.objects.values_list("index_rev", flat=True).get(pk=document.pk)
        made = _embed(claim, document, model) if model is not None else 0
        if made is None:
            return  # gave way to another space; the row is queued again
        if model is not None:
            _serve(document, model.space)
        _index(document)
        if _finish(claim, document, rev, made, model.space if model else ""):
            return


def _index(document: Document) -> None:
    try:
        index_documents(document.space_id, [document.pk])
    except INDEX_FAILURES as error:
        raise TransientError(f"the index cannot be written: {error}", code="internal") from error


def _model_of(document: Document) -> Embedder | None:
    """The embedder of the base; None when the base or the deployment wants words only."""
    if not (document.kb.indexing_strategy or {}).get("vector_enabled", True):
        return None
    try:
        return embedder(document.kb.embedding_model_id)
    except Unavailable as error:
        raise DomainError(str(error), code="embedding_unavailable") from error


def _embed(claim: Claim, document: Document, model: Embedder) -> int | None:
    """Make what is missing; how many passages have vectors now, or None when the run gave way."""
    chunks = Chunk.objects.filter(document=document, chunk_type__in=INDEXED_TYPES).order_by("chunk_index", "pk")
    texts = {meaning_hash(text): text for text in (meaning_of(c) for c in chunks.iterator(chunk_size=500))}
    have = set(stored_vectors(document.space_id, model.space, texts))
    todo = [(h, text) for h, text in texts.items() if h not in have]
    started = time.monotonic()
    for at in range(0, len(todo), BATCH):
        claim.check()
        claim.progress(len(have) + at, len(texts), "vectors")
        batch = todo[at : at + BATCH]
        store_vectors(document.space_id, model.space, [h for h, _text in batch], model.passages([text for _h, text in batch]))
        if time.monotonic() - started > SHARE_S and at + BATCH < len(todo) and others_wait(claim):
            claim.give_way()
            return None
    claim.progress(len(texts), len(texts), "vectors")
    return chunks.count()


def _serve(document: Document, made: str) -> None:
    """Let a base answer with these vectors once every one of its documents has them; until then the old ones go on serving."""
    current = serving_space(document.kb_id)
    if current == made:
        return
    if not current or not _lags(document, made):
        set_serving_space(document.kb_id, document.space_id, made)
        if current:
            others = Document.objects.filter(kb_id=document.kb_id, deleted_at__isnull=True, chunk_count__gt=0).exclude(pk=document.pk)
            pks = list(others.values_list("pk", flat=True))
            Document.objects.filter(pk__in=pks).update(index_rev=F("index_rev") + 1)
            index_documents(document.space_id, pks)


def _lags(document: Document, made: str) -> bool:
    """Whether another document of the base still lacks vectors of the new space."""
    rows = Chunk.objects.filter(
        kb_id=document.kb_id, document__deleted_at__isnull=True, document__enabled=True, chunk_type__in=INDEXED_TYPES
    )
    hashes = {meaning_hash(meaning_of(chunk)) for chunk in rows.exclude(document=document).iterator(chunk_size=1000)}
    return len(stored_vectors(document.space_id, made, hashes)) != len(hashes)


def _finish(claim: Claim, document: Document, rev: int, vectors: int, space: str) -> bool:
    """Complete the document, unless its passages changed while vectors were made: False, and the caller looks again."""
    with transaction.atomic():
        claim.hold()
        same = Document.objects.filter(pk=document.pk, attempt=document.attempt, index_rev=rev).update(vector_count=vectors)
        if not same:
            if not Document.objects.filter(pk=document.pk, attempt=document.attempt, deleted_at__isnull=True).exists():
                raise Stop("lost")
            return False
        document.refresh_from_db()
        if space:
            trace.finish(document, document.attempt, "embedding", vectors=vectors, vector_space=space)
        else:
            trace.finish(document, document.attempt, "embedding", "skipped", why="words only")
        if not claim.finish(RunState.DONE):
            raise Stop("lost")
        services.document_complete(document)
    return True
