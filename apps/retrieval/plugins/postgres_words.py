"""The best passages by words of one generation of a PostgreSQL index.

All passages of the bases that hold a word of the question are read and counted, as long as they are not too many: then how rare each word
is comes out by the way, exactly. In larger bases that is estimated from a sample of their passages, and only the best by PostgreSQL's own
reckoning are counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from psycopg import Connection

from apps.retrieval.plugins.bm25 import Floats, Passages, best, lexeme, question_slots, slot, weights
from apps.retrieval.plugins.postgres_schema import PLAIN, Generation
from apps.retrieval.plugins.postgres_scope import Scope
from apps.retrieval.plugins.postgres_terms import any_of, quoted, sparse_question, times_in
from apps.retrieval.plugins.protocol import LegHit
from apps.retrieval.tokens import QueryTokens

ALL_COUNTED = 20_000  # up to so many passages in the bases all that hold a word are read
MOST_READ = 5_000  # but no more than so many: a passage's words are a kilobyte
BEST_READ = 400  # of larger ones, or four times what is asked for
LEAST_SAMPLE = 2_000
SURE = 16  # a word seen so often in the sample is estimated from it, a rarer one is counted
REMEMBERED_S, REMEMBERED_SCOPES = 60.0, 256

Rows = Callable[..., list[tuple[Any, ...]]]


class Remembered:
    """How many passages of large bases hold a word, remembered for a minute; safe from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scopes: dict[object, tuple[float, dict[str, float]]] = {}

    def get(self, scope: object) -> dict[str, float]:
        with self._lock:
            until, known = self._scopes.get(scope, (0.0, {}))
            return dict(known) if time.monotonic() < until else {}

    def add(self, scope: object, counted: dict[str, float]) -> None:
        now = time.monotonic()
        with self._lock:
            until, known = self._scopes.get(scope, (0.0, {}))
            if now >= until:
                until, known = now + REMEMBERED_S, {}
            if scope not in self._scopes and len(self._scopes) >= REMEMBERED_SCOPES:
                self._scopes.clear()
            self._scopes[scope] = until, known | counted


@dataclass(frozen=True, slots=True)
class Words:
    """The words of one question over one connection, within its scope."""

    connection: Connection
    generation: Generation
    tokens: QueryTokens
    scope: Scope
    remembered: Remembered
    _slots: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_slots", question_slots(self.tokens.tokens))

    def best(self, count: int) -> list[LegHit]:
        """At most `count` passages, best first."""
        table = self.generation.table("doc")
        total, tokens = self.connection.execute(
            f"SELECT coalesce(sum(n), 0)::bigint, coalesce(sum(tokens), 0)::bigint FROM {table} WHERE {self.scope.bases}",  # noqa: S608
            self.scope.base_values,
        ).fetchone() or (0, 0)
        if not total:
            return []
        average = tokens / total
        if self.tokens.prefix:
            return self._with_prefix(average, count)
        found = self._all() if total <= ALL_COUNTED else None
        if found is not None:
            return best(found, weights(found.frequencies(len(self._slots)), total), average, count)
        worth = weights(self._estimated(total), total)
        return best(self._best_by_database(worth, max(BEST_READ, 4 * count)), worth, average, count)

    # -- reading -----------------------------------------------------------------------------------------------------------------

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor(binary=True) as cursor:
            return cursor.execute(sql, values).fetchall()

    @property
    def _any(self) -> str:
        return f"({any_of(self.tokens.tokens)})"

    def _all(self) -> Passages | None:
        """Every passage of the bases that holds a word; None when those are too many to be read."""
        sql = f"""
            SELECT chunk, doc, len, {self.scope.wanted}, sv FROM {self.generation.table("text")}
            WHERE tsv @@ %s::tsquery AND {self.scope.bases} LIMIT {MOST_READ + 1}"""  # noqa: S608
        rows = self._rows(sql, *self.scope.wanted_values, f"{self.scope.kb_query}{self._any}", *self.scope.base_values)
        return self._passages(rows) if len(rows) <= MOST_READ else None

    def _best_by_database(self, worth: Floats, count: int) -> Passages:
        """The best wanted passages as PostgreSQL can order them: by BM25 for passages of a usual length, or without pgvector by ts_rank."""
        plain = self.generation.mode == PLAIN
        by = "ts_rank(tsv, %s::tsquery, 1) DESC" if plain else "sv <#> %s::sparsevec"
        sql = f"""
            SELECT chunk, doc, len, true, sv FROM {self.generation.table("text")}
            WHERE tsv @@ %s::tsquery AND {self.scope.bases} AND {self.scope.wanted}
            ORDER BY {by}, chunk LIMIT %s"""  # noqa: S608
        question = self._any if plain else sparse_question(self._slots, worth)
        values = (f"{self.scope.kb_query}{self._any}", *self.scope.base_values, *self.scope.wanted_values, question, count)
        return self._passages(self._rows(sql, *values))

    def _passages(self, rows: Sequence[tuple[Any, ...]]) -> Passages:
        chunks, documents, lens, wanted, sparse = zip(*rows, strict=True) if rows else ((),) * 5
        lengths = np.array(lens, dtype=np.int64)
        passage, term, times = times_in(sparse, lengths, self.generation.average, self._slots)
        made = np.array(chunks, dtype=np.int64), np.array(documents, dtype=np.int64), lengths, np.array(wanted, dtype=np.bool_)
        return Passages(*made, passage, term, times)

    def _with_prefix(self, average: float, count: int) -> list[LegHit]:
        """Passages with a word that begins so: all weigh the same, so the shortest are the best."""
        sql = f"""
            SELECT chunk, doc, len FROM {self.generation.table("text")}
            WHERE tsv @@ %s::tsquery AND {self.scope.bases} AND {self.scope.wanted} ORDER BY len, chunk LIMIT %s"""  # noqa: S608
        match = f"{self.scope.kb_query}{quoted(self.tokens.prefix)}:*"
        rows = self._rows(sql, match, *self.scope.base_values, *self.scope.wanted_values, count)
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        ids, documents, lengths = (np.array(column, dtype=np.int64) for column in columns)
        places, ones = np.arange(len(rows)), np.ones(len(rows), dtype=np.int64)
        found = Passages(ids, documents, lengths, ones.astype(np.bool_), places, np.zeros_like(places), ones)
        return best(found, np.ones(1), average, count)

    # -- how rare words are in large bases -----------------------------------------------------------------------------------------

    def _estimated(self, total: int) -> list[float]:
        """How many passages hold the word of each slot."""
        words = {slot(word): word for word in map(lexeme, self.tokens.tokens)}
        key = self.generation.schema, self.generation.id, self.scope.base_values[0], self.scope.kbs
        known = self.remembered.get(key)
        missing = [word for word in words.values() if word not in known]
        if missing:
            made = self._sampled(missing, total)
            self.remembered.add(key, made)
            known |= made
        return [known[words[int(place)]] for place in self._slots]

    def _sampled(self, words: Sequence[str], total: int) -> dict[str, float]:
        level = 0
        while total / 4 ** (level + 1) >= LEAST_SAMPLE:
            level += 1
        if not level:
            return self._counted(words, 0)
        counted = {word: count * 4.0**level for word, count in self._counted(words, level).items() if count >= SURE}
        rare = [word for word in words if word not in counted]
        return counted | (self._counted(rare, 0) if rare else {})

    def _counted(self, words: Sequence[str], level: int) -> dict[str, float]:
        """How many passages of the bases, or of a sample of them, hold each word."""
        sql = f"""
            SELECT (SELECT count(*) FROM {self.generation.table("text")} WHERE tsv @@ (%s || w.word)::tsquery AND {self.scope.bases})
            FROM unnest(%s::text[]) WITH ORDINALITY w (word, at) ORDER BY w.at"""  # noqa: S608
        rows = self._rows(sql, self.scope.sample_query(level), *self.scope.base_values, [quoted(word) for word in words])
        return {word: float(row[0]) for word, row in zip(words, rows, strict=True)}
