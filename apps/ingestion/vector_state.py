"""What vectors serve a base, whether they are those of the model it should have, and what making others would take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Sum
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.jobs.models import LIVE, RunState
from apps.common.jobs.service import has_worker
from apps.common.policy import authorize
from apps.ingestion.models import ReindexRun
from apps.knowledge.models import Chunk, Document, KnowledgeBase
from apps.llm.selectors import Entry, entry_of
from apps.llm.services import deployment_model_id, embedding_model_known, known_space, pace_of
from apps.retrieval.selectors import Serving, serving_of
from apps.retrieval.services import INDEXED_TYPES, meaning_hash, meaning_of, missing_vectors

COUNTED = 20_000  # passages; more are not read to see which have their vectors already: the plan then says the upper bound


@dataclass(frozen=True, slots=True)
class VectorState:
    """`chosen`: the model the base should have; `serving`: the one whose vectors answer (None when it is gone). Both None: words only.

    `stale`: other vectors answer than those of the chosen model. `run`: the latest re-index that is alive, or the last that ended.
    """

    is_on: bool
    chosen: Entry | None
    serving: Entry | None
    serving_space: str
    stale: bool
    run: ReindexRun | None
    passages: int
    covered: int


@dataclass(frozen=True, slots=True)
class ReindexPlan:
    """What a re-index would do. Units: `seconds` as measured lately, None when the model has made no vectors yet.

    `exact`: whether `to_embed` was counted; otherwise it is the most it can be.
    """

    model: Entry | None
    model_id: str
    documents: int
    passages: int
    to_embed: int
    exact: bool
    seconds: float | None


def vector_state(*, actor: Actor, base: KnowledgeBase) -> VectorState:
    """Which vectors serve a base and what is under way."""
    authorize(actor, "run.read", base)
    is_on = bool((base.indexing_strategy or {}).get("vector_enabled", True))
    serving = serving_of(base.pk)
    live = ReindexRun.objects.filter(kb=base).order_by("-pk")
    figures = _documents(base).aggregate(passages=Sum("chunk_count"), covered=Sum("vector_count"))
    return VectorState(
        is_on=is_on,
        chosen=entry_of(base.embedding_model_id) if is_on else None,
        serving=entry_of(serving.model_id) if serving.space else None,
        serving_space=serving.space,
        stale=is_on and is_stale(base, serving),
        run=live.filter(state__in=LIVE).first() or live.first(),
        passages=figures["passages"] or 0,
        covered=figures["covered"] or 0,
    )


def is_stale(base: KnowledgeBase, serving: Serving) -> bool:
    """Whether the vectors that serve are not those of the model the base should have; asks no endpoint."""
    chosen = base.embedding_model_id or deployment_model_id()
    if not serving.space or not chosen:
        return False
    return serving.model_id != chosen or known_space(chosen) not in ("", serving.space)


def stale_bases(*, actor: Actor) -> list[KnowledgeBase]:
    """Bases of the space that are served by vectors of another model than they should have; one query, and one for each model of theirs."""
    authorize(actor, "run.read")
    rows = KnowledgeBase.objects.visible_to(actor).select_related("index_state").filter(index_state__isnull=False)
    known: dict[str, str] = {}
    found = []
    for base in rows:
        state, chosen = base.index_state, base.embedding_model_id or deployment_model_id()
        if not (base.indexing_strategy or {}).get("vector_enabled", True) or not state.vector_space or not chosen:
            continue
        if chosen not in known:
            known[chosen] = known_space(chosen)
        if state.model_id != chosen or known[chosen] not in ("", state.vector_space):
            found.append(base)
    return found


def reindex_plan(*, actor: Actor, base: KnowledgeBase, model_id: str) -> ReindexPlan:
    """What a re-index of the base with this model ("" is the deployment's own) would take; asks no endpoint.

    Raises: InvalidInput for a model that is not there.
    """
    authorize(actor, "run.read", base)
    if not embedding_model_known(model_id):
        raise InvalidInput(_("There is no such embedding model here. Choose one of the list."), field="embedding_model_id")
    documents = _documents(base)
    passages = documents.aggregate(n=Sum("chunk_count"))["n"] or 0
    to_embed, exact = _to_embed(base, known_space(model_id), passages)
    pace = pace_of(model_id)
    seconds = to_embed / pace if pace else (0.0 if not to_embed else None)
    return ReindexPlan(entry_of(model_id), model_id, documents.count(), passages, to_embed, exact, seconds)


def _documents(base: KnowledgeBase) -> Any:
    return Document.objects.filter(kb=base, deleted_at__isnull=True, chunk_count__gt=0)


def chunks_of(base_id: int) -> Any:
    """Passages of a base that are found by meaning, in a fixed order."""
    rows = Chunk.objects.filter(kb_id=base_id, document__deleted_at__isnull=True, chunk_type__in=INDEXED_TYPES)
    return rows.order_by("pk")


def _to_embed(base: KnowledgeBase, vector_space: str, passages: int) -> tuple[int, bool]:
    if not vector_space or passages > COUNTED:
        return passages, not vector_space
    hashes = {meaning_hash(meaning_of(chunk)) for chunk in chunks_of(base.pk).iterator(chunk_size=1000)}
    return len(missing_vectors(base.space_id, vector_space, hashes)), True


def run_facts(run: ReindexRun) -> dict[str, Any]:
    """A re-index as REST and pages show it."""
    waits = run.state == RunState.QUEUED and bool(run.reason)
    retry_at: datetime | None = run.not_before if waits else None
    return {
        "id": run.pk,
        "state": run.state,
        "embedding_model_id": run.target_model_id,
        "vector_space": run.target_space,
        "done": run.progress_done,
        "total": run.progress_total,
        "refused": run.progress_failed,
        "is_switching": run.switched_at is not None and run.state in LIVE,
        "is_waiting": waits,
        "reason": run.reason,
        "error": run.error,
        "retry_at": retry_at,
        "waits_for_worker": run.state == RunState.QUEUED and not has_worker(run.kind),
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }
