"""The search engine that needs no server: one SQLite file with FTS5 for words and bytes for vectors, scored with numpy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from sqlite3 import Connection, DatabaseError
from typing import Any

import numpy as np

from apps.common.errors import InvalidInput
from apps.retrieval.plugins import sqlite_writes as writes
from apps.retrieval.plugins.bm25 import best, question_slots, weights
from apps.retrieval.plugins.protocol import (
    EngineStats,
    ExactHit,
    Filing,
    Hit,
    IndexDocument,
    LegHit,
    Query,
    SearchBackend,
    Vector,
    backends,
)
from apps.retrieval.plugins.ranking import SQL_INT, Sequences, candidates, exact_hits, ranked
from apps.retrieval.plugins.sqlite_store import SCHEMA_VERSION, Database, Generations
from apps.retrieval.plugins.sqlite_vectors import best_rows
from apps.retrieval.plugins.sqlite_words import COLUMNS, gathered
from apps.retrieval.plugins.writing import Flags, checked_vectors
from apps.retrieval.tokens import QueryTokens, query_tokens, tokeniser_id

PUSHDOWN_KBS = 32  # up to this many bases go into MATCH as tokens; more are faster as a filter on the chunk rows
FETCH_DOCUMENTS = 128


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

    def drop(self) -> None:
        self._generations().drop()

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
        flags = Flags(enabled=enabled, folder_id=folder_id, tag_ids=tag_ids, kb_id=kb_id)
        self._store.write(lambda connection: writes.set_flags(connection, tenant_id, doc_ids, flags))

    def refile(self, tenant_id: int, filings: Sequence[Filing]) -> list[int]:
        words = writes.tokens_of(filings)
        return self._store.write(lambda connection: writes.refile(connection, tenant_id, filings, words)) if filings else []

    def set_chunk_enabled(self, tenant_id: int, chunk_ids: Sequence[int], enabled: bool) -> None:
        self._store.write(lambda connection: writes.set_chunk_enabled(connection, tenant_id, chunk_ids, enabled))

    def set_vectors(self, tenant_id: int, doc_id: int, rev: int, vector_space: str, vectors: Mapping[int, Vector]) -> bool:
        made = checked_vectors(vectors)
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
        return EngineStats(documents, chunks, vectors, sum(sizes), details)

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
                "passages whose words are counted": "SELECT coalesce(sum(length(lens)), 0) / 4 FROM words",
            }
            found = {name: connection.execute(sql).fetchone()[0] for name, sql in counts.items()}
        if len(set(found.values())) > 1:
            faults.append("counts disagree: " + ", ".join(f"{name} {count}" for name, count in found.items()))
        return faults

    # -- reads ------------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _lookups(self, query: Query) -> Iterator[_Lookups]:
        with self._store.connection() as connection:
            yield _Lookups(connection, query, _Scope.of(connection, query), query_tokens(query.text))

    def text_leg(self, query: Query) -> list[LegHit]:
        with self._lookups(query) as lookups:
            return lookups.text(candidates(query))

    def vector_leg(self, query: Query) -> list[LegHit]:
        with self._lookups(query) as lookups:
            return lookups.vector(candidates(query))

    def exact_leg(self, query: Query) -> list[ExactHit]:
        with self._lookups(query) as lookups:
            return exact_hits(query, lookups.tokens, lookups)

    def search(self, query: Query) -> list[Hit]:
        with self._lookups(query) as lookups:
            return ranked(query, lookups.tokens, lookups)


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


@dataclass(frozen=True, slots=True)
class _Lookups:
    """See `ranking.Lookups`."""

    connection: Connection
    query: Query
    scope: _Scope
    tokens: QueryTokens

    def _find(self, words: str, limit: int, among: Sequence[int] = ()) -> list[tuple[int, int]]:
        """(chunk id, document id) of the first `limit` passages, by id, that an FTS5 expression finds."""
        documents = f"AND {self.scope.documents.format(id='c.doc')}" if self.scope.documents else ""
        documents += f" AND fts.rowid IN ({','.join('?' * len(among))})" if among else ""
        sql = f"""
            SELECT c.id, c.doc FROM fts CROSS JOIN chunk c ON c.id = fts.rowid
            WHERE fts MATCH ? AND c.enabled = 1 AND c.tenant = ? AND c.kb IN (SELECT value FROM json_each(?)) {documents}
            ORDER BY fts.rowid LIMIT ?"""  # noqa: S608
        match = f"{self.scope.kb_match}{{body}} : ({words})"
        values = (match, self.scope.tenant, self.scope.kbs, *self.scope.values, *among, limit)
        return self.connection.execute(sql, values).fetchall()

    def text(self, count: int) -> list[LegHit]:
        if self.scope.empty or not self.tokens:
            return []
        slots = question_slots(self.tokens.tokens)
        found = gathered(self._documents(), slots)
        if not len(found.ids):
            return []
        worth = weights(found.frequencies(len(slots)), len(found.ids))
        if self.tokens.prefix:
            holding = [chunk for chunk, _ in self._find(f"{_quoted([self.tokens.prefix])} *", -1)]
            found, worth = found.holding(holding), np.ones(1)
        return best(found, worth, float(found.lengths.mean()), count)

    def _documents(self) -> Iterator[list[tuple[Any, ...]]]:
        """What `gathered` takes of every document of the bases: a filter hides a passage, but its words count."""
        scope = self.scope
        columns = ", ".join(f"w.{name}" for name in COLUMNS.split(", "))
        wanted = f"enabled AND {scope.documents.format(id='id')}" if scope.documents else "enabled"
        sql = f"""
            SELECT id, {wanted}, ids, live, {columns} FROM doc JOIN words w ON w.doc = doc.id
            WHERE kb IN (SELECT value FROM json_each(?)) AND +tenant = ?"""  # noqa: S608
        cursor = self.connection.execute(sql, (*scope.values, scope.kbs, scope.tenant))
        return iter(lambda: cursor.fetchmany(FETCH_DOCUMENTS), [])

    def vector(self, count: int) -> list[LegHit]:
        query, scope = self.query, self.scope
        if scope.empty or query.vector is None or not np.isfinite(query.vector).all():
            return []
        space = self.connection.execute("SELECT id, dimension FROM space WHERE name = ?", (query.vector_space,)).fetchone()
        if space is None or np.shape(query.vector) != (space[1],):
            return []
        documents = f"AND {scope.documents.format(id='id')}" if scope.documents else ""
        sql = f"""
            SELECT id, ids, live, scale, emb FROM doc
            WHERE kb IN (SELECT value FROM json_each(?)) AND +tenant = ? AND +space = ? AND enabled = 1 {documents}"""  # noqa: S608
        cursor = self.connection.execute(sql, (scope.kbs, scope.tenant, space[0], *scope.values))
        rows = best_rows(iter(lambda: cursor.fetchmany(FETCH_DOCUMENTS), []), query.vector, count)
        return [LegHit(chunk, doc, score, rank) for rank, (chunk, doc, score) in enumerate(rows, 1)]

    def holding(self, sequences: Sequences, among: Sequence[int] = ()) -> list[tuple[int, int]]:
        if self.scope.empty:
            return []
        return self._find(" OR ".join(_quoted(sequence) for sequence in sequences), len(among) or candidates(self.query), among)

    def share_holding(self, sequence: Sequence[str]) -> float:
        within = f"{self.scope.kb_match}{{body}} : {_quoted(sequence)}"
        holding = self.connection.execute("SELECT count(*) FROM fts WHERE fts MATCH ?", (within,)).fetchone()[0]
        sql = "SELECT coalesce(sum(n), 0) FROM doc WHERE kb IN (SELECT value FROM json_each(?)) AND +tenant = ?"
        return holding / max(self.connection.execute(sql, (self.scope.kbs, self.scope.tenant)).fetchone()[0], 1)


def open_sqlite(options: Mapping[str, str]) -> SqliteBackend:
    """A backend over the file named by the option `path`. Raises: InvalidInput when it is missing."""
    if not options.get("path"):
        raise InvalidInput("the sqlite search backend needs the path of its file", field="path")
    return SqliteBackend(options["path"])


backends.add("sqlite", open_sqlite)
