"""Vectors of the question pairs of a base: one run for all of them, whose row belongs to the document that stands for the pairs.

Pairs are short and come by the thousand, so they are embedded together, in the order in which they came.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F

from apps.common.errors import DomainError, InvalidInput, TransientError
from apps.common.jobs.claims import Claim, Stop, others_wait
from apps.common.jobs.models import RunState
from apps.ingestion import services
from apps.ingestion.embedding import SHARE_S, later, model_of, serve
from apps.ingestion.models import IngestionRun
from apps.ingestion.vectors import Made, Text, make_vectors
from apps.knowledge.models import Chunk, Document
from apps.llm.plugins.protocol import Embedder
from apps.llm.services import why_unavailable
from apps.retrieval.plugins.protocol import INDEX_FAILURES
from apps.retrieval.services import INDEXED_TYPES, compared_texts, index_documents, index_entries, meaning_hash, meaning_of, missing_vectors

AT_ONCE = 100


def embed_pairs(claim: Claim, run: IngestionRun, container: Document) -> None:
    """Give every pair of the base the vectors it lacks and index them; ends when none lacks any.

    Raises: NotYet when the embedder may answer later; TransientError when the index cannot be written; DomainError; Stop.
    """
    started, last, done = time.monotonic(), 0, 0
    refused: set[int] = set()
    while True:
        model_id, model = model_of(run, container)
        waiting = _lacking(container).exclude(pk__in=refused).order_by("pk")
        pairs = list(waiting.filter(pk__gt=last)[:AT_ONCE]) if model is not None else []
        if not pairs and (last == 0 or model is None):
            if _finish(claim, container, refused, words_only=model is None):
                return
            continue
        if not pairs:
            last = 0
            continue
        assert model is not None
        made = _vectors(claim, run, container, model_id, model, pairs, done, waiting.count(), started)
        if made.stopped:
            claim.give_way()
            return
        serves = serve(container, model_id, model.space)
        refused |= _indexed(claim, container, pairs, serves=serves)
        done += len(pairs)
        last = pairs[-1].pk


def _lacking(container: Document) -> Any:
    rows = Document.objects.filter(kb_id=container.kb_id, type=Document.Type.PAIR, deleted_at__isnull=True)
    return rows.filter(vector_count__lt=F("chunk_count"))


def _vectors(
    claim: Claim,
    run: IngestionRun,
    container: Document,
    model_id: str,
    model: Embedder,
    pairs: Sequence[Document],
    done: int,
    left: int,
    started: float,
) -> Made:
    chunks = Chunk.objects.filter(document__in=pairs, chunk_type__in=INDEXED_TYPES).order_by("document_id", "chunk_index", "pk")
    texts = {meaning_hash(text): text for chunk in chunks for text in (meaning_of(chunk), *compared_texts(chunk))}
    missing = missing_vectors(container.space_id, model.space, texts)
    todo = [Text(content_hash, text) for content_hash, text in texts.items() if content_hash in missing]

    def pause(_made: Made) -> bool:
        claim.check()
        claim.progress(done, done + left, "entries")
        return time.monotonic() - started > SHARE_S and others_wait(claim)

    claim.check()
    claim.progress(done, done + left, "entries")
    try:
        return make_vectors(container.space_id, model_id, model, todo, pause=pause)
    except TransientError as error:
        raise later(run, error) from error
    except InvalidInput as error:
        raise DomainError(str(error), code=why_unavailable(error)) from error


def _indexed(claim: Claim, container: Document, pairs: Sequence[Document], *, serves: bool) -> set[int]:
    """Index the pairs; those whose vectors cannot be had now."""
    pks = [pair.pk for pair in pairs]
    try:
        index_documents(container.space_id, pks)
    except INDEX_FAILURES as error:
        raise TransientError(f"the index cannot be written: {error}", code="internal") from error
    covered = {entry.id: sum(1 for chunk in entry.chunks if chunk.vector is not None) for entry in index_entries(pks)}
    short = set()
    with transaction.atomic():
        claim.hold()
        for pair in pairs:
            # One that is turned off is in no index; its vectors are kept all the same.
            count = covered.get(pair.pk, pair.chunk_count) if serves else 0
            Document.objects.filter(pk=pair.pk, index_rev=pair.index_rev).update(vector_count=count)
            if count < pair.chunk_count:
                short.add(pair.pk)
    return short


def _finish(claim: Claim, container: Document, refused: set[int], *, words_only: bool) -> bool:
    """End the run, unless pairs came meanwhile: False, and the caller looks again."""
    with transaction.atomic():
        claim.hold()
        if not words_only and _lacking(container).exclude(pk__in=refused).exists():
            return False
        if not claim.finish(RunState.DONE):
            raise Stop("lost")
        services.document_embedded(container)
    return True
