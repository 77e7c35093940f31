"""Making vectors of passages: the low-priority pass that completes a document.

Vectors are kept by content, so an unchanged passage is never embedded twice, and a pass that was killed goes on where it stopped. They are
made in the vector space that serves the base; another one is built by a re-index (`apps.ingestion.reindexing`), never beside the way.
"""

from __future__ import annotations

import time

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.common.errors import DomainError, InvalidInput, NotYet, TransientError
from apps.common.jobs.claims import Claim, Stop, others_wait
from apps.common.jobs.models import RunState
from apps.ingestion import services, trace
from apps.ingestion.models import IngestionRun
from apps.ingestion.vectors import REFUSED, Made, Text, make_vectors
from apps.knowledge.models import Chunk, Document
from apps.llm.plugins.protocol import Embedder
from apps.llm.services import deployment_model_id, embedder, why_unavailable
from apps.retrieval.plugins.protocol import INDEX_FAILURES
from apps.retrieval.services import (
    INDEXED_TYPES,
    compared_texts,
    index_documents,
    meaning_hash,
    meaning_of,
    missing_vectors,
    retire_space,
    serving_of,
    set_serving_space,
)

SHARE_S = 20.0  # a long document gives way after this long when another space waits
MAX_WAIT_S = 120.0


def embed_work(claim: Claim) -> None:
    """Index the words (again, if that failed), make the missing vectors, index them, complete the document.

    Raises: NotYet when the embedder may answer later; TransientError when the index cannot be written; DomainError; Stop.
    """
    run = IngestionRun.objects.get(pk=claim.run.pk)
    document = (
        Document.objects.select_related("kb").filter(pk=run.document_id, deleted_at__isnull=True, attempt=run.document_attempt).first()
    )
    if document is None or document.kb.deleted_at is not None:
        claim.finish(RunState.CANCELLED, reason="deleted")
        return
    if document.type == Document.Type.FAQ:
        from apps.ingestion.pair_embedding import embed_pairs

        embed_pairs(claim, run, document)
        return
    trace.start(document, document.attempt, "embedding", parent="knowledge_processing", passages=document.chunk_count)
    _index(document)
    while True:
        rev = Document.objects.values_list("index_rev", flat=True).get(pk=document.pk)
        model_id, model = model_of(run, document)
        made = _embed(claim, run, document, model_id, model) if model is not None else Made()
        if made.stopped:
            return  # gave way to another space; the row is queued again
        serves = model is not None and serve(document, model_id, model.space)
        _index(document)
        if _finish(claim, document, rev, made, model.space if model else "", serves=serves):
            return


def _index(document: Document) -> None:
    try:
        index_documents(document.space_id, [document.pk])
    except INDEX_FAILURES as error:
        raise TransientError(f"the index cannot be written: {error}", code="internal") from error
    services.document_findable(document)


def model_of(run: IngestionRun, document: Document) -> tuple[str, Embedder | None]:
    """The model that makes the vectors the base is served by; the one it chose, when those can be made no more; None for words only.

    Raises: NotYet, DomainError when it cannot be used.
    """
    base = document.kb
    if not (base.indexing_strategy or {}).get("vector_enabled", True):
        return "", None
    serving = serving_of(base.pk)
    chosen = base.embedding_model_id or deployment_model_id()
    for model_id in dict.fromkeys([serving.model_id, chosen] if serving.space else [chosen]):
        try:
            model = embedder(model_id)
        except TransientError as error:
            raise later(run, error) from error
        except InvalidInput as error:
            if model_id == chosen:
                raise DomainError(str(error), code=why_unavailable(error)) from error
            continue  # the model of the old vectors was removed
        if model_id == chosen or (model is not None and model.space == serving.space):
            return model_id, model
    return "", None


def later(run: IngestionRun, error: TransientError) -> Exception:
    """The failure of an endpoint as what it means for a document: wait a little longer each time, and in the end do without vectors."""
    waited = (timezone.now() - run.created_at).total_seconds()
    left = settings.EMBED_PATIENCE_S - waited
    if left <= 0:
        return DomainError(str(error), code=why_unavailable(error))
    delay = error.retry_after_s if error.retry_after_s is not None else min(MAX_WAIT_S, max(2.0, waited / 2))
    return NotYet(str(error), code=why_unavailable(error), retry_after_s=min(max(delay, 0.5), left + 0.5))


def _embed(claim: Claim, run: IngestionRun, document: Document, model_id: str, model: Embedder) -> Made:
    """Make what is missing. `done` counts all passages that have a vector then."""
    chunks = Chunk.objects.filter(document=document, chunk_type__in=INDEXED_TYPES).order_by("chunk_index", "pk")
    pairs = chunks if document.type == Document.Type.PAIR else ()
    beside = {meaning_hash(text): text for chunk in pairs for text in compared_texts(chunk)}
    hashes = [meaning_hash(text) for text in (meaning_of(c) for c in chunks.iterator(chunk_size=500))]
    missing = missing_vectors(document.space_id, model.space, [*hashes, *beside])
    have, started = max(0, len({*hashes, *beside}) - len(missing)), time.monotonic()

    def pause(made: Made) -> bool:
        claim.check()
        claim.progress(have + made.done, have + len(missing), "vectors")
        return time.monotonic() - started > SHARE_S and others_wait(claim)

    if missing:
        texts = {meaning_hash(text): text for text in (meaning_of(c) for c in chunks.iterator(chunk_size=500))} | beside
        todo = [Text(content_hash, text) for content_hash, text in texts.items() if content_hash in missing]
        try:
            made = make_vectors(document.space_id, model_id, model, todo, pause=pause)
        except TransientError as error:
            raise later(run, error) from error
        except InvalidInput as error:
            raise DomainError(str(error), code=why_unavailable(error)) from error
        if made.stopped:
            claim.give_way()
            return made
        still = missing_vectors(document.space_id, model.space, hashes) if made.refused else set()
    else:
        made, still = Made(), set()
    claim.progress(have + len(missing), have + len(missing), "vectors")
    return Made(done=sum(1 for content_hash in hashes if content_hash not in still), refused=made.refused)


def serve(document: Document, model_id: str, made: str) -> bool:
    """Whether a base answers with these vectors. Its first ones do at once; where others serve, a re-index makes the change."""
    serving = serving_of(document.kb_id)
    if serving.space == made:
        return True
    others = Document.objects.filter(kb_id=document.kb_id, deleted_at__isnull=True, vector_count__gt=0).exclude(pk=document.pk)
    if serving.space and others.exists():
        return False
    with transaction.atomic():
        retire_space(document.space_id, serving.space)
        set_serving_space(document.kb_id, document.space_id, made, model_id)
    return True


def _finish(claim: Claim, document: Document, rev: int, made: Made, space: str, *, serves: bool) -> bool:
    """Complete the document, unless its passages changed while vectors were made: False, and the caller looks again."""
    with transaction.atomic():
        claim.hold()
        count = made.done if serves else 0
        same = Document.objects.filter(pk=document.pk, attempt=document.attempt, index_rev=rev).update(vector_count=count)
        if not same:
            if not Document.objects.filter(pk=document.pk, attempt=document.attempt, deleted_at__isnull=True).exists():
                raise Stop("lost")
            return False
        document.refresh_from_db()
        if space:
            trace.finish(document, document.attempt, "embedding", vectors=made.done, vector_space=space, refused=made.refused or None)
        else:
            trace.finish(document, document.attempt, "embedding", "skipped", why="words only")
        if not claim.finish(RunState.DONE):
            raise Stop("lost")
        services.document_embedded(document, remark=REFUSED if made.refused else "")
    return True
