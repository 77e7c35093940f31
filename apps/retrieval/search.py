"""The one retrieval function: REST, pages, the retrieval test and, later, answers and tools all call `search`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.translation import gettext_lazy as _

from apps.common import measures
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import authorize
from apps.knowledge.models import Chunk, Document, KnowledgeBase, Tag
from apps.knowledge.services import questions_of
from apps.retrieval import explain
from apps.retrieval.judging import Judge
from apps.retrieval.legs import run_legs
from apps.retrieval.plugins.protocol import Hit, LegHit, Query, Vector, folder_key

MAX_QUERY_CHARS = 4000
LEAST_HITS = 50  # asked of the engine, twice the limit where that is more: some may have to be dropped
Mode = Literal["hybrid", "text", "vector"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look: bases (None: every base the actor may read), and within them documents, tags, folders."""

    kb_uids: tuple[uuid.UUID, ...] | None = None
    document_uids: tuple[uuid.UUID, ...] | None = None
    tag_uids: tuple[uuid.UUID, ...] | None = None
    folder_path: str | None = None
    folder_recursive: bool = True


@dataclass(frozen=True, slots=True)
class Options:
    """`limit`: hits wanted. Thresholds are raw leg scores. `weights` and `fusion` override what the bases say."""

    limit: int = 10
    mode: Mode = "hybrid"
    vector_threshold: float = 0.0
    keyword_threshold: float = 0.0
    weights: tuple[float, float] | None = None
    vector: tuple[float, ...] | None = None  # the caller's own embedding of the question


@dataclass(frozen=True, slots=True)
class Passage:
    """A hit with its rows, why it is there, and where its words match (spans into `chunk.content`).

    `question`: the passage's question that holds more of what was asked than its text does; "" when the text led to it. For a question
    pair, which is one hit however many of its questions were met, it is the one of them that is nearest to what was asked.
    """

    chunk: Chunk
    document: Document
    score: float
    exact: bool
    text_leg: LegHit | None
    vector_leg: LegHit | None
    matched_terms: tuple[explain.Term, ...]
    spans: tuple[tuple[int, int], ...]
    snippet: explain.Snippet
    question: str = ""

    @property
    def match_type(self) -> int:
        """Contract 8.1: 0 vector, 1 keyword; found by both counts as keyword when the words led."""
        if self.text_leg is None:
            return 0
        return 1 if self.vector_leg is None or self.exact or self.text_leg.rank <= self.vector_leg.rank else 0


@dataclass(slots=True)
class Dropped:
    """A candidate that is not among the hits, and why (retrieval-test page)."""

    chunk_id: int
    document_title: str
    why: str
    score: float
    text_rank: int | None
    vector_rank: int | None
    detail: str = ""  # of a question pair that was vetoed: the negative question


@dataclass(slots=True)
class Results:
    """Hits best first, what each leg did, and how long it took. Units: milliseconds."""

    query: str
    hits: list[Passage] = field(default_factory=list)
    legs: dict[str, dict[str, Any]] = field(default_factory=dict)
    dropped: list[Dropped] = field(default_factory=list)
    took_ms: float = 0.0
    parts_ms: dict[str, float] = field(default_factory=dict)  # embed: the question's vector; engine: both legs and their fusion
    bases: int = 0


def search(*, actor: Actor, query: str, scope: Scope, options: Options | None = None, explain_dropped: bool = False) -> Results:
    """The passages that answer `query` best inside `scope`, each saying why it is there.

    Raises: InvalidInput for a blank or overlong query; NotFound for a base that is not there; Forbidden without search.run.
    A leg that fails is named in `legs` and the other one answers alone. Source: SEARCH "Ranking and fusion", contract knowledge 8.
    """
    authorize(actor, "search.run")
    options = options or Options()
    started = time.perf_counter()
    text = " ".join(query.split()) if len(query) <= MAX_QUERY_CHARS else ""
    if not text and not (options.vector and options.mode == "vector"):
        message = _("Type what you are looking for.") if len(query) <= MAX_QUERY_CHARS else _("Shorten the question to 4,000 characters.")
        raise InvalidInput(message, field="query", api_code=1000)
    bases = _bases(actor, scope)
    results = Results(query=text, bases=len(bases))
    request = _restrict(actor, scope, bases, text, options)
    if request is None:
        results.took_ms = (time.perf_counter() - started) * 1000
        return results
    asked: dict[str, Vector] = {}
    hits, results.legs = run_legs(request, bases, options.vector, results.parts_ms, asked)
    above = [hit for hit in hits if _above(hit, options)]
    judge = Judge(actor, text, asked)
    kept, results.dropped = _pick(actor, above, options.limit, judge, explain_dropped=explain_dropped)
    results.hits = [_passage(hit, chunk, text, judge) for hit, chunk in kept]
    if explain_dropped:
        below = [hit for hit in hits if not _above(hit, options)]
        rows = _rows(actor, below)
        results.dropped += [_dropped(hit, rows.get(hit.chunk_id), "threshold") for hit in below]
    results.took_ms = (time.perf_counter() - started) * 1000
    measures.SEARCH_SECONDS.labels(_outcome(results)).observe(results.took_ms / 1000)
    return results


def _outcome(results: Results) -> str:
    states = {leg["status"] for leg in results.legs.values()}
    return "failed" if "failed" in states else "degraded" if states & {"unavailable", "partial"} else "ok"


def _bases(actor: Actor, scope: Scope) -> list[KnowledgeBase]:
    rows = KnowledgeBase.objects.visible_to(actor)
    if scope.kb_uids is None:
        return list(rows)
    found = {kb.uid: kb for kb in rows.filter(uid__in=scope.kb_uids)}
    if missing := [uid for uid in scope.kb_uids if uid not in found]:
        _listed(actor, missing)
        raise NotFound(_("Knowledge base not found."), missing=[str(uid) for uid in missing])
    return list(found.values())


def _listed(actor: Actor, missing: Sequence[uuid.UUID]) -> None:
    """SECURITY: a limited key naming a base of its own space that is not on its list is told so; any other id is simply not found."""
    if actor.kb_uids is not None:
        for kb in KnowledgeBase.objects.filter(uid__in=missing, space_id=actor.space_id, deleted_at__isnull=True):
            authorize(actor, "base.read", kb)


def _restrict(actor: Actor, scope: Scope, bases: list[KnowledgeBase], text: str, options: Options) -> Query | None:
    """The engine's query for this scope, or None when nothing can match."""
    strategies = [kb.indexing_strategy or {} for kb in bases]
    words_on = any(s.get("keyword_enabled", True) for s in strategies)
    vectors_on = any(s.get("vector_enabled", True) for s in strategies)
    mode: Mode = options.mode
    if mode == "hybrid" and not (words_on and vectors_on):
        mode = "text" if words_on else "vector"
    if not bases or (mode == "text" and not words_on) or (mode == "vector" and not vectors_on):
        return None
    documents = tags = folders = None
    kb_ids = [kb.pk for kb in bases]
    if scope.document_uids is not None:
        documents = tuple(
            Document.objects.visible_to(actor).filter(uid__in=scope.document_uids, kb_id__in=kb_ids).values_list("pk", flat=True)
        )
    if scope.tag_uids is not None:
        tags = tuple(Tag.objects.visible_to(actor).filter(uid__in=scope.tag_uids, kb_id__in=kb_ids).values_list("pk", flat=True))
    if scope.folder_path is not None:
        folders = _folders(kb_ids, scope.folder_path, recursive=scope.folder_recursive)
    if documents == () or tags == () or folders == ():
        return None
    weights = options.weights or _weights(bases)
    fusion: Literal["minmax", "rrf"] = "rrf" if any(kb.retrieval_config.get("fusion") == "rrf" for kb in bases) else "minmax"
    wanted = max(2 * options.limit, LEAST_HITS)
    if any(kb.type == KnowledgeBase.Type.FAQ for kb in bases):  # several candidates may be questions of one pair
        wanted = min(500, 3 * wanted)
    return Query(
        tenant_id=actor.space,
        kb_ids=tuple(kb_ids),
        text=text,
        tag_ids=tags,
        folder_ids=folders,
        doc_ids=documents,
        mode=mode,
        k=wanted,
        weights=weights,
        fusion=fusion,
    )


def _folders(kb_ids: list[int], path: str, *, recursive: bool) -> tuple[int, ...]:
    rows = Document.objects.filter(kb_id__in=kb_ids, deleted_at__isnull=True)
    if not recursive:
        return (folder_key(path),)
    paths: Iterable[str] = rows.order_by().values_list("folder_path", flat=True).distinct()
    return tuple(folder_key(p) for p in paths if not path or p == path or p.startswith(path + "/"))


def _weights(bases: list[KnowledgeBase]) -> tuple[float, float]:
    """What the only base says, else even weights: several bases are ranked together, so one formula holds for all."""
    configured = bases[0].retrieval_config.get("weights") if len(bases) == 1 else None
    return (float(configured[0]), float(configured[1])) if configured else (0.5, 0.5)


def _pick(
    actor: Actor, hits: list[Hit], limit: int, judge: Judge, *, explain_dropped: bool
) -> tuple[list[tuple[Hit, Chunk]], list[Dropped]]:
    """The first `limit` hits with their rows, and what was passed over on the way (with what came after them, when asked for).

    SECURITY: a hit whose row is gone, disabled or not this actor's is dropped here, whatever the index says. Rows are read in pieces:
    nearly always the first piece is enough.
    """
    kept: list[tuple[Hit, Chunk]] = []
    dropped: list[Dropped] = []
    step = max(20, limit + 10)
    for start in range(0, len(hits), step):
        piece = hits[start : start + step]
        rows = _rows(actor, piece)
        judge.look_at(rows.values())
        for hit in piece:
            chunk = rows.get(hit.chunk_id)
            if chunk is None or not _may_be_shown(chunk):
                dropped.append(_dropped(hit, chunk, "gone" if chunk is None else "disabled"))
            elif judge.had(chunk):
                continue
            elif judge.negative_of(chunk):
                dropped.append(_dropped(hit, chunk, "negative", judge.negative_of(chunk)))
            elif len(kept) < limit:
                kept.append((hit, chunk))
            else:
                dropped.append(_dropped(hit, chunk, "rank"))
        if len(kept) >= limit and not explain_dropped:
            break
    return kept, dropped


def _rows(actor: Actor, hits: list[Hit]) -> dict[int, Chunk]:
    rows = Chunk.objects.visible_to(actor).select_related("document", "document__kb", "parent")
    return {chunk.pk: chunk for chunk in rows.filter(pk__in=[hit.chunk_id for hit in hits])}


def _may_be_shown(chunk: Chunk) -> bool:
    return chunk.is_enabled and chunk.index_status == Chunk.IndexStatus.READY and chunk.document.is_answerable


def _dropped(hit: Hit, chunk: Chunk | None, why: str, detail: str = "") -> Dropped:
    title = chunk.document.title if chunk is not None else ""
    return Dropped(hit.chunk_id, title, why, hit.score, _rank(hit.text_leg), _rank(hit.vector_leg), detail)


def _rank(leg: LegHit | None) -> int | None:
    return leg.rank if leg else None


def _passage(hit: Hit, chunk: Chunk, text: str, judge: Judge) -> Passage:
    question = judge.question_of(chunk)
    chunk = judge.head_of(chunk)
    match = explain.explain(chunk.content, text)
    return Passage(
        chunk=chunk,
        document=chunk.document,
        score=hit.score,
        exact=hit.exact,
        text_leg=hit.text_leg,
        vector_leg=hit.vector_leg,
        matched_terms=match.terms,
        spans=match.spans,
        snippet=explain.snippet(chunk.content, text),
        question=question or _question(chunk, text, len(match.terms)),
    )


def _question(chunk: Chunk, text: str, terms: int) -> str:
    """The question of a passage that holds most of what was asked, if that is more than `terms` words."""
    scored = [(len(explain.explain(question, text).terms), question) for question in (str(row["question"]) for row in questions_of(chunk))]
    best = max(scored, default=(0, ""), key=lambda pair: pair[0])
    return best[1] if best[0] > terms else ""


def _above(hit: Hit, options: Options) -> bool:
    """Whether it holds what was typed, or some leg that found it is above its threshold."""
    if hit.exact:
        return True
    by_words = hit.text_leg is not None and hit.text_leg.score >= options.keyword_threshold
    by_meaning = hit.vector_leg is not None and hit.vector_leg.score >= options.vector_threshold
    return by_words or by_meaning
