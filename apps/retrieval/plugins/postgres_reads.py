"""The statements that answer a question from one generation of a PostgreSQL index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from psycopg import Connection

from apps.retrieval.plugins.postgres_schema import HNSW_DIMENSIONS, PLAIN, Generation
from apps.retrieval.plugins.postgres_terms import (
    K1,
    B,
    Frequencies,
    any_of,
    half_text,
    kb_lexeme,
    lexeme,
    quoted,
    sequence,
    sparse_question,
    tenant_lexeme,
)
from apps.retrieval.plugins.protocol import LegHit, Query
from apps.retrieval.plugins.ranking import MAX_CANDIDATES, SQL_INT, Sequences, candidates
from apps.retrieval.plugins.sqlite_vectors import best_rows
from apps.retrieval.tokens import QueryTokens

PUSHDOWN_KBS = 32  # up to this many bases go into the word index as words; of more only their space, and the rows are filtered
EXACT_VECTORS = 20_000  # up to so many vectors in scope all are compared: complete, and faster than a graph with a filter
RANKED_BEFORE_BM25 = 200  # without pgvector: passages taken by ts_rank, then put in the order of BM25
FETCH_DOCUMENTS = 128
EF_SEARCH, MAX_SCAN_TUPLES = 100, 40_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a query may look, as SQL over a table with the columns tenant, kb, doc, folder, tags. `empty` means nowhere."""

    empty: bool
    where: str = ""
    values: tuple[Any, ...] = ()
    kbs: tuple[int, ...] = ()
    kb_query: str = ""  # a tsquery ending in " & ": the bases, or the space when there are many

    @classmethod
    def of(cls, query: Query) -> Scope:
        kbs = sorted({kb for kb in query.kb_ids if kb in SQL_INT})
        restrictions = {"tags && ": query.tag_ids, "folder = ANY": query.folder_ids, "doc = ANY": query.doc_ids}
        if not kbs or query.tenant_id not in SQL_INT or any(ids is not None and not len(ids) for ids in restrictions.values()):
            return cls(empty=True)
        clauses, values = ["tenant = %s", "kb = ANY(%s::bigint[])"], [query.tenant_id, kbs]
        for clause, ids in restrictions.items():
            if ids is not None:
                clauses.append(f"{clause}(%s::bigint[])")
                values.append([i for i in ids if i in SQL_INT])
        few = len(kbs) <= PUSHDOWN_KBS
        ties = [kb_lexeme(query.tenant_id, kb) for kb in kbs] if few else [tenant_lexeme(query.tenant_id)]
        return cls(False, " AND ".join(clauses), tuple(values), tuple(kbs), f"({' | '.join(map(quoted, ties))}) & ")


@dataclass(frozen=True, slots=True)
class Lookups:
    """See `ranking.Lookups`."""

    connection: Connection
    generation: Generation
    query: Query
    tokens: QueryTokens
    scope: Scope
    frequencies: Frequencies
    _weights: dict[str, float] = field(default_factory=dict)  # worked out once a question

    def _rows(self, sql: str, *values: Any) -> list[tuple]:
        return self.connection.execute(sql, values).fetchall()

    # -- words -------------------------------------------------------------------------------------------------------------------

    def text(self) -> list[LegHit]:
        if self.scope.empty or not self.tokens:
            return []
        if self.tokens.tokens:
            rows = self._find(any_of(self.tokens.tokens))
        else:
            rows = self._by_bm25(f"{quoted(self.tokens.prefix)}:*", [(self.tokens.prefix, 1.0)], prefix=True)
        return [LegHit(chunk, doc, float(score), rank) for rank, (chunk, doc, score) in enumerate(rows, 1)]

    def _find(self, words: str, among: Sequence[int] = ()) -> list[tuple[int, int, float]]:
        """(chunk, document, BM25 of the whole question) of the best passages for a tsquery; with `among`, of those only, all of them."""
        weights = self._weights
        if self.tokens.tokens and not weights:
            wanted = list(dict.fromkeys(map(lexeme, self.tokens.tokens)))
            weights.update(self.frequencies.idf(self.connection, wanted))
        if self.generation.mode == PLAIN:
            return self._by_bm25(words, list(weights.items()), among=among)
        named = "AND chunk = ANY(%s::bigint[])" if among else ""
        sql = f"""
            SELECT chunk, doc, -(sv <#> q.asked) AS score FROM {self.generation.table("text")}, (SELECT %s::sparsevec AS asked) q
            WHERE tsv @@ %s::tsquery AND enabled AND {self.scope.where} {named}
            ORDER BY score DESC, chunk LIMIT %s"""  # noqa: S608
        values = [sparse_question(weights), f"{self.scope.kb_query}({words})", *self.scope.values, *([list(among)] if among else [])]
        return self._rows(sql, *values, len(among) or candidates(self.query))

    def _by_bm25(
        self, words: str, weights: Sequence[tuple[str, float]], *, among: Sequence[int] = (), prefix: bool = False
    ) -> list[tuple[int, int, float]]:
        """The same without pgvector: the best by ts_rank, put in order by BM25 in the same statement."""
        named = "AND chunk = ANY(%s::bigint[])" if among else ""
        count = len(among) or candidates(self.query)
        norm = f"{K1} * ({1 - B} + {B} * len / {self.generation.average}::float8)"
        matches = "starts_with(u.lexeme, w.term)" if prefix else "u.lexeme = w.term"
        sql = f"""
            WITH best AS MATERIALIZED (
                SELECT chunk, doc, len, tsv FROM {self.generation.table("text")}
                WHERE tsv @@ %s::tsquery AND enabled AND {self.scope.where} {named}
                ORDER BY ts_rank(tsv, %s::tsquery, 1) DESC, chunk LIMIT %s
            ), counted AS (
                SELECT b.chunk, b.len, w.weight, sum(coalesce(cardinality(u.positions), 1)) AS tf
                FROM best b CROSS JOIN LATERAL unnest(b.tsv) u JOIN unnest(%s::text[], %s::float8[]) w (term, weight) ON {matches}
                GROUP BY b.chunk, b.len, w.term, w.weight
            ), scored AS (SELECT chunk, sum(weight * tf * {K1 + 1} / (tf + {norm})) AS score FROM counted GROUP BY chunk)
            SELECT b.chunk, b.doc, coalesce(s.score, 0) AS score FROM best b LEFT JOIN scored s ON s.chunk = b.chunk
            ORDER BY score DESC, chunk LIMIT %s"""  # noqa: S608
        ranked_by = words if prefix else any_of(self.tokens.tokens) or words
        values = [f"{self.scope.kb_query}({words})", *self.scope.values, *([list(among)] if among else []), ranked_by]
        terms, idf = [term for term, _ in weights], [weight for _, weight in weights]
        return self._rows(sql, *values, max(count, RANKED_BEFORE_BM25), terms, idf, count)

    def holding(self, sequences: Sequences, among: Sequence[int] = ()) -> list[tuple[int, int]]:
        if self.scope.empty:
            return []
        return [(chunk, doc) for chunk, doc, _ in self._find(" | ".join(map(sequence, sequences)), among)]

    def share_holding(self, tokens: Sequence[str]) -> float:
        within = "tenant = %s AND kb = ANY(%s::bigint[])"
        values = (self.query.tenant_id, list(self.scope.kbs))
        sql = f"""
            SELECT (SELECT count(*) FROM {self.generation.table("text")} WHERE tsv @@ %s::tsquery AND {within})::float8
                / greatest((SELECT sum(n) FROM {self.generation.table("doc")} WHERE {within}), 1)"""  # noqa: S608
        return float(self._rows(sql, f"{self.scope.kb_query}{sequence(tokens)}", *values, *values)[0][0])

    def matched(self, chunk_ids: Sequence[int], enough: int = MAX_CANDIDATES) -> dict[int, frozenset[str]]:
        if self.scope.empty:
            return {}
        named = [i for i in chunk_ids if i in SQL_INT]
        if self.tokens.prefix:
            wanted, matches = {self.tokens.prefix: self.tokens.prefix}, "starts_with(u.lexeme, w.word)"
        else:
            wanted, matches = {lexeme(token): token for token in self.tokens.tokens}, "u.lexeme = w.word"
        sql = f"""
            SELECT t.chunk, array(
                SELECT DISTINCT w.word FROM unnest(t.tsv) u JOIN unnest(%s::text[]) w (word) ON {matches}
            ) FROM {self.generation.table("text")} t
            WHERE t.chunk = ANY(%s::bigint[]) AND t.tenant = %s AND t.kb = ANY(%s::bigint[])"""  # noqa: S608
        rows = self._rows(sql, list(wanted), named, self.query.tenant_id, list(self.scope.kbs))
        return {chunk: frozenset(wanted[word] for word in words) for chunk, words in rows}

    # -- vectors -----------------------------------------------------------------------------------------------------------------

    def vector(self) -> list[LegHit]:
        query = self.query
        if self.scope.empty or query.vector is None or not np.isfinite(query.vector).all():
            return []
        on_documents = self.scope.where.replace("doc = ANY", "id = ANY")
        sql = f"""
            SELECT s.id, s.dimension, (
                SELECT coalesce(sum(vectors), 0) FROM {self.generation.table("doc")} WHERE space = s.id AND enabled AND {on_documents}
            ) FROM {self.generation.table("space")} s WHERE s.name = %s"""  # noqa: S608
        row = next(iter(self._rows(sql, *self.scope.values, query.vector_space)), None)
        if row is None or np.shape(query.vector) != (row[1],):
            return []
        space, dimension, held = row
        rows = self._from_blobs(space) if self.generation.mode == PLAIN else self._from_vectors(space, dimension, held)
        return [LegHit(chunk, doc, float(score), rank) for rank, (chunk, doc, score) in enumerate(rows, 1)]

    def _from_vectors(self, space: int, dimension: int, held: int) -> list[tuple[int, int, float]]:
        question = half_text(self.query.vector) if self.query.vector is not None else None
        if question is None or not held:
            return []
        wanted = candidates(self.query)
        sql = f"""
            SELECT chunk, doc, -(emb <#> %s::halfvec) AS score FROM {self.generation.vectors(dimension)}
            WHERE {self.scope.where} AND space = %s AND enabled"""  # noqa: S608
        values = (question, *self.scope.values, space)
        if held > EXACT_VECTORS and dimension <= HNSW_DIMENSIONS:
            with self.connection.transaction():
                self.connection.execute(
                    "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true),"
                    " set_config('hnsw.max_scan_tuples', %s, true)",
                    (str(max(EF_SEARCH, wanted)), str(MAX_SCAN_TUPLES)),
                )
                rows = self._rows(f"{sql} ORDER BY emb <#> %s::halfvec LIMIT %s", *values, question, wanted)
            if len(rows) == min(wanted, held):
                return sorted(rows, key=lambda row: (-row[2], row[0]))
        return self._rows(f"{sql} ORDER BY (emb <#> %s::halfvec) + 0, chunk LIMIT %s", *values, question, wanted)

    def _from_blobs(self, space: int) -> list[tuple[int, int, float]]:
        on_documents = self.scope.where.replace("doc = ANY", "id = ANY")
        sql = f"""
            SELECT b.doc, b.ids, b.live, b.scale, b.emb FROM {self.generation.table("blob")} b
            WHERE b.doc IN (SELECT id FROM {self.generation.table("doc")} WHERE space = %s AND enabled AND {on_documents})"""  # noqa: S608
        with self.connection.cursor(binary=True) as cursor:
            cursor.execute(sql, (space, *self.scope.values))
            assert self.query.vector is not None
            return best_rows(iter(lambda: cursor.fetchmany(FETCH_DOCUMENTS), []), self.query.vector, candidates(self.query))
