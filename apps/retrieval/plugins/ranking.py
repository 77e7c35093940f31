"""What every engine does alike once it can look up words, vectors and sequences: the exact-match guarantee and the final ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from apps.common.measures import search_leg
from apps.retrieval.fusion import beyond, evidence, fuse
from apps.retrieval.plugins.protocol import ExactHit, Hit, LegHit, Query
from apps.retrieval.tokens import QueryTokens

LISTED = 100  # hits of each leg that are read at once; only the first `Query.candidates` are fused
MAX_CANDIDATES = 1000
MAX_CODES = 8
FEW_PASSAGES = 10
COMMON_SHARE = 0.25
SQL_INT = range(-(2**63), 2**63)

Sequences = Sequence[Sequence[str]]


class Lookups(Protocol):
    """One question over one connection of an engine, within the scope of its query."""

    def text(self, count: int) -> list[LegHit]: ...

    def vector(self, count: int) -> list[LegHit]: ...

    def holding(self, sequences: Sequences, among: Sequence[int] = ()) -> list[tuple[int, int]]:
        """(passage, document) of passages in which one of the token sequences stands, by id; with `among`, of those only, all of them."""

    def share_holding(self, sequence: Sequence[str]) -> float:
        """Which part of the passages of the bases holds the sequence, 0 to 1."""


def candidates(query: Query) -> int:
    """How many of each leg are fused."""
    return min(max(query.candidates, 1), MAX_CANDIDATES)


def exact_hits(query: Query, tokens: QueryTokens, lookups: Lookups, listed: Sequence[int] = ()) -> list[ExactHit]:
    """Passages with the codes or the wording of the question; `listed` are looked at even when there are too many to list."""
    found: list[tuple[int, list[tuple[int, int]]]] = []

    def holding(sequences: Sequences) -> list[tuple[int, int]]:
        rows = lookups.holding(sequences)
        if len(rows) < candidates(query) or not listed:
            return rows
        return list(dict([*rows, *lookups.holding(sequences, among=listed)]).items())

    if tokens.phrase:
        found.append((1, holding([tokens.phrase])))
    for code in tokens.codes[:MAX_CODES]:
        whole = holding([code.whole])
        # A code that so many passages hold is the subject of the bases and singles nothing out (COVID-19 in a COVID-19 FAQ).
        if not tokens.only_codes and len(whole) > FEW_PASSAGES and lookups.share_holding(code.whole) > COMMON_SHARE:
            continue
        found.append((4, whole))
        loose = [sequence for sequence in (code.parts, (code.joined,)) if any(sequence)]
        if loose:
            found.append((2, holding(loose)))
    grades: dict[int, int] = {}
    owners: dict[int, int] = {}
    for grade, rows in found:
        for chunk, doc in rows:
            grades[chunk] = grades.get(chunk, 0) + grade
            owners[chunk] = doc
    return [ExactHit(chunk, owners[chunk], grades[chunk]) for chunk in sorted(grades, key=lambda chunk: (-grades[chunk], chunk))]


def ranked(query: Query, tokens: QueryTokens, lookups: Lookups) -> list[Hit]:
    """The legs as `mode` says, fused, exact matches before all others, best first, at most `k`."""
    words = lookups.text if query.mode != "vector" else None
    vectors = lookups.vector if query.mode != "text" else None
    return fused(query, words, vectors, exact=lambda listed: exact_hits(query, tokens, lookups, listed), method=query.fusion)


Leg = Callable[[int], list[LegHit]]


def _asked(name: str, leg: Leg | None, count: int) -> list[LegHit]:
    if leg is None:
        return []
    with search_leg(name):
        return leg(count)


def fused(
    query: Query,
    words: Leg | None,
    vectors: Leg | None,
    *,
    exact: Callable[[Sequence[int]], list[ExactHit]],
    method: Literal["minmax", "rrf"],
) -> list[Hit]:
    """At most `k` hits: those among the first `candidates` of a leg fused, then what the legs list beyond, if that many are asked for.

    `exact` is given the passages that the legs list.
    """
    depth = candidates(query)
    listed = max(depth, LISTED)
    text, vector = _asked("words", words, listed), _asked("vectors", vectors, listed)
    first = text[:depth], vector[:depth]
    # What stands there word for word was found by its words.
    found = exact([hit.chunk_id for hit in (*first[0], *first[1])]) if text else []
    hits = fuse(*first, exact=found, weights=query.weights, method=method, known=evidence(text))
    wanted = min(query.k, MAX_CANDIDATES)
    if wanted > len(hits):
        text = _asked("words", words, wanted) if len(text) >= listed < wanted else text
        vector = _asked("vectors", vectors, wanted) if len(vector) >= listed < wanted else vector
        hits += beyond(hits, text, vector)
    return hits[: max(query.k, 0)]
