"""The search engine of the server shape: tables in the application's PostgreSQL, with pgvector where it can be had.

Words are a GIN index over the tokens of the shared tokeniser; BM25 is counted from what it finds, see `postgres_words`. Meaning is compared
exactly up to 20,000 passages in scope, and over an HNSW graph beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from psycopg import Connection

from apps.common.errors import InvalidInput
from apps.retrieval.plugins import postgres_writes as writes
from apps.retrieval.plugins.postgres_reads import Lookups
from apps.retrieval.plugins.postgres_schema import PLAIN, SCHEMA_VERSION, Generation, make_hnsw, make_word_index, tables_of
from apps.retrieval.plugins.postgres_scope import Scope
from apps.retrieval.plugins.postgres_store import Store
from apps.retrieval.plugins.postgres_words import Remembered
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
from apps.retrieval.plugins.ranking import candidates, exact_hits, ranked
from apps.retrieval.plugins.writing import Flags, checked_vectors
from apps.retrieval.tokens import query_tokens, tokeniser_id

T = TypeVar("T")

SCHEMA = "kb_index"
MODES = ("auto", PLAIN)


class PostgresBackend:
    """A SearchBackend over the PostgreSQL schema `schema` of the database `dsn` names. Safe from several threads and processes.

    `mode`: `auto` uses pgvector where it can be had, `plain` never; an index keeps the mode it was made with until it is built again.
    """

    def __init__(self, dsn: str, *, schema: str = SCHEMA, mode: str = "auto") -> None:
        self._store = Store(dsn, schema, mode)
        self._building: Generation | None = None
        self._remembered = Remembered()

    # -- life of the store ------------------------------------------------------------------------------------------------------

    def ensure(self) -> None:
        if self._building is None:
            self._store.create()

    def begin_rebuild(self) -> PostgresBackend:
        self._require_whole()
        new = PostgresBackend(self._store.pool.dsn, schema=self._store.schema, mode=self._store.mode)
        new._building = self._store.begin()
        return new

    def swap(self, new: SearchBackend) -> None:
        self._require_whole()
        if not isinstance(new, PostgresBackend) or new._building is None:
            raise InvalidInput("swap takes what begin_rebuild gave", field="new")
        self._store.swap(new._building, prepare=new.optimise)

    def optimise(self) -> None:
        """Make the indexes that are missing and refresh statistics: worth it after a bulk load."""
        with self._store.connection() as connection:
            generation = self._building or self._store.generations(connection)["current"]
            names = tables_of(connection, generation)
            with connection.transaction():
                connection.execute("SET LOCAL statement_timeout = 0")
                make_word_index(connection, generation)
                for name in names:
                    if name.startswith("vec_"):
                        make_hnsw(connection, generation, int(name.rpartition("_")[2]))
            connection.execute("SET statement_timeout = 0")
            for name in names:
                connection.execute(f"VACUUM (ANALYZE) {generation.schema}.{name}")
            connection.execute("RESET statement_timeout")

    def drop(self) -> None:
        """Remove the index and its PostgreSQL schema."""
        self._store.drop()

    def _require_whole(self) -> None:
        if self._building is not None:
            raise InvalidInput("a store that is being built cannot be rebuilt or swapped itself", field="store")

    # -- writes -----------------------------------------------------------------------------------------------------------------

    def _write(self, work: Callable[[Connection, Generation], T]) -> T:
        return self._store.write(work) if self._building is None else self._store.write_to(self._building, work)

    def put(self, documents: Iterable[IndexDocument]) -> None:
        for batch in writes.batches(documents):
            self._write(partial(writes.put, batch=batch))

    def delete(self, tenant_id: int, *, doc_ids: Sequence[int] | None = None, kb_ids: Sequence[int] | None = None) -> None:
        while self._write(partial(writes.delete, tenant_id=tenant_id, doc_ids=doc_ids, kb_ids=kb_ids)):
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
        self._write(partial(writes.set_flags, tenant_id=tenant_id, doc_ids=doc_ids, flags=flags))

    def refile(self, tenant_id: int, filings: Sequence[Filing]) -> list[int]:
        if not filings:
            return []
        tokens = writes.tokens_of(filings)
        return self._write(partial(writes.refile, tenant_id=tenant_id, filings=filings, tokens=tokens))

    def set_chunk_enabled(self, tenant_id: int, chunk_ids: Sequence[int], enabled: bool) -> None:
        self._write(partial(writes.set_chunk_enabled, tenant_id=tenant_id, chunk_ids=chunk_ids, enabled=enabled))

    def set_vectors(self, tenant_id: int, doc_id: int, rev: int, vector_space: str, vectors: Mapping[int, Vector]) -> bool:
        made = checked_vectors(vectors)
        return self._write(
            partial(writes.set_vectors, tenant_id=tenant_id, doc_id=doc_id, rev=rev, vector_space=vector_space, vectors=made)
        )

    # -- what is there ----------------------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[Connection, Generation], T]) -> T:
        if self._building is None:
            return self._store.read(work)
        with self._store.connection() as connection:
            return work(connection, self._building)

    def revisions(self, tenant_id: int | None = None) -> dict[int, int]:
        return self._read(partial(_revisions, tenant_id=tenant_id))

    def stats(self, tenant_id: int | None = None) -> EngineStats:
        return self._read(partial(_stats, tenant_id=tenant_id))

    def check(self) -> list[str]:
        return self._read(_faults)

    # -- reads ------------------------------------------------------------------------------------------------------------------

    def _lookups(self, connection: Connection, generation: Generation, query: Query) -> Lookups:
        return Lookups(connection, generation, query, query_tokens(query.text), Scope.of(query), self._remembered)

    def text_leg(self, query: Query) -> list[LegHit]:
        return self._read(lambda c, g: self._lookups(c, g, query).text(candidates(query)))

    def vector_leg(self, query: Query) -> list[LegHit]:
        return self._read(lambda c, g: self._lookups(c, g, query).vector(candidates(query)))

    def exact_leg(self, query: Query) -> list[ExactHit]:
        return self._read(lambda c, g: exact_hits(query, query_tokens(query.text), self._lookups(c, g, query)))

    def search(self, query: Query) -> list[Hit]:
        return self._read(lambda c, g: ranked(query, query_tokens(query.text), self._lookups(c, g, query)))


def _revisions(connection: Connection, generation: Generation, tenant_id: int | None) -> dict[int, int]:
    sql = f"SELECT id, rev FROM {generation.table('doc')} WHERE %s::bigint IS NULL OR tenant = %s"  # noqa: S608
    return dict(connection.execute(sql, (tenant_id, tenant_id)).fetchall())


def _stats(connection: Connection, generation: Generation, tenant_id: int | None) -> EngineStats:
    sql = (
        f"SELECT count(*), coalesce(sum(n), 0), coalesce(sum(vectors), 0) FROM {generation.table('doc')}"  # noqa: S608
        " WHERE %s::bigint IS NULL OR tenant = %s"
    )
    documents, chunks, vectors = connection.execute(sql, (tenant_id, tenant_id)).fetchone() or (0, 0, 0)
    tables = [f"{generation.schema}.{name}" for name in tables_of(connection, generation)]
    sql = "SELECT coalesce(sum(pg_total_relation_size(t::regclass)), 0) FROM unnest(%s::text[]) t"
    size = (connection.execute(sql, (tables,)).fetchone() or (0,))[0]
    details = {"engine": "postgres", "mode": generation.mode, "schema": str(SCHEMA_VERSION), "tokeniser": tokeniser_id()}
    return EngineStats(documents, int(chunks), int(vectors), int(size), {**details, "generation": str(generation.id)})


def _faults(connection: Connection, generation: Generation) -> list[str]:
    """Counts of the tables that disagree, seen at one moment."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0")
        return [*_count_faults(connection, generation)]


def _count_faults(connection: Connection, generation: Generation) -> Iterator[str]:
    doc, text = generation.table("doc"), generation.table("text")

    def one(sql: str) -> int:
        return int((connection.execute(sql).fetchone() or (0,))[0])  # type: ignore[arg-type]

    counts = {"documents' passages": one(f"SELECT coalesce(sum(n), 0) FROM {doc}"), "passage rows": one(f"SELECT count(*) FROM {text}")}  # noqa: S608
    if len(set(counts.values())) > 1:
        yield "counts disagree: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    owner = "d.id = t.doc AND d.kb = t.kb AND d.tenant = t.tenant"
    astray = one(f"SELECT count(*) FROM {text} t LEFT JOIN {doc} d ON {owner} WHERE d.id IS NULL")  # noqa: S608
    if astray:
        yield f"{astray} passages belong to no document of their base"
    if generation.mode == PLAIN:
        bare = one(
            f"SELECT count(*) FROM {doc} d LEFT JOIN {generation.table('blob')} b ON b.doc = d.id"  # noqa: S608
            " WHERE b.doc IS NULL OR length(b.ids) <> 8 * d.n OR length(b.live) <> d.n OR length(b.scale) <> 4 * d.n"
        )
        if bare:
            yield f"the vectors of {bare} documents do not fit their passages"
        return
    names = [f"{generation.schema}.{name}" for name in tables_of(connection, generation) if name.startswith("vec_")]
    held = sum(one(f"SELECT count(*) FROM {name}") for name in names)  # noqa: S608
    wanted = one(f"SELECT coalesce(sum(vectors), 0) FROM {doc}")  # noqa: S608
    if held != wanted:
        yield f"counts disagree: documents' vectors {wanted}, vector rows {held}"


def open_postgres(options: Mapping[str, str]) -> PostgresBackend:
    """A backend over the database named by the option `dsn`; `schema` and `mode` may be given.

    Raises: InvalidInput for an option that is missing or unknown.
    """
    if not options.get("dsn"):
        raise InvalidInput("the postgres search backend needs the connection string of its database", field="dsn")
    mode = options.get("mode", "auto")
    if mode not in MODES:
        raise InvalidInput(f"the mode of the postgres search backend is one of {', '.join(MODES)}", field="mode")
    return PostgresBackend(options["dsn"], schema=options.get("schema", SCHEMA), mode=mode)


backends.add("postgres", open_postgres)
