"""How often each word stands in each passage, as bytes beside the word index: what BM25 over the bases of a question is counted from.

FTS5 tells which passages hold a word, but how rare that word is only for the whole file, all spaces together. So every document carries the
slots of its words, and a question reads those of its bases, as it does for vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.plugins.bm25 import MOST_TIMES, Passages, lexeme, slot

COLUMNS = "lens, segs, low, high, tf"
REMEMBERED = 100_000  # tokens whose slots are not worked out again


class _Slots(dict[str, int]):
    """Token -> slot, filled as tokens are met."""

    def __missing__(self, token: str) -> int:
        self[token] = place = slot(lexeme(token))
        return place


_SLOTS = _Slots()


def packed(passages: Sequence[Sequence[str]]) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    """The words of a document's passages as the columns `COLUMNS`.

    Shapes: `lens` uint32[n] tokens; `segs` uint32[2n] how many words of each passage stand there once, then how many oftener; `low`
    uint16[m] and `high` uint8[m] are their slots, in that order; `tf` uint8 how often those of the second half stand there.
    """
    if len(_SLOTS) > REMEMBERED:
        _SLOTS.clear()
    lens = np.array([len(tokens) for tokens in passages], dtype=np.uint32)
    slots = np.fromiter(map(_SLOTS.__getitem__, chain.from_iterable(passages)), np.int64, int(lens.sum()))
    every = np.repeat(np.arange(len(lens), dtype=np.int64), lens) << 24 | slots
    every.sort()
    firsts = np.flatnonzero(np.diff(every, prepend=-1))
    places, counts = every[firsts], np.diff(firsts, append=len(every))
    once, often = places[counts == 1], places[counts > 1]
    segs = np.concatenate([np.bincount(part >> 24, minlength=len(lens)) for part in (once, often)]).astype(np.uint32)
    ordered = np.concatenate([once, often])
    low, high = (ordered & 0xFFFF).astype(np.uint16), (ordered >> 16 & 0xFF).astype(np.uint8)
    times = np.minimum(counts[counts > 1], MOST_TIMES).astype(np.uint8)
    return lens.tobytes(), segs.tobytes(), low.tobytes(), high.tobytes(), times.tobytes()


def with_passage(columns: tuple[bytes, ...], at: int, tokens: Sequence[str]) -> tuple[bytes, ...]:
    """The columns of a document whose passage number `at` has other words; those of the others are as they were."""
    lens, segs = (np.frombuffer(column, np.uint32).copy() for column in columns[:2])
    new = packed([tokens])
    sizes = np.frombuffer(new[1], np.uint32)
    count = len(lens)
    starts = np.concatenate([[0], np.cumsum(segs, dtype=np.int64)])
    spans = [(int(starts[place]), int(starts[place + 1])) for place in (at, count + at)]
    once, often = int(sizes[0]), int(sizes[0] + sizes[1])

    def spliced(old: bytes, part: bytes, width: int) -> bytes:
        (a, b), (c, d) = ((first * width, last * width) for first, last in spans)
        return old[:a] + part[: once * width] + old[b:c] + part[once * width : often * width] + old[d:]

    low, high = spliced(columns[2], new[2], 2), spliced(columns[3], new[3], 1)
    before = int(starts[count])
    first, last = (place - before for place in spans[1])
    lens[at] = len(tokens)
    segs[at], segs[count + at] = sizes
    return lens.tobytes(), segs.tobytes(), low, high, columns[4][:first] + new[4] + columns[4][last:]


def gathered(batches: Iterable[list[tuple[Any, ...]]], slots: NDArray[np.uint32]) -> Passages:
    """The passages of these documents and where the words of `slots` (rising) stand in them.

    Shapes: each row is (document id, 1 when it is wanted, ids int64[n], live int8[n], and the five columns of `packed`).
    """
    asked = _Asked.of(slots)
    parts = [_of_batch(batch, asked) for batch in batches]
    before = np.cumsum([0, *(len(part.ids) for part in parts)])

    def joined(name: str, kind: Any) -> Any:
        return np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)])

    places = [part.passage + start for part, start in zip(parts, before, strict=False)]
    return Passages(
        ids=joined("ids", np.int64),
        documents=joined("documents", np.int64),
        lengths=joined("lengths", np.int64),
        wanted=joined("wanted", np.bool_),
        passage=np.concatenate([np.empty(0, np.int64), *places]),
        term=joined("term", np.int64),
        times=joined("times", np.int64),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """The slots of a question, and which of their halves occur: `highs` by byte, `lows` by number."""

    slots: NDArray[np.uint32]
    highs: bytes
    lows: NDArray[np.bool_]

    @classmethod
    def of(cls, slots: NDArray[np.uint32]) -> _Asked:
        highs, lows = np.zeros(1 << 8, dtype=np.uint8), np.zeros(1 << 16, dtype=np.bool_)
        highs[slots >> 16], lows[slots & 0xFFFF] = 1, True
        return cls(slots, highs.tobytes(), lows)

    def among(self, highs: bytes, lows: NDArray[np.uint16]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(where one of the slots stands, which one). Translating bytes is several times as fast as any way of comparing numbers."""
        hits = np.flatnonzero(np.frombuffer(highs.translate(self.highs), np.bool_))
        hits = hits[self.lows[lows[hits]]]
        whole = np.frombuffer(highs, np.uint8)[hits].astype(np.uint32) << 16 | lows[hits]
        term = np.searchsorted(self.slots, whole)
        real = self.slots[np.minimum(term, len(self.slots) - 1)] == whole if len(self.slots) else np.zeros(len(hits), np.bool_)
        return hits[real], term[real]


def _of_batch(batch: list[tuple[Any, ...]], asked: _Asked) -> Passages:
    documents, wanted, ids, live, lens, segs, low, high, tf = zip(*batch, strict=True)
    counts = np.array([len(blob) // 4 for blob in lens], dtype=np.int64)
    sizes = np.frombuffer(b"".join(segs), np.uint32).astype(np.int64)
    ends = np.cumsum(sizes)
    hits, term = asked.among(b"".join(high), np.frombuffer(b"".join(low), np.uint16))
    segment = np.searchsorted(ends, hits, side="right")
    # Two segments for each passage: of a document with n of them the first n are its words that stand there once.
    doubled = np.repeat(counts, 2 * counts)
    within = np.arange(len(sizes)) - np.repeat(np.cumsum(2 * counts) - 2 * counts, 2 * counts)
    often = within >= doubled
    owner = np.repeat(np.cumsum(counts) - counts, 2 * counts) + within - np.where(often, doubled, 0)
    repeated = np.cumsum(np.where(often, sizes, 0)) - np.where(often, sizes, 0)
    times = np.ones(len(hits), dtype=np.int64)
    many = often[segment]
    place = repeated[segment[many]] + hits[many] - (ends[segment[many]] - sizes[segment[many]])
    times[many] = np.frombuffer(b"".join(tf), np.uint8)[place]
    return Passages(
        ids=np.frombuffer(b"".join(ids), np.int64),
        documents=np.repeat(np.array(documents, np.int64), counts),
        lengths=np.frombuffer(b"".join(lens), np.uint32).astype(np.int64),
        wanted=np.repeat(np.array(wanted, np.bool_), counts) & (np.frombuffer(b"".join(live), np.int8) != 0),
        passage=owner[segment],
        term=term.astype(np.int64),
        times=times,
    )
