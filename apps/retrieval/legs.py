"""Running the legs of a search over bases whose vectors may be of different models, and saying what each leg did."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from apps.common import measures
from apps.common.errors import DomainError, InvalidInput, TransientError
from apps.knowledge.models import KnowledgeBase
from apps.llm.failures import failure_of
from apps.llm.services import embedder, why_unavailable
from apps.retrieval.engine import engine
from apps.retrieval.models import BaseIndex
from apps.retrieval.plugins.protocol import Hit, LegHit, Query, Vector
from apps.retrieval.plugins.ranking import fused

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VectorPart:
    """The question in one vector space, for the bases (or those documents of them) that it serves."""

    space: str
    kb_ids: tuple[int, ...]
    vector: Vector


def run_legs(
    request: Query,
    bases: Sequence[KnowledgeBase],
    own: tuple[float, ...] | None,
    parts_ms: dict[str, float],
    asked: dict[str, Vector],
) -> tuple[list[Hit], dict[str, dict[str, Any]]]:
    """The fused hits, and {leg: {status, ...}}: `ok`, `partial` (some bases only), `unavailable` or `failed`, with `code` and `reason`.

    `parts_ms` gets how long the question's vectors took (`embed`) and both legs with their fusion (`engine`), in milliseconds.

    `asked` gets the question's vector in each vector space.

    `own` is the caller's embedding of the question. Cosines of different models do not compare, so where several serve, ranks are fused.

    Raises: InvalidInput when `own` fits no vectors of these bases.
    """
    legs: dict[str, dict[str, Any]] = {}
    parts: list[VectorPart] = []
    started = time.perf_counter()
    if request.mode != "text":
        parts, legs["vector"] = _own_part(bases, own) if own is not None else _parts(request, bases)
        if not parts and legs["vector"]["status"] != "ok":
            request = replace(request, mode="text")
    asked.update({part.space: part.vector for part in parts})
    embedded = time.perf_counter()
    parts_ms["embed"] = (embedded - started) * 1000
    try:
        hits = _searched(request, parts)
    except TransientError as error:
        log.exception("search failed")
        legs["text"] = {"status": "failed", "code": error.code, "reason": type(error).__name__}
        return [], legs
    finally:
        parts_ms["engine"] = (time.perf_counter() - embedded) * 1000
    if request.mode != "vector":
        legs["text"] = {"status": "ok", "hits": sum(1 for hit in hits if hit.text_leg)}
    if parts:
        legs["vector"] |= {"hits": sum(1 for hit in hits if hit.vector_leg), "space": ", ".join(part.space for part in parts)}
    return hits, legs


def _searched(request: Query, parts: Sequence[VectorPart]) -> list[Hit]:
    if len(parts) < 2:
        if parts:
            request = replace(request, vector=parts[0].vector, vector_space=parts[0].space)
        return engine().search(request)
    return _several(request, parts)


def _several(request: Query, parts: Sequence[VectorPart]) -> list[Hit]:
    """One word leg, one vector leg for each vector space, fused by rank."""
    backend = engine()

    def words(count: int) -> list[LegHit]:
        return backend.text_leg(replace(request, candidates=count))

    def vectors(count: int) -> list[LegHit]:
        best: dict[int, LegHit] = {}
        for part in parts:
            asked = replace(request, mode="vector", kb_ids=part.kb_ids, vector=part.vector, vector_space=part.space, candidates=count)
            for hit in backend.vector_leg(asked):
                if hit.chunk_id not in best or hit.rank < best[hit.chunk_id].rank:
                    best[hit.chunk_id] = hit
        return sorted(best.values(), key=lambda hit: (hit.rank, hit.chunk_id))

    asked_words = words if request.mode != "vector" else None
    return fused(request, asked_words, vectors, exact=lambda _listed: backend.exact_leg(request), method="rrf")


def _parts(request: Query, bases: Sequence[KnowledgeBase]) -> tuple[list[VectorPart], dict[str, Any]]:
    """The question in the vectors of every base that has some, and what became of the leg."""
    wanted = [kb for kb in bases if (kb.indexing_strategy or {}).get("vector_enabled", True)]
    served = _served(wanted)
    if not served:
        return [], _nothing_served(wanted)
    parts, faults = [], []
    for (space, model_id), kb_ids in sorted(served.items()):
        try:
            parts.append(VectorPart(space, tuple(sorted(kb_ids)), _question(request.text, space, model_id)))
        except (TransientError, DomainError, StaleVectors) as error:
            log.info("no vector of %s for a question: %s", space, error)
            faults.append(_fault(error))
    state: dict[str, Any] = {"status": "ok", "hits": 0, "space": ""}
    if faults:
        state |= {"status": "partial" if parts else "unavailable", **faults[0]}
    return parts, state


def _served(bases: Sequence[KnowledgeBase]) -> dict[tuple[str, str], set[int]]:
    """{(vector space, model): bases}; a base that is being switched is in two."""
    found: dict[tuple[str, str], set[int]] = {}
    for row in BaseIndex.objects.filter(kb__in=bases):
        for space, model_id in ((row.vector_space, row.model_id), (row.previous_space, row.previous_model_id)):
            if space:
                found.setdefault((space, model_id), set()).add(row.kb_id)
    return found


def _nothing_served(bases: Sequence[KnowledgeBase]) -> dict[str, Any]:
    """No base has a vector yet: that is no fault, unless there is no model to make one."""
    try:
        if any(embedder(model_id, may_ask=False) is not None for model_id in {kb.embedding_model_id for kb in bases}):
            return {"status": "ok", "hits": 0, "space": ""}
    except TransientError:
        return {"status": "ok", "hits": 0, "space": ""}
    except DomainError as error:
        return {"status": "unavailable", **_fault(error)}
    return {"status": "unavailable", "code": "embedding_none", "reason": _("No embedding model is configured.")}


class StaleVectors(Exception):
    """The vectors that serve were made by a model that is not there any more, or gives others now."""

    code = "vectors_stale"


def _question(text: str, space: str, model_id: str) -> Vector:
    """The question in exactly this vector space. Raises: as an Embedder, StaleVectors."""
    try:
        made = embedder(model_id, may_ask=False)
    except InvalidInput as error:
        raise StaleVectors() from error
    if made is None or made.space != space:
        raise StaleVectors()
    with measures.search_leg("embedding"):
        vector = made.query(text)
    if str(len(vector)) != space.rpartition(":")[2]:
        raise StaleVectors()
    return vector


def _fault(error: Exception) -> dict[str, Any]:
    if isinstance(error, StaleVectors):
        words = _("The vectors here were made by a model that is not used any more. An admin can re-index in the settings of the base.")
        return {"code": error.code, "reason": words}
    code = why_unavailable(error)
    return {"code": code, "reason": str(failure_of(code).why)}


def _own_part(bases: Sequence[KnowledgeBase], given: tuple[float, ...]) -> tuple[list[VectorPart], dict[str, Any]]:
    """The caller's embedding. Raises: InvalidInput when its length is not that of the bases' vectors."""
    vector = np.asarray(given, dtype=np.float32)
    norm = float(np.linalg.norm(vector))
    served = _served(bases)
    fitting = [(space, kbs) for (space, _model), kbs in sorted(served.items()) if space.rpartition(":")[2] == str(len(given))]
    if not fitting or not np.isfinite(norm) or norm == 0:
        known = sorted({space for space, _model in served})
        raise InvalidInput(_("This embedding does not fit the vectors of the base."), field="query_embedding", known=known)
    space, kbs = fitting[0]
    return [VectorPart(space, tuple(sorted(kbs)), vector / norm)], {"status": "ok", "hits": 0, "space": space}
