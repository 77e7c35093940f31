"""What every engine does alike once it can look up words, vectors and sequences: the exact-match guarantee and the final ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from apps.common.measures import search_leg
from apps.retrieval.fusion import FULL_EVIDENCE, coverage, fuse
from apps.retrieval.plugins.protocol import ExactHit, Hit, LegHit, Query
from apps.retrieval.tokens import QueryTokens

EVIDENCE_HITS = 3  # passages whose words are counted to tell how much of the question the text leg understood
MAX_CANDIDATES = 1000
MAX_CODES = 8
FEW_PASSAGES = 10
COMMON_SHARE = 0.25
SQL_INT = range(-(2**63), 2**63)

Sequences = Sequence[Sequence[str]]


class Lookups(Protocol):
    """One question over one connection of an engine, within the scope of its query."""

    def text(self) -> list[LegHit]: ...

    def vector(self) -> list[LegHit]: ...

    def holding(self, sequences: Sequences, among: Sequence[int] = ()) -> list[tuple[int, int]]:
        """(passage, document) of the best passages in which one of the token sequences stands; with `among`, of those only, all of them."""

    def share_holding(self, sequence: Sequence[str]) -> float:
        """Which part of the passages of the bases holds the sequence, 0 to 1."""

    def matched(self, chunk_ids: Sequence[int], enough: int = MAX_CANDIDATES) -> dict[int, frozenset[str]]:
        """Which tokens of the question each passage holds; may stop at the first that holds `enough`."""


def candidates(query: Query) -> int:
    return min(max(query.candidates, query.k, 1), MAX_CANDIDATES)


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
    text: list[LegHit] = []
    vector: list[LegHit] = []
    if query.mode != "vector":
        with search_leg("words"):
            text = lookups.text()
    if query.mode != "text":
        with search_leg("vectors"):
            vector = lookups.vector()
    exact: list[ExactHit] = []
    known = 1.0
    if text:  # what stands there word for word was found by its words
        exact = exact_hits(query, tokens, lookups, [hit.chunk_id for hit in (*text, *vector)])
    if text and vector:
        best = [hit.chunk_id for hit in text[:EVIDENCE_HITS]]
        known = coverage(tokens.tokens, lookups.matched(best, math.ceil(FULL_EVIDENCE * len(tokens.tokens))))
    return fuse(text, vector, exact=exact, weights=query.weights, method=query.fusion, known=known)[: max(query.k, 0)]
