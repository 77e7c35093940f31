"""Words in the shapes PostgreSQL takes: tsvector and sparsevec as bytes, tsquery as text, and how rare each word is."""

from __future__ import annotations

import hashlib
import math
import struct
import threading
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection

from apps.retrieval.plugins.protocol import Vector

SLOTS = 1 << 20  # dimensions of the sparse word vectors; two words in one slot are rare and cost little
HEAVIEST = 900  # terms kept of one passage: what fits into a page beside the rest of the row
AVERAGE_LENGTH = 190.0  # tokens of a usual passage
K1, B = 1.2, 0.75
MAX_LEXEME_BYTES = 255
MAX_VECTOR_BYTES = 900_000  # PostgreSQL takes a mebibyte
MAX_POSITION, MAX_POSITIONS = 16_383, 255
SMALL_TABLE = 5_000  # up to so many passages words are counted, beyond PostgreSQL's statistics say enough
STATISTICS_KEPT_S = 60.0
LEAST_IDF = 1e-6  # of a word that more than half of the passages hold, as FTS5 has it


def lexeme(token: str) -> str:
    """The token as PostgreSQL keeps it: itself, or where that is too long its beginning and a hash."""
    if len(token) * 4 <= MAX_LEXEME_BYTES:
        return token
    raw = token.encode("utf-8")
    if len(raw) <= MAX_LEXEME_BYTES:
        return token
    return raw[:200].decode("utf-8", "ignore") + " " + hashlib.blake2b(raw, digest_size=16).hexdigest()


def kb_lexeme(tenant_id: int, kb_id: int) -> str:
    """The word that ties a passage to its space and base; no token holds a space, so no text can contain it."""
    return f"kb {tenant_id}:{kb_id}"


def tenant_lexeme(tenant_id: int) -> str:
    """The word that ties a passage to its space, for questions to more bases than are named one by one."""
    return f"kb {tenant_id}"


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
        weights = self.counts * (K1 + 1) / (self.counts + K1 * (1 - B + B * self.length / average))
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
    return Words(len(tokens), tsv, used, np.bincount(which, weights=counts, minlength=len(used)).astype(np.float64))


def _slot(word: str) -> int:
    return zlib.crc32(word.encode("utf-8")) % SLOTS


def sparse_question(weights: Mapping[str, float]) -> str:
    """A sparsevec literal; `weights` are inverse document frequencies by lexeme."""
    slots: dict[int, float] = {}
    for word, weight in weights.items():
        slots[_slot(word)] = max(weight, slots.get(_slot(word), 0.0))
    return "{" + ",".join(f"{slot + 1}:{weight:.9g}" for slot, weight in sorted(slots.items())) + f"}}/{SLOTS}"


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


class Frequencies:
    """How rare words are in one generation's passages, as inverse document frequencies; remembered for a minute."""

    def __init__(self, schema: str, table: str) -> None:
        self.schema, self.table = schema, table
        self._lock = threading.Lock()
        self._until = 0.0
        self._small = True
        self._common: dict[str, float] = {}
        self._floor = 0.0

    def idf(self, connection: Connection, words: Sequence[str]) -> dict[str, float]:
        with self._lock:
            if time.monotonic() > self._until:
                self._load(connection)
                self._until = time.monotonic() + STATISTICS_KEPT_S if not self._small else 0.0
            small, common, floor = self._small, self._common, self._floor
        if small:
            return self._counted(connection, words)
        return {word: _idf(common.get(word, floor)) for word in words}

    def _load(self, connection: Connection) -> None:
        row = connection.execute(
            "SELECT c.reltuples, s.most_common_elems::text::text[], s.most_common_elem_freqs FROM pg_class c"
            " LEFT JOIN pg_stats s ON s.schemaname = %s AND s.tablename = c.relname AND s.attname = 'tsv'"
            " WHERE c.oid = %s::regclass AND c.reltuples > %s",
            (self.schema, f"{self.schema}.{self.table}", SMALL_TABLE),
        ).fetchone()
        self._small = row is None or not row[1]
        if row is not None and row[1]:
            self._common = dict(zip(row[1], row[2], strict=False))  # two or three more figures follow the frequencies
            self._floor = min(self._common.values()) / 2

    def _counted(self, connection: Connection, words: Sequence[str]) -> dict[str, float]:
        sql = (
            f"SELECT (SELECT count(*) FROM {self.schema}.{self.table}), "  # noqa: S608
            f"array(SELECT (SELECT count(*) FROM {self.schema}.{self.table} t WHERE t.tsv @@ w.word::tsquery)"
            " FROM unnest(%s::text[]) WITH ORDINALITY w (word, at) ORDER BY w.at)"
        )
        total, counts = connection.execute(sql, ([quoted(word) for word in words],)).fetchone() or (0, [])
        return {word: _idf((count + 0.5) / (total + 1)) for word, count in zip(words, counts, strict=True)}


def _idf(share: float) -> float:
    """ln((N - n + 0.5) / (n + 0.5)) for share = (n + 0.5) / (N + 1), the formula of FTS5, so that both engines rank alike."""
    return max(math.log((1 - share) / share), LEAST_IDF) if 0 < share < 1 else LEAST_IDF
