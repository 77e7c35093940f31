"""The search engine that needs no server: one SQLite file with FTS5 for words and bytes for vectors, scored with numpy."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from sqlite3 import Connection, DatabaseError
from typing import Any

import numpy as np

from apps.common.errors import InvalidInput
from apps.retrieval.fusion import FULL_EVIDENCE, coverage, fuse
from apps.retrieval.plugins import sqlite_writes as writes
from apps.retrieval.plugins.protocol import EngineStats, ExactHit, Hit, IndexDocument, LegHit, Query, SearchBackend, Vector, backends
from apps.retrieval.plugins.sqlite_store import CONTENTLESS, SCHEMA_VERSION, Database, Generations
from apps.retrieval.plugins.sqlite_vectors import best_rows
from apps.retrieval.tokens import QueryTokens, query_tokens, tokeniser_id

PUSHDOWN_KBS = 32  # up to this many bases go into MATCH as tokens; more are faster as a filter on the chunk rows
FETCH_DOCUMENTS = 128
EVIDENCE_HITS = 3  # passages whose words are counted to tell how much of the question the text leg understood
MAX_CANDIDATES = 1000
MAX_CODES = 8
FEW_PASSAGES = 10
COMMON_SHARE = 0.25
SQL_INT = range(-(2**63), 2**63)


class SqliteBackend:
    """A SearchBackend over one local file; `path` names it, see `sqlite_store` for what stands beside it.

    Safe from several threads and processes. Local disk only: SQLite's WAL needs shared memory.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._store: Generations | Database = Generations(self.path)

    # -- life of the store ------------------------------------------------------------------------------------------------------

    def ensure(self) -> None:
        if isinstance(self._store, Generations):
            self._store.create()

    def begin_rebuild(self) -> SqliteBackend:
        new = SqliteBackend(self.path)
        new._store = self._generations().begin()
        return new

    def swap(self, new: SearchBackend) -> None:
        if not isinstance(new, SqliteBackend) or not isinstance(new._store, Database):
            raise InvalidInput("swap takes what begin_rebuild gave", field="new")
        self._generations().swap(new._store, prepare=new.optimise)

    def optimise(self) -> None:
        """Merge the word index and refresh statistics: worth it after a bulk load."""
        with self._store.connection() as connection:
            connection.execute("INSERT INTO fts(fts) VALUES ('optimize')")
            connection.execute("ANALYZE")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _generations(self) -> Generations:
        if not isinstance(self._store, Generations):
            raise InvalidInput("a store that is being built cannot be rebuilt or swapped itself", field="store")
        return self._store

    # -- writes -----------------------------------------------------------------------------------------------------------------

    def put(self, documents: Iterable[IndexDocument]) -> None:
        for batch in writes.batches(documents):
            self._store.write(partial(writes.put, batch=batch))

    def delete(self, tenant_id: int, *, doc_ids: Sequence[int] | None = None, kb_ids: Sequence[int] | None = None) -> None:
        while self._store.write(lambda connection: writes.delete(connection, tenant_id, doc_ids, kb_ids)):
            pass

    def set_flags(
        self,
        tenant_id: int,
        doc_ids: Sequence[int],
        *,
        enabled: bool | None = None,
        folder_id: int | None = None,
        tag_ids: Sequence[int] | None = None,
        kb_id: int | None = None,
    ) -> None:
        flags = writes.Flags(enabled=enabled, folder_id=folder_id, tag_ids=tag_ids, kb_id=kb_id)
        self._store.write(lambda connection: writes.set_flags(connection, tenant_id, doc_ids, flags))

    def set_chunk_enabled(self, tenant_id: int, chunk_ids: Sequence[int], enabled: bool) -> None:
        self._store.write(lambda connection: writes.set_chunk_enabled(connection, tenant_id, chunk_ids, enabled))

    def set_vectors(self, tenant_id: int, doc_id: int, rev: int, vector_space: str, vectors: Mapping[int, Vector]) -> bool:
        made = writes.checked_vectors(vectors)
        return self._store.write(lambda connection: writes.set_vectors(connection, tenant_id, doc_id, rev, vector_space, made))

    # -- what is there ----------------------------------------------------------------------------------------------------------

    def revisions(self, tenant_id: int | None = None) -> dict[int, int]:
        with self._store.connection() as connection:
            if tenant_id is None:
                return dict(connection.execute("SELECT id, rev FROM doc"))
            return dict(connection.execute("SELECT id, rev FROM doc WHERE tenant = ?", (tenant_id,)))

    def stats(self, tenant_id: int | None = None) -> EngineStats:
        where, values = ("", ()) if tenant_id is None else ("WHERE tenant = ?", (tenant_id,))
        with self._store.connection() as connection:
            sql = f"SELECT count(*), coalesce(sum(n), 0), coalesce(sum(vectors), 0) FROM doc {where}"  # noqa: S608
            documents, chunks, vectors = connection.execute(sql, values).fetchone()
            file = Path(connection.execute("PRAGMA database_list").fetchone()[2])
        sizes = [p.stat().st_size for p in (file, Path(f"{file}-wal")) if p.exists()]
        details = {"engine": "sqlite", "file": file.name, "schema": str(SCHEMA_VERSION), "tokeniser": tokeniser_id()}
        return EngineStats(documents, chunks, vectors, sum(sizes), {**details, "contentless": str(CONTENTLESS).lower()})

    def check(self) -> list[str]:
        with self._store.fresh_connection() as connection:
            faults = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            try:
                connection.execute("INSERT INTO fts(fts) VALUES ('integrity-check')")
            except DatabaseError as error:
                faults.append(f"word index: {error}")
            counts = {
                "documents' passages": "SELECT coalesce(sum(n), 0) FROM doc",
                "passage rows": "SELECT count(*) FROM chunk",
                "passages in the word index": "SELECT count(*) FROM fts_docsize",
            }
            found = {name: connection.execute(sql).fetchone()[0] for name, sql in counts.items()}
        if len(set(found.values())) > 1:
            faults.append("counts disagree: " + ", ".join(f"{name} {count}" for name, count in found.items()))
        return faults

    # -- reads ------------------------------------------------------------------------------------------------------------------

    def text_leg(self, query: Query) -> list[LegHit]:
        with self._store.connection() as connection:
            return _text_leg(connection, query, _Scope.of(connection, query), query_tokens(query.text))

    def vector_leg(self, query: Query) -> list[LegHit]:
        with self._store.connection() as connection:
            return _vector_leg(connection, query, _Scope.of(connection, query))

    def exact_leg(self, query: Query) -> list[ExactHit]:
        with self._store.connection() as connection:
            return _exact_leg(connection, query, _Scope.of(connection, query), query_tokens(query.text))

    def matched_terms(self, query: Query, chunk_ids: Sequence[int]) -> dict[int, frozenset[str]]:
        with self._store.connection() as connection:
            return _matched_terms(connection, _Scope.of(connection, query), query_tokens(query.text), chunk_ids)

    def search(self, query: Query) -> list[Hit]:
        tokens = query_tokens(query.text)
        text: list[LegHit] = []
        vector: list[LegHit] = []
        exact: list[ExactHit] = []
        known = 1.0
        with self._store.connection() as connection:
            scope = _Scope.of(connection, query)
            if query.mode != "vector":
                text = _text_leg(connection, query, scope, tokens)
            if query.mode != "text":
                vector = _vector_leg(connection, query, scope)
            if text:  # what stands there word for word was found by its words
                exact = _exact_leg(connection, query, scope, tokens, [hit.chunk_id for hit in (*text, *vector)])
            if text and vector:
                best = [hit.chunk_id for hit in text[:EVIDENCE_HITS]]
                enough = math.ceil(FULL_EVIDENCE * len(tokens.tokens))
                known = coverage(tokens.tokens, _matched_terms(connection, scope, tokens, best, enough))
        return fuse(text, vector, exact=exact, weights=query.weights, method=query.fusion, known=known)[: max(query.k, 0)]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a query may look, as SQL. `empty` means nowhere; `documents` restricts by document, with its bound values."""

    empty: bool
    tenant: int = 0
    kbs: str = "[]"
    kb_match: str = ""
    documents: str = ""
    values: tuple[Any, ...] = ()

    @classmethod
    def of(cls, connection: Connection, query: Query) -> _Scope:
        kbs = sorted({kb for kb in query.kb_ids if kb in SQL_INT})
        restrictions = (query.tag_ids, query.folder_ids, query.doc_ids)
        if not kbs or query.tenant_id not in SQL_INT or any(ids is not None and not len(ids) for ids in restrictions):
            return cls(empty=True)
        wanted = json.dumps(kbs)
        homes = connection.execute("SELECT DISTINCT home FROM moved WHERE kb IN (SELECT value FROM json_each(?))", (wanted,))
        words = sorted({*kbs, *(row[0] for row in homes)})
        match = ""
        if len(words) <= PUSHDOWN_KBS:
            match = f"{{kb}} : ({' OR '.join(_quoted([writes.kb_token(query.tenant_id, kb)]) for kb in words)}) AND "
        clauses: list[str] = []
        values: list[Any] = []
        for ids, clause in zip(restrictions, _DOCUMENT_CLAUSES, strict=True):
            if ids is not None:
                clauses.append(clause)
                values.append(json.dumps([i for i in ids if i in SQL_INT]))
                if ":tenant" in clause:
                    values.append(query.tenant_id)
        return cls(False, query.tenant_id, wanted, match, " AND ".join(clauses).replace(":tenant", "?"), tuple(values))


_DOCUMENT_CLAUSES = (
    "{id} IN (SELECT doc FROM doctag WHERE tag IN (SELECT value FROM json_each(?)))",
    "{id} IN (SELECT id FROM doc WHERE folder IN (SELECT value FROM json_each(?)) AND tenant = :tenant)",
    "{id} IN (SELECT value FROM json_each(?))",
)


def _quoted(tokens: Sequence[str]) -> str:
    """The tokens as one FTS5 phrase."""
    return '"' + " ".join(tokens).replace('"', '""') + '"'


def _find(connection: Connection, query: Query, scope: _Scope, words: str, *, among: Sequence[int] = ()) -> list[tuple[int, int, float]]:
    """(chunk id, document id, BM25 with the sign of FTS5: the lower the better) of the best passages for an FTS5 expression.

    With `among`, of those passages only, all of them.
    """
    documents = f"AND {scope.documents.format(id='c.doc')}" if scope.documents else ""
    documents += f" AND fts.rowid IN ({','.join('?' * len(among))})" if among else ""
    sql = f"""
        SELECT c.id, c.doc, bm25(fts, 0.0, 1.0) AS score FROM fts CROSS JOIN chunk c ON c.id = fts.rowid
        WHERE fts MATCH ? AND c.enabled = 1 AND c.tenant = ? AND c.kb IN (SELECT value FROM json_each(?)) {documents}
        ORDER BY score, c.id LIMIT ?"""  # noqa: S608
    match = f"{scope.kb_match}{{body}} : ({words})"
    limit = len(among) or _candidates(query)
    return connection.execute(sql, (match, scope.tenant, scope.kbs, *scope.values, *among, limit)).fetchall()


def _candidates(query: Query) -> int:
    return min(max(query.candidates, query.k, 1), MAX_CANDIDATES)


def _text_leg(connection: Connection, query: Query, scope: _Scope, tokens: QueryTokens) -> list[LegHit]:
    if scope.empty or not tokens:
        return []
    words = " OR ".join(_quoted([token]) for token in tokens.tokens) or f"{_quoted([tokens.prefix])} *"
    rows = _find(connection, query, scope, words)
    return [LegHit(chunk, doc, -score, rank) for rank, (chunk, doc, score) in enumerate(rows, 1)]


def _exact_leg(connection: Connection, query: Query, scope: _Scope, tokens: QueryTokens, listed: Sequence[int] = ()) -> list[ExactHit]:
    """Passages with the codes or the wording of the question; `listed` are looked at even when there are too many to list."""
    if scope.empty:
        return []
    found: list[tuple[int, list[tuple[int, int, float]]]] = []
    if tokens.phrase:
        found.append((1, _holding(connection, query, scope, _quoted(tokens.phrase), listed)))
    for code in tokens.codes[:MAX_CODES]:
        whole = _holding(connection, query, scope, _quoted(code.whole), listed)
        if not tokens.only_codes and _is_common(connection, scope, code.whole, len(whole)):
            continue
        found.append((4, whole))
        loose = [_quoted(sequence) for sequence in (code.parts, (code.joined,)) if any(sequence)]
        if loose:
            found.append((2, _holding(connection, query, scope, " OR ".join(loose), listed)))
    grades: dict[int, int] = {}
    owners: dict[int, int] = {}
    for grade, rows in found:
        for chunk, doc, _ in rows:
            grades[chunk] = grades.get(chunk, 0) + grade
            owners[chunk] = doc
    return [ExactHit(chunk, owners[chunk], grades[chunk]) for chunk in sorted(grades, key=lambda chunk: (-grades[chunk], chunk))]


def _holding(connection: Connection, query: Query, scope: _Scope, words: str, listed: Sequence[int]) -> list[tuple[int, int, float]]:
    rows = _find(connection, query, scope, words)
    if len(rows) < _candidates(query) or not listed:
        return rows
    return list({row[0]: row for row in (*rows, *_find(connection, query, scope, words, among=listed))}.values())


def _is_common(connection: Connection, scope: _Scope, sequence: Sequence[str], seen: int) -> bool:
    """Whether so many passages hold a code that it is the subject of the bases and singles nothing out (COVID-19 in a COVID-19 FAQ)."""
    if seen <= FEW_PASSAGES:
        return False
    within = f"{scope.kb_match}{{body}} : {_quoted(sequence)}"
    holding = connection.execute("SELECT count(*) FROM fts WHERE fts MATCH ?", (within,)).fetchone()[0]
    sql = "SELECT coalesce(sum(n), 0) FROM doc WHERE kb IN (SELECT value FROM json_each(?)) AND +tenant = ?"
    return holding > COMMON_SHARE * connection.execute(sql, (scope.kbs, scope.tenant)).fetchone()[0]


def _vector_leg(connection: Connection, query: Query, scope: _Scope) -> list[LegHit]:
    if scope.empty or query.vector is None or not np.isfinite(query.vector).all():
        return []
    space = connection.execute("SELECT id, dimension FROM space WHERE name = ?", (query.vector_space,)).fetchone()
    if space is None or np.shape(query.vector) != (space[1],):
        return []
    documents = f"AND {scope.documents.format(id='id')}" if scope.documents else ""
    sql = f"""
        SELECT id, ids, live, scale, emb FROM doc
        WHERE kb IN (SELECT value FROM json_each(?)) AND +tenant = ? AND +space = ? AND enabled = 1 {documents}"""  # noqa: S608
    cursor = connection.execute(sql, (scope.kbs, scope.tenant, space[0], *scope.values))
    rows = best_rows(iter(lambda: cursor.fetchmany(FETCH_DOCUMENTS), []), query.vector, _candidates(query))
    return [LegHit(chunk, doc, score, rank) for rank, (chunk, doc, score) in enumerate(rows, 1)]


def _matched_terms(
    connection: Connection, scope: _Scope, tokens: QueryTokens, chunk_ids: Sequence[int], enough: int = MAX_CANDIDATES
) -> dict[int, frozenset[str]]:
    """Which tokens each passage holds; ends as soon as one is known to hold `enough`."""
    if scope.empty:
        return {}
    sql = "SELECT id FROM chunk WHERE id IN (SELECT value FROM json_each(?)) AND tenant = ? AND kb IN (SELECT value FROM json_each(?))"
    named = json.dumps([i for i in chunk_ids if i in SQL_INT])
    seen = [row[0] for row in connection.execute(sql, (named, scope.tenant, scope.kbs))]
    held: dict[int, set[str]] = {chunk: set() for chunk in seen}
    sql = f"SELECT rowid FROM fts WHERE fts MATCH ? AND rowid IN ({','.join('?' * len(seen))})"  # noqa: S608
    words = [(token, _quoted([token])) for token in tokens.tokens] or [(tokens.prefix, f"{_quoted([tokens.prefix])} *")]
    for token, expression in words if seen and tokens else ():
        for (chunk,) in connection.execute(sql, (f"{{body}} : {expression}", *seen)):
            held[chunk].add(token)
        if any(len(terms) >= enough for terms in held.values()):
            break
    return {chunk: frozenset(terms) for chunk, terms in held.items()}


def open_sqlite(options: Mapping[str, str]) -> SqliteBackend:
    """A backend over the file named by the option `path`. Raises: InvalidInput when it is missing."""
    if not options.get("path"):
        raise InvalidInput("the sqlite search backend needs the path of its file", field="path")
    return SqliteBackend(options["path"])


backends.add("sqlite", open_sqlite)
