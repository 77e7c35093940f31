"""Words in the shapes PostgreSQL takes: tsvector and sparsevec as bytes, tsquery as text."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.plugins.bm25 import K1, MOST_TIMES, SLOTS, B, lexeme
from apps.retrieval.plugins.protocol import Vector

HEAVIEST = 900  # terms kept of one passage: what fits into a page beside the rest of the row
USUAL_LENGTH = 190.0  # tokens of a passage for which word vectors are BM25 as they stand
MAX_VECTOR_BYTES = 900_000  # PostgreSQL takes a mebibyte
MAX_POSITION, MAX_POSITIONS = 16_383, 255
SAMPLE_LEVELS = 5


def kb_lexeme(tenant_id: int, kb_id: int) -> str:
    """The word that ties a passage to its space and base; no token holds a space, so no text can contain it."""
    return f"kb {tenant_id}:{kb_id}"


def tenant_lexeme(tenant_id: int) -> str:
    """The word that ties a passage to its space, for questions to more bases than are named one by one."""
    return f"kb {tenant_id}"


def sample_lexeme(tie: str, level: int) -> str:
    """The word that ties one in 4 ** level of the passages of a base or space to it; level 0 is the tie of all."""
    return f"{tie} /{level}" if level else tie


def sampled(chunk_id: int, level: int) -> bool:
    """Whether a passage is in the sample of this level; SAMPLED_SQL says the same."""
    return (chunk_id % 2**31) * 2654435761 // 65536 % 4**level == 0


SAMPLED_SQL = "(chunk % 2147483648) * 2654435761 / 65536 % {each} = 0"


def ties_of(chunk_id: int, *ties: str) -> list[str]:
    """The words that say where a passage belongs, in which samples too."""
    levels = [level for level in range(SAMPLE_LEVELS + 1) if sampled(chunk_id, level)]
    return [sample_lexeme(tie, level) for tie in ties for level in levels]


def quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''") + "'"


def any_of(tokens: Iterable[str]) -> str:
    """A tsquery for passages with one of the tokens."""
    return " | ".join(quoted(lexeme(token)) for token in tokens)


def sequence(tokens: Iterable[str]) -> str:
    """A tsquery for passages in which the tokens follow each other."""
    return "(" + " <-> ".join(quoted(lexeme(token)) for token in tokens) + ")"


@dataclass(frozen=True, slots=True)
class Words:
    """A passage's words ready to be written: `tsv` in PostgreSQL's binary format; how often each of its slots is used.

    Shapes: `slots` and `counts` (n,), slots rising, each once.
    """

    length: int
    tsv: bytes
    slots: NDArray[np.int64]
    counts: NDArray[np.float64]

    def sparse(self, average: float) -> bytes:
        """The BM25 part of every term that does not depend on the question, as a sparsevec in binary format."""
        weights = self.counts * (K1 + 1) / (self.counts + _norm(self.length, average))
        slots = self.slots
        if len(slots) > HEAVIEST:
            kept = np.sort(np.argsort(-weights, kind="stable")[:HEAVIEST])
            slots, weights = slots[kept], weights[kept]
        return struct.pack(">iii", SLOTS, len(slots), 0) + slots.astype(">i4").tobytes() + weights.astype(">f4").tobytes()


def words_of(tokens: Sequence[str], *ties: str) -> Words:
    """The words of a passage; `ties` are those that say where it belongs, which no question weighs."""
    positions: dict[str, list[int]] = {}
    for at, token in enumerate(tokens, 1):
        places = positions.get(token)
        if places is None:
            positions[token] = [at]
        else:
            places.append(at)
    size = 0
    slots, counts = [], []
    pieces = [tie.encode("utf-8") + b"\0\0\0" for tie in ties]
    for token, places in positions.items():
        raw = lexeme(token).encode("utf-8")
        slots.append(zlib.crc32(raw))
        counts.append(len(places))
        if len(places) == 1 and places[0] <= MAX_POSITION:
            piece = raw + b"\0\0\1" + places[0].to_bytes(2, "big")
        else:
            kept = [at for at in places[:MAX_POSITIONS] if at <= MAX_POSITION]
            piece = raw + struct.pack(f">BH{len(kept)}H", 0, len(kept), *kept)
        size += len(piece) + 2
        if size > MAX_VECTOR_BYTES:
            break
        pieces.append(piece)
    used, which = np.unique(np.array(slots, dtype=np.int64) % SLOTS, return_inverse=True)
    tsv = struct.pack(">I", len(pieces)) + b"".join(pieces)
    times = np.minimum(np.bincount(which, weights=counts, minlength=len(used)), MOST_TIMES)
    return Words(len(tokens), tsv, used, times.astype(np.float64))


def _norm(length: Any, average: float) -> Any:
    return K1 * (1 - B + B * length / average)


def times_in(
    sparse: Sequence[bytes], lengths: NDArray[np.int64], average: float, slots: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(passage, term, times) as in `bm25.Passages`, of what `Words.sparse` gave for passages of these lengths."""
    flat = np.frombuffer(b"".join(sparse), dtype=">u4")
    sizes = np.array([len(blob) // 4 for blob in sparse], dtype=np.int64)
    ends = np.cumsum(sizes)
    flags = np.zeros(1 << 16, dtype=np.bool_)
    flags[slots & 0xFFFF] = True
    hits = np.flatnonzero(flags[flat & 0xFFFF])
    term = np.searchsorted(slots, flat[hits])
    real = slots[np.minimum(term, len(slots) - 1)] == flat[hits]
    hits, term = hits[real], term[real]
    passage = np.searchsorted(ends, hits, side="right")
    terms = (sizes[passage] - 3) // 2  # three words of head, then the slots, then the weights
    among = hits - (ends[passage] - sizes[passage]) - 3
    inside = (among >= 0) & (among < terms)
    hits, term, passage, terms = hits[inside], term[inside], passage[inside], terms[inside]
    weights = flat.view(">f4")[hits + terms].astype(np.float64)
    times = np.rint(weights * _norm(lengths[passage], average) / np.maximum(K1 + 1 - weights, 1e-6))
    return passage, term.astype(np.int64), np.clip(times, 1, MOST_TIMES).astype(np.int64)


def sparse_question(slots: NDArray[np.uint32], weights: NDArray[np.float64]) -> str:
    """A sparsevec literal of what the question's words weigh."""
    return "{" + ",".join(f"{place + 1}:{weight:.9g}" for place, weight in zip(slots.tolist(), weights, strict=True)) + f"}}/{SLOTS}"


def half_bytes(vector: Vector) -> bytes | None:
    """A halfvec's binary form; None for a vector without direction or with values beyond a half float."""
    with np.errstate(over="ignore"):
        half = vector.astype(">f2")
    if not np.isfinite(half).all() or not half.any():
        return None
    return struct.pack(">HH", len(half), 0) + half.tobytes()


def half_text(vector: Vector) -> str | None:
    """A halfvec literal; None as in `half_bytes`."""
    with np.errstate(over="ignore"):
        half = np.asarray(vector, dtype=np.float32).astype(np.float16)
    return "[" + ",".join(map(str, half.tolist())) + "]" if np.isfinite(half).all() and half.any() else None
