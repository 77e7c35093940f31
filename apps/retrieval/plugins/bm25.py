"""BM25 as every engine counts it: over the passages of the bases that are asked, and nothing else.

How rare a word is, how many passages there are and how long a usual one is are counted within the scope of the question. So neither a
score nor an order tells of, or changes with, what stands in other bases. Words are compared by 24 bits of their CRC: two words of a base
in one slot are rare, and it is the same two in every engine.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.plugins.protocol import LegHit

K1, B = 1.2, 0.75
SLOTS = 1 << 24
MOST_TIMES = 255  # more of one word in one passage say nothing new
MAX_LEXEME_BYTES = 255
DIGITS = 9  # of a score: sums in another order must give the same order of passages

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def lexeme(token: str) -> str:
    """The token as an engine keeps it: itself, or where that is too long its beginning and a hash."""
    if len(token) * 4 <= MAX_LEXEME_BYTES:
        return token
    raw = token.encode("utf-8")
    if len(raw) <= MAX_LEXEME_BYTES:
        return token
    return raw[:200].decode("utf-8", "ignore") + " " + hashlib.blake2b(raw, digest_size=16).hexdigest()


def slot(word: str) -> int:
    """Where a lexeme is counted."""
    return zlib.crc32(word.encode("utf-8")) % SLOTS


def question_slots(tokens: Sequence[str]) -> NDArray[np.uint32]:
    """The slots of a question's tokens, rising, each once."""
    return np.unique(np.array([slot(lexeme(token)) for token in tokens], dtype=np.uint32))


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages and which words of a question they hold.

    Shapes: `ids`, `documents`, `lengths` (in tokens), `wanted` (whether filters let it through): (n,). `passage` (an index into those),
    `term` (an index into the question's slots), `times`: (m,), one for each word in each passage that holds it.
    """

    ids: Ints
    documents: Ints
    lengths: Ints
    wanted: NDArray[np.bool_]
    passage: Ints
    term: Ints
    times: Ints

    def frequencies(self, terms: int) -> Ints:
        """How many of the passages hold each of the question's words."""
        return np.bincount(self.term, minlength=terms)

    def holding(self, ids: Sequence[int]) -> Passages:
        """The same passages for a question of one word that stands once in each of those named."""
        places = np.flatnonzero(np.isin(self.ids, np.array(ids, dtype=np.int64)))
        return replace(self, passage=places, term=np.zeros_like(places), times=np.ones_like(places))


def weights(frequencies: Ints | Sequence[float], passages: int) -> Floats:
    """The inverse document frequency of words that so many of the passages hold; never below 0, also in a base of three passages."""
    held = np.minimum(np.asarray(frequencies, dtype=np.float64), passages)
    return np.log1p((passages - held + 0.5) / (held + 0.5))


def best(found: Passages, term_weights: Floats, average: float, count: int) -> list[LegHit]:
    """The `count` best of the wanted passages that hold a word, best first, ties by id."""
    norm = K1 * (1 - B + B * found.lengths / max(average, 1.0))
    worth = term_weights[found.term]
    gained = worth * found.times * (K1 + 1) / (found.times + norm[found.passage])
    scores = np.round(np.bincount(found.passage, weights=gained, minlength=len(found.ids)), DIGITS)
    held = np.bincount(found.passage, weights=worth, minlength=len(found.ids)) / max(float(term_weights.sum()), 1e-9)
    listed = np.flatnonzero(found.wanted & (scores > 0))
    if len(listed) > 4 * count:
        least = np.partition(scores[listed], len(listed) - count)[len(listed) - count]
        listed = listed[scores[listed] >= least]
    listed = listed[np.lexsort((found.ids[listed], -scores[listed]))][:count]
    return [
        LegHit(int(found.ids[at]), int(found.documents[at]), float(scores[at]), rank, round(float(held[at]), DIGITS))
        for rank, at in enumerate(listed, 1)
    ]
