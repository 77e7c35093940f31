"""Bringing a base over to the vectors of another model while the old ones go on serving.

First every passage gets its vector in the new space, kept by content, so that a run that was killed or waits for its endpoint goes on where
it stopped. Then one transaction makes the new space the serving one and raises the revision of every document; the index follows document
by document, and until it has, searches ask both spaces. Stopping it before that transaction changes nothing a person can see.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import DomainError, InvalidInput, NotYet, TransientError
from apps.common.jobs.claims import Claim, Stop, others_wait
from apps.common.jobs.models import RunState
from apps.ingestion import services
from apps.ingestion.models import ReindexRun
from apps.ingestion.vector_state import chunks_of
from apps.ingestion.vectors import Made, Text, make_vectors
from apps.knowledge.models import Document, KnowledgeBase
from apps.llm.plugins.protocol import Embedder
from apps.llm.services import deployment_model_id, embedder, why_unavailable
from apps.retrieval.plugins.protocol import INDEX_FAILURES
from apps.retrieval.services import (
    compared_texts,
    index_documents,
    index_entries,
    meaning_hash,
    meaning_of,
    missing_vectors,
    retire_space,
    serving_of,
    settle_serving_space,
    switch_serving_space,
)

WINDOW = 500  # passages whose vectors are looked up at once
DOCUMENTS = 50
SHARE_S = 20.0
LEAST_WAIT_S, MOST_WAIT_S = 5.0, 300.0


class _GaveWay(Exception):
    """Another space waits: the row is queued again."""


def reindex_work(claim: Claim) -> None:
    """Make what is missing, switch, let the index follow.

    Raises: NotYet while the model cannot be used, until somebody stops the run; TransientError when the index cannot be written; Stop.
    """
    run = ReindexRun.objects.select_related("kb").get(pk=claim.run.pk)
    if run.kb.deleted_at is not None:
        claim.finish(RunState.CANCELLED, reason="deleted")
        return
    try:
        if run.switched_at is None:
            model_id = run.target_model_id or deployment_model_id()
            model = _model(run, model_id)
            refused = _fill(claim, run, model_id, model)
            _switch(claim, run, model_id, model.space, refused)
        _follow(claim, run)
    except _GaveWay:
        claim.give_way()


def _model(run: ReindexRun, model_id: str) -> Embedder:
    try:
        model = embedder(model_id)
    except InvalidInput as error:
        raise DomainError(str(error), code="embedding_unavailable") from error
    except (TransientError, DomainError) as error:
        raise _later(run, error) from error
    if model is None:
        raise DomainError("no embedding model is configured", code="embedding_unavailable")
    if run.target_space != model.space:  # also when the endpoint began to give other vectors in the middle: then all are made again
        ReindexRun.objects.filter(pk=run.pk).update(target_space=model.space)
        run.target_space = model.space
    return model


def _later(run: ReindexRun, error: TransientError | DomainError) -> NotYet:
    """Whatever is wrong may be put right by somebody; until then the old vectors serve, and the row says what it waits for."""
    asked = getattr(error, "retry_after_s", None)
    waited = (timezone.now() - (run.started_at or run.created_at)).total_seconds()
    delay = asked if asked is not None else min(MOST_WAIT_S, max(LEAST_WAIT_S, waited))
    return NotYet(str(error), code=why_unavailable(error), retry_after_s=delay)


def _fill(claim: Claim, run: ReindexRun, model_id: str, model: Embedder) -> int:
    """Go over the passages until all have a vector of the new model; how many texts it refuses.

    A pass that made something is followed by another one, for what was added or edited meanwhile.
    """
    started = time.monotonic()
    refused: set[str] = set()
    while True:
        total, seen, made_any = chunks_of(run.kb_id).count(), 0, False
        for window in _windows(run.kb_id):
            claim.check()
            missing = missing_vectors(run.space_id, model.space, {text.content_hash for text in window}) - refused
            todo = list({text.content_hash: text for text in window if text.content_hash in missing}.values())
            if todo:
                made = _make(claim, run, model_id, model, todo, seen + len(window) - len(todo), total, started)
                made_any = made_any or made.done > 0
                if made.refused:
                    refused |= missing_vectors(run.space_id, model.space, missing)
            seen += len(window)
            claim.progress(seen, max(total, seen), "passages", failed=len(refused))
        if not made_any:
            return len(refused)


def _make(
    claim: Claim, run: ReindexRun, model_id: str, model: Embedder, todo: Sequence[Text], seen: int, total: int, started: float
) -> Made:
    def pause(made: Made) -> bool:
        claim.check()
        claim.progress(seen + made.done, max(total, seen + len(todo)), "passages")
        return time.monotonic() - started > SHARE_S and others_wait(claim)

    try:
        made = make_vectors(run.space_id, model_id, model, todo, pause=pause)
    except (TransientError, DomainError) as error:
        raise _later(run, error) from error
    if made.stopped:
        raise _GaveWay
    return made


def _windows(base_id: int) -> Iterator[list[Text]]:
    """The passages of a base as texts, in pieces that fit into memory."""
    last = 0
    while chunks := list(chunks_of(base_id).filter(pk__gt=last)[:WINDOW]):
        last = chunks[-1].pk
        texts = [text for chunk in chunks for text in (meaning_of(chunk), *compared_texts(chunk))]
        yield [Text(meaning_hash(text), text) for text in texts]


def _switch(claim: Claim, run: ReindexRun, model_id: str, vector_space: str, refused: int) -> None:
    """From the commit on the base is the new model's."""
    with transaction.atomic():
        claim.hold()
        if claim.rows().filter(cancel_requested=True).exists():
            raise Stop("cancelled")
        base = KnowledgeBase.objects.select_for_update(of=("self",)).get(pk=run.kb_id)
        before = serving_of(base.pk)
        if base.embedding_model_id != run.target_model_id:
            KnowledgeBase.objects.filter(pk=base.pk).update(embedding_model_id=run.target_model_id, updated_at=timezone.now())
        switch_serving_space(base.pk, base.space_id, vector_space, model_id)
        Document.objects.filter(kb=base, deleted_at__isnull=True, chunk_count__gt=0).update(index_rev=F("index_rev") + 1)
        if before.space != vector_space:
            retire_space(base.space_id, before.space)
        run.switched_at = timezone.now()
        run.progress_failed = refused
        claim.rows().update(switched_at=run.switched_at, from_space=before.space, progress_failed=refused)
        audit(
            Actor.system(run.space_id, f"re-index {run.pk}"),
            "kb.reindexed",
            base,
            target_type="knowledge_base",
            title=base.name,
            vector_space={"before": before.space, "after": vector_space},
            refused=refused or None,
        )


def _follow(claim: Claim, run: ReindexRun) -> None:
    """Write every document of the base into the index with its new vectors; those that came without get their own pass."""
    rows = Document.objects.filter(kb_id=run.kb_id, deleted_at__isnull=True, chunk_count__gt=0).order_by("pk")
    total, last, done = rows.count(), 0, 0
    while documents := list(rows.filter(pk__gt=last).select_related("kb")[:DOCUMENTS]):
        if claim.stopped == "lost":
            raise Stop("lost")
        last = documents[-1].pk
        _index(run, documents)
        done += len(documents)
        claim.progress(done, max(done, total), "documents", failed=run.progress_failed)
    with transaction.atomic():
        claim.hold()
        settle_serving_space(run.kb_id, run.target_space)
        if not claim.finish(RunState.DONE):
            raise Stop("lost")


def _index(run: ReindexRun, documents: Sequence[Document]) -> None:
    pks = [document.pk for document in documents]
    try:
        index_documents(run.space_id, pks)
    except INDEX_FAILURES as error:
        raise TransientError(f"the index cannot be written: {error}", code="internal") from error
    covered = {entry.id: sum(1 for chunk in entry.chunks if chunk.vector is not None) for entry in index_entries(pks)}
    for document in documents:
        count = covered.get(document.pk)
        if count is None:
            continue
        Document.objects.filter(pk=document.pk).update(vector_count=count)
        if count < document.chunk_count and not run.progress_failed:
            services.vectors_start([document], {"trigger": "reindex"})
