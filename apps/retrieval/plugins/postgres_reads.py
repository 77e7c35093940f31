"""The statements that answer a question from one generation of a PostgreSQL index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from psycopg import Connection

from apps.retrieval.plugins.postgres_schema import HNSW_DIMENSIONS, PLAIN, Generation
from apps.retrieval.plugins.postgres_scope import Scope
from apps.retrieval.plugins.postgres_terms import half_text, sequence
from apps.retrieval.plugins.postgres_words import Remembered, Words
from apps.retrieval.plugins.protocol import LegHit, Query
from apps.retrieval.plugins.ranking import Sequences, candidates
from apps.retrieval.plugins.sqlite_vectors import best_rows
from apps.retrieval.tokens import QueryTokens

EXACT_VECTORS = 20_000  # up to so many vectors in scope all are compared: complete, and faster than a graph with a filter
FETCH_DOCUMENTS = 128
EF_SEARCH, MAX_SCAN_TUPLES = 100, 40_000


@dataclass(frozen=True, slots=True)
class Lookups:
    """See `ranking.Lookups`."""

    connection: Connection
    generation: Generation
    query: Query
    tokens: QueryTokens
    scope: Scope
    remembered: Remembered

    def _rows(self, sql: str, *values: Any) -> list[tuple]:
        return self.connection.execute(sql, values).fetchall()

    # -- words -------------------------------------------------------------------------------------------------------------------

    def text(self, count: int) -> list[LegHit]:
        if self.scope.empty or not self.tokens:
            return []
        return Words(self.connection, self.generation, self.tokens, self.scope, self.remembered).best(count)

    def holding(self, sequences: Sequences, among: Sequence[int] = ()) -> list[tuple[int, int]]:
        if self.scope.empty:
            return []
        named = "AND chunk = ANY(%s::bigint[])" if among else ""
        sql = f"""
            SELECT chunk, doc FROM {self.generation.table("text")}
            WHERE tsv @@ %s::tsquery AND {self.scope.where} {named} ORDER BY chunk LIMIT %s"""  # noqa: S608
        match = f"{self.scope.kb_query}({' | '.join(map(sequence, sequences))})"
        values = (match, *self.scope.values, *([list(among)] if among else []))
        return self._rows(sql, *values, len(among) or candidates(self.query))

    def share_holding(self, tokens: Sequence[str]) -> float:
        within, values = self.scope.bases, self.scope.base_values
        sql = f"""
            SELECT (SELECT count(*) FROM {self.generation.table("text")} WHERE tsv @@ %s::tsquery AND {within})::float8
                / greatest((SELECT sum(n) FROM {self.generation.table("doc")} WHERE {within}), 1)"""  # noqa: S608
        return float(self._rows(sql, f"{self.scope.kb_query}{sequence(tokens)}", *values, *values)[0][0])

    # -- vectors -----------------------------------------------------------------------------------------------------------------

    def vector(self, count: int) -> list[LegHit]:
        query = self.query
        if self.scope.empty or query.vector is None or not np.isfinite(query.vector).all():
            return []
        on_documents = self.scope.where.replace("doc = ANY", "id = ANY")
        sql = f"""
            SELECT s.id, s.dimension, (
                SELECT coalesce(sum(vectors), 0) FROM {self.generation.table("doc")} WHERE space = s.id AND {on_documents}
            ) FROM {self.generation.table("space")} s WHERE s.name = %s"""  # noqa: S608
        row = next(iter(self._rows(sql, *self.scope.values, query.vector_space)), None)
        if row is None or np.shape(query.vector) != (row[1],):
            return []
        space, dimension, held = row
        rows = self._from_blobs(space, count) if self.generation.mode == PLAIN else self._from_vectors(space, dimension, held, count)
        return [LegHit(chunk, doc, float(score), rank) for rank, (chunk, doc, score) in enumerate(rows, 1)]

    def _from_vectors(self, space: int, dimension: int, held: int, count: int) -> list[tuple[int, int, float]]:
        question = half_text(self.query.vector) if self.query.vector is not None else None
        if question is None or not held:
            return []
        sql = f"""
            SELECT chunk, doc, -(emb <#> %s::halfvec) AS score FROM {self.generation.vectors(dimension)}
            WHERE {self.scope.where} AND space = %s"""  # noqa: S608
        values = (question, *self.scope.values, space)
        if held > EXACT_VECTORS and dimension <= HNSW_DIMENSIONS:
            with self.connection.transaction():
                self.connection.execute(
                    "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),"
                    " set_config('hnsw.max_scan_tuples', %s, true)",
                    (str(max(EF_SEARCH, count)), str(MAX_SCAN_TUPLES)),
                )
                rows = self._rows(f"{sql} ORDER BY emb <#> %s::halfvec LIMIT %s", *values, question, count)
            if len(rows) == min(count, held):
                return sorted(rows, key=lambda row: (-row[2], row[0]))
        return self._rows(f"{sql} ORDER BY (emb <#> %s::halfvec) + 0, chunk LIMIT %s", *values, question, count)

    def _from_blobs(self, space: int, count: int) -> list[tuple[int, int, float]]:
        on_documents = self.scope.where.replace("doc = ANY", "id = ANY")
        sql = f"""
            SELECT b.doc, b.ids, b.live, b.scale, b.emb FROM {self.generation.table("blob")} b
            WHERE b.doc IN (SELECT id FROM {self.generation.table("doc")} WHERE space = %s AND {on_documents})"""  # noqa: S608
        with self.connection.cursor(binary=True) as cursor:
            cursor.execute(sql, (space, *self.scope.values))
            assert self.query.vector is not None
            return best_rows(iter(lambda: cursor.fetchmany(FETCH_DOCUMENTS), []), self.query.vector, count)
