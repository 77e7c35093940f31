"""One ranking out of what words, vectors and exact matches say.

Measured on the evaluation sets (nDCG@10, see benchmarks/search_quality.py): min-max fusion gains over both legs where both know
something; where the words of the question are hardly in the texts at all (another language) the best word hit is noise, and giving it
half of the score costs up to 0.05. So the share of words in the score follows how much of the question the best word hits hold, rare
words counting more. And what is fused is always equally deep, so that an order does not depend on how many hits are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from apps.retrieval.plugins.protocol import ExactHit, Hit, LegHit

RRF_K = 10
FULL_EVIDENCE = 0.5  # a passage that holds half of what the question's words weigh is a word hit worth its full weight
EVIDENCE_HITS = 3  # the best by words are looked at


def evidence(text: Sequence[LegHit]) -> float:
    """How much of the question its best word hits hold, 0 to 1; 1 where there is none to ask."""
    return max((hit.held for hit in text[:EVIDENCE_HITS]), default=1.0)


def leg_weights(weights: tuple[float, float], known: float) -> tuple[float, float]:
    """(words, vectors) summing to 1: the wanted weights, with the words' part lowered when little of the question is known.

    Weights that are negative or both 0 count as equal; a leg of weight 0 stays at 0.
    """
    words, vectors = (max(weight, 0.0) for weight in weights)
    if words + vectors <= 0:
        words = vectors = 0.5
    if vectors == 0:
        return 1.0, 0.0
    share = words / (words + vectors) * min(1.0, max(known, 0.0) / FULL_EVIDENCE)
    return share, 1.0 - share


def fuse(
    text: Sequence[LegHit],
    vector: Sequence[LegHit],
    *,
    exact: Sequence[ExactHit] = (),
    weights: tuple[float, float] = (0.5, 0.5),
    method: Literal["minmax", "rrf"] = "minmax",
    known: float = 1.0,
) -> list[Hit]:
    """Every passage that a leg or an exact match names, best first, scores from 1 down to 0.

    Min-max: BM25 over the best BM25, cosine stretched over the listed range, absent 0. RRF: 1/(10 + rank) over its maximum.
    A passage with a higher exact grade stands before every one with a lower grade, and its score says so: the range is divided
    among the grades that occur. `known` is `evidence`; with only one leg it has no effect.
    """
    share = leg_weights(weights, known) if text and vector else (1.0, 1.0)
    scale = _by_rank if method == "rrf" else None
    text_scores = (scale or _over_best)(text)
    vector_scores = (scale or _over_range)(vector)
    text_hits = {hit.chunk_id: hit for hit in text}
    vector_hits = {hit.chunk_id: hit for hit in vector}
    grades = {hit.chunk_id: hit.grade for hit in exact}
    named: list[ExactHit | LegHit] = [*exact, *text, *vector]
    owners = {hit.chunk_id: hit.doc_id for hit in named}
    levels = {grade: level for level, grade in enumerate(sorted({0, *grades.values()}))}
    hits = []
    for chunk, doc in owners.items():
        base = share[0] * text_scores.get(chunk, 0.0) + share[1] * vector_scores.get(chunk, 0.0)
        grade = grades.get(chunk, 0)
        score = (levels[grade] + min(base, 1.0)) / len(levels)
        hits.append((grade, base, Hit(chunk, doc, score, text_hits.get(chunk), vector_hits.get(chunk), exact=grade > 0)))
    hits.sort(key=lambda item: (-item[0], -item[1], item[2].chunk_id))
    return [hit for _, _, hit in hits]


def beyond(fused: Sequence[Hit], text: Sequence[LegHit], vector: Sequence[LegHit]) -> list[Hit]:
    """What the legs list but `fused` does not hold, by its better rank and without a score, so that more of it changes nothing before."""
    held = {hit.chunk_id for hit in fused}
    legs = [{hit.chunk_id: hit for hit in leg if hit.chunk_id not in held} for leg in (text, vector)]
    ranks: dict[int, int] = {}
    owners: dict[int, int] = {}
    for leg in legs:
        for chunk, hit in leg.items():
            ranks[chunk] = min(hit.rank, ranks.get(chunk, hit.rank))
            owners[chunk] = hit.doc_id
    order = sorted(ranks, key=lambda chunk: (ranks[chunk], chunk))
    return [Hit(chunk, owners[chunk], 0.0, legs[0].get(chunk), legs[1].get(chunk)) for chunk in order]


def _over_best(leg: Sequence[LegHit]) -> dict[int, float]:
    best = max((hit.score for hit in leg), default=0.0)
    return {hit.chunk_id: hit.score / best if best > 0 else 1.0 for hit in leg}


def _over_range(leg: Sequence[LegHit]) -> dict[int, float]:
    high = max((hit.score for hit in leg), default=0.0)
    low = min((hit.score for hit in leg), default=0.0)
    return {hit.chunk_id: (hit.score - low) / (high - low) if high > low else 1.0 for hit in leg}


def _by_rank(leg: Sequence[LegHit]) -> dict[int, float]:
    return {hit.chunk_id: (RRF_K + 1) / (RRF_K + hit.rank) for hit in leg}
