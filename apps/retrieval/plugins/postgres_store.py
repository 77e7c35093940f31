"""Where the PostgreSQL index lives: its schema of tables, which generation of them is current, connections, versions.

All of it stands in one PostgreSQL schema of the application's database (`kb_index`), made here and not by migrations: it is derived and
may be dropped at any time. `generation` names the set of tables that answers (`current`) and the one being filled (`building`); the
tables carry its number. A swap is one transaction over `generation`, and a write goes to both sets in one transaction.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import psycopg
from psycopg import Connection, errors

from apps.common.errors import TransientError, Unavailable
from apps.retrieval.plugins.postgres_terms import SLOTS
from apps.retrieval.plugins.protocol import IndexMissing, IndexOutdated
from apps.retrieval.tokens import tokeniser_id

log = logging.getLogger(__name__)

T = TypeVar("T")

SCHEMA_VERSION = 1
IDLE_CONNECTIONS = 4
UNCHECKED_S = 5.0  # an idle connection older than this is tried before it is trusted
CONNECT_TIMEOUT_S = 10
STATEMENT_TIMEOUT_MS = 30_000
LOCK_TIMEOUT_MS = 20_000
LEAST_PGVECTOR = (0, 8)  # iterative scans
HNSW_DIMENSIONS = 4000
VECTOR, PLAIN = "vector", "plain"

_GENERATIONS = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.generation (
    id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('current', 'building', 'dropped')),
    version INTEGER NOT NULL, tokeniser TEXT NOT NULL, mode TEXT NOT NULL CHECK (mode IN ('vector', 'plain'))
);
CREATE UNIQUE INDEX IF NOT EXISTS generation_state ON {schema}.generation (state) WHERE state <> 'dropped';
"""
_TABLES = """
CREATE TABLE {doc} (
    id BIGINT PRIMARY KEY, tenant BIGINT NOT NULL, kb BIGINT NOT NULL, space INTEGER NOT NULL, rev BIGINT NOT NULL,
    folder BIGINT NOT NULL, tags BIGINT[] NOT NULL, enabled BOOLEAN NOT NULL, n INTEGER NOT NULL, vectors INTEGER NOT NULL
);
CREATE INDEX ON {doc} (kb);
CREATE INDEX ON {doc} (tenant);
CREATE TABLE {space} (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
CREATE TABLE {text} (
    chunk BIGINT PRIMARY KEY, tenant BIGINT NOT NULL, kb BIGINT NOT NULL, doc BIGINT NOT NULL, folder BIGINT NOT NULL,
    tags BIGINT[] NOT NULL, live BOOLEAN NOT NULL, enabled BOOLEAN NOT NULL, len INTEGER NOT NULL, tsv TSVECTOR NOT NULL {sparse}
) WITH (toast_tuple_target = 128, fillfactor = 90);
ALTER TABLE {text} ALTER tsv SET STORAGE EXTERNAL, ALTER tsv SET STATISTICS 1000;
CREATE INDEX ON {text} USING gin (tsv) WITH (gin_pending_list_limit = 512);
CREATE INDEX ON {text} (doc);
"""
_SPARSE = "ALTER TABLE {text} ALTER sv SET STORAGE PLAIN"
_BLOBS = """
CREATE TABLE {blob} (doc BIGINT PRIMARY KEY, ids BYTEA NOT NULL, live BYTEA NOT NULL, scale BYTEA NOT NULL, emb BYTEA NOT NULL);
ALTER TABLE {blob} ALTER ids SET STORAGE EXTERNAL, ALTER live SET STORAGE EXTERNAL, ALTER scale SET STORAGE EXTERNAL,
    ALTER emb SET STORAGE EXTERNAL;
"""
_VECTORS = """
CREATE TABLE {vec} (
    chunk BIGINT PRIMARY KEY, tenant BIGINT NOT NULL, kb BIGINT NOT NULL, doc BIGINT NOT NULL, space INTEGER NOT NULL,
    folder BIGINT NOT NULL, tags BIGINT[] NOT NULL, enabled BOOLEAN NOT NULL, emb HALFVEC({dimension}) NOT NULL
) WITH (fillfactor = 90);
ALTER TABLE {vec} ALTER emb SET STORAGE PLAIN;
CREATE INDEX ON {vec} (kb);
CREATE INDEX ON {vec} (doc);
"""
_HNSW = "CREATE INDEX IF NOT EXISTS {name} ON {vec} USING hnsw (emb halfvec_ip_ops) WITH (m = 16, ef_construction = 64)"
_DAMAGED = (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedObject, errors.UndefinedFunction, errors.InternalError_)


@contextmanager
def told_plainly() -> Iterator[None]:
    """PostgreSQL's own errors as those of the house: busy or out of reach may pass, missing tables will not."""
    try:
        yield
    except _DAMAGED as error:
        message = f"the search index is damaged ({str(error).splitlines()[0]}); run manage.py rebuild_index"
        raise Unavailable(message, code="index_damaged") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise TransientError(f"the search index cannot be used now: {error}", code="index_busy") from error


class Pool:
    """Idle connections of this process to one database."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._idle: queue.LifoQueue[tuple[Connection, float]] = queue.LifoQueue()
        self._pid = os.getpid()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit that no one else uses meanwhile; after an error it is closed."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._idle.qsize() < IDLE_CONNECTIONS and not connection.closed:
            self._idle.put((connection, time.monotonic()))
        else:
            connection.close()

    def _take(self) -> Connection:
        if self._pid != os.getpid():  # a child of a fork must not touch its parent's connections
            self._idle, self._pid = queue.LifoQueue(), os.getpid()
        while True:
            try:
                connection, since = self._idle.get_nowait()
            except queue.Empty:
                return self._open()
            if time.monotonic() - since < UNCHECKED_S:
                return connection
            with suppress(psycopg.Error):
                connection.execute("SELECT 1")
                return connection
            connection.close()

    def _open(self) -> Connection:
        connection = psycopg.connect(self.dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S, prepare_threshold=None)
        connection.execute(f"SET statement_timeout = {STATEMENT_TIMEOUT_MS}; SET lock_timeout = {LOCK_TIMEOUT_MS}; SET jit = off")
        return connection

    def close_idle(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait()[0].close()


_pools: dict[str, Pool] = {}
_pools_lock = threading.Lock()


def pool_for(dsn: str) -> Pool:
    with _pools_lock:
        return _pools.setdefault(dsn, Pool(dsn))


def close_pools() -> None:
    """Close every idle connection of this process: before a database is dropped or a process is replaced."""
    with _pools_lock:
        for pool in _pools.values():
            pool.close_idle()


@dataclass(frozen=True, slots=True)
class Generation:
    """One set of tables."""

    schema: str
    id: int
    version: int
    tokeniser: str
    mode: str

    def table(self, name: str) -> str:
        return f"{self.schema}.{name}_{self.id}"

    def vectors(self, dimension: int) -> str:
        return f"{self.schema}.vec_{self.id}_{dimension}"

    def require_current_version(self) -> Generation:
        held, wanted = (self.version, self.tokeniser), (SCHEMA_VERSION, tokeniser_id())
        if held != wanted:
            raise IndexOutdated(f"the search index was written as {held}, this version needs {wanted}; run manage.py rebuild_index")
        return self


class Store:
    """The generations of one index. `mode`: `auto` takes pgvector where it can be had, `plain` never."""

    def __init__(self, dsn: str, schema: str, mode: str) -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,40}", schema):
            raise ValueError(schema)
        self.pool = pool_for(dsn)
        self.schema = schema
        self.mode = mode

    # -- which tables ------------------------------------------------------------------------------------------------------------

    def generations(self, connection: Connection, *, lock: str = "") -> dict[str, Generation]:
        """{state: generation} of those in use. Raises: IndexMissing when there is none."""
        sql = f"SELECT state, id, version, tokeniser, mode FROM {self.schema}.generation WHERE state <> 'dropped' ORDER BY id {lock}"  # noqa: S608
        try:
            rows = connection.execute(sql).fetchall()
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            rows = []
        if not rows:
            raise IndexMissing("there is no search index in the database yet; run manage.py rebuild_index")
        return {row[0]: Generation(self.schema, *row[1:]) for row in rows}

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        with told_plainly(), self.pool.connection() as connection:
            yield connection

    def read(self, work: Callable[[Connection, Generation], T]) -> T:
        """What `work` finds in the current generation. A swap between the look at it and the work means to look again, once."""
        with self.connection() as connection:
            current = self._current(connection)
            try:
                return work(connection, current)
            except errors.UndefinedTable:
                again = self._current(connection)
                if again == current:
                    raise
                return work(connection, again)

    def _current(self, connection: Connection) -> Generation:
        found = self.generations(connection)
        if "current" not in found:
            raise IndexMissing("the search index is being built for the first time")
        return found["current"].require_current_version()

    def write(self, work: Callable[[Connection, Generation], T]) -> T:
        """Run `work` on the current generation and on the one being built, in one transaction, so that a swap loses nothing."""
        with self.connection() as connection, connection.transaction():
            found = self.generations(connection, lock="FOR SHARE")
            building = found["building"].require_current_version() if "building" in found else None
            built = work(connection, building) if building else None
            try:
                return work(connection, self._usable(found))
            except IndexOutdated:
                if building is None:
                    raise
                return built  # type: ignore[return-value]  # what is being built will take its place

    @staticmethod
    def _usable(found: dict[str, Generation]) -> Generation:
        if "current" not in found:
            raise IndexOutdated("the search index is being built for the first time")
        return found["current"].require_current_version()

    def write_to(self, generation: Generation, work: Callable[[Connection, Generation], T]) -> T:
        with self.connection() as connection, connection.transaction():
            self.generations(connection, lock="FOR SHARE")
            return work(connection, generation)

    # -- making and dropping -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """A transaction in which nobody else writes to, makes or swaps generations."""
        with self.connection() as connection:
            self._make_schema(connection)
            with connection.transaction():
                connection.execute("SET LOCAL statement_timeout = 0")
                connection.execute(f"LOCK TABLE {self.schema}.generation IN EXCLUSIVE MODE")
                yield connection

    def _make_schema(self, connection: Connection) -> None:
        row = connection.execute("SELECT to_regclass(%s)", (f"{self.schema}.generation_state",)).fetchone()
        if row and row[0]:
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self.schema,))
            connection.execute(_GENERATIONS.format(schema=self.schema))

    def create(self) -> None:
        """Make an empty index where there is none; one of another version raises IndexOutdated."""
        with self.connection() as connection:
            with suppress(IndexMissing):
                self._current(connection)
                return
        with self._alone() as connection:
            found = self.generations(connection) if self._any(connection) else {}
            if "current" not in found:
                self._new(connection, "current")

    def _any(self, connection: Connection) -> bool:
        row = connection.execute(f"SELECT EXISTS (SELECT 1 FROM {self.schema}.generation WHERE state <> 'dropped')").fetchone()  # noqa: S608
        return bool(row and row[0])

    def begin(self) -> Generation:
        """A new empty generation that receives every write from now on; a building that was left behind is thrown away."""
        with self._alone() as connection:
            connection.execute(f"UPDATE {self.schema}.generation SET state = 'dropped' WHERE state = 'building'")  # noqa: S608
            made = self._new(connection, "building")
        self._sweep()
        return made

    def swap(self, new: Generation, *, prepare: Callable[[], None]) -> None:
        """Make `new` the current generation, `prepare` done first. Raises: IndexOutdated when another building began since."""
        with self.connection() as connection:
            self._require_building(connection, new)
        prepare()  # slow, so before anybody has to wait
        with self._alone() as connection:
            self._require_building(connection, new)
            connection.execute(f"UPDATE {self.schema}.generation SET state = 'dropped' WHERE state = 'current'")  # noqa: S608
            connection.execute(f"UPDATE {self.schema}.generation SET state = 'current' WHERE id = %s", (new.id,))  # noqa: S608
        self._sweep()

    def _require_building(self, connection: Connection, new: Generation) -> None:
        building = self.generations(connection).get("building")
        if building is None or building.id != new.id:
            raise IndexOutdated("this building was given up: another one was begun later")

    def _new(self, connection: Connection, state: str) -> Generation:
        mode = VECTOR if self.mode != PLAIN and _has_pgvector(connection) else PLAIN
        row = connection.execute(
            f"INSERT INTO {self.schema}.generation (state, version, tokeniser, mode) VALUES (%s, %s, %s, %s) RETURNING id",  # noqa: S608
            (state, SCHEMA_VERSION, tokeniser_id(), mode),
        ).fetchone()
        assert row is not None
        made = Generation(self.schema, row[0], SCHEMA_VERSION, tokeniser_id(), mode)
        names = {name: made.table(name) for name in ("doc", "space", "text", "blob")}
        sparse = f", sv SPARSEVEC({SLOTS}) NOT NULL" if mode == VECTOR else ""
        connection.execute(_TABLES.format(sparse=sparse, **names))
        connection.execute((_SPARSE if mode == VECTOR else _BLOBS).format(**names))
        return made

    def _sweep(self) -> None:
        """Drop the tables of generations that are out of use; what is still read just now is left to the next time."""
        with self.connection() as connection:
            rows = connection.execute(f"SELECT id FROM {self.schema}.generation WHERE state = 'dropped'").fetchall()  # noqa: S608
            for (key,) in rows:
                with suppress(errors.LockNotAvailable, errors.DeadlockDetected), connection.transaction():
                    for table in _tables(connection, self.schema, key):
                        connection.execute(f"DROP TABLE IF EXISTS {self.schema}.{table}")
                    connection.execute(f"DELETE FROM {self.schema}.generation WHERE id = %s", (key,))  # noqa: S608

    def drop(self) -> None:
        """Remove the whole index from the database."""
        with self.connection() as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")


def _has_pgvector(connection: Connection) -> bool:
    """Whether pgvector 0.8 or later is there or could be made to be."""
    version = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    row = connection.execute(version).fetchone()
    if row is None:
        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION vector")
        except psycopg.Error as error:
            log.info("pgvector is not to be had (%s); searching without it", str(error).splitlines()[0])
            return False
        row = connection.execute(version).fetchone()
    return row is not None and tuple(int(part) for part in re.findall(r"\d+", row[0])[:2]) >= LEAST_PGVECTOR


def _tables(connection: Connection, schema: str, key: int) -> list[str]:
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    return sorted(name for (name,) in rows if re.fullmatch(rf"(doc|space|text|blob)_{key}|vec_{key}_\d+", name))


def tables_of(connection: Connection, generation: Generation) -> list[str]:
    """The names of the generation's tables, without their schema."""
    return _tables(connection, generation.schema, generation.id)


def make_vector_table(connection: Connection, generation: Generation, dimension: int) -> None:
    """The table for vectors of this size, if it is missing. A generation that is being built gets its HNSW graphs at the end."""
    name = generation.vectors(dimension)
    row = connection.execute("SELECT to_regclass(%s)", (name,)).fetchone()
    if row and row[0]:
        return
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (name,))
    row = connection.execute("SELECT to_regclass(%s)", (name,)).fetchone()
    if row and row[0]:
        return
    connection.execute(_VECTORS.format(vec=name, dimension=dimension))
    state = connection.execute(f"SELECT state FROM {generation.schema}.generation WHERE id = %s", (generation.id,)).fetchone()  # noqa: S608
    if state and state[0] == "current":
        make_hnsw(connection, generation, dimension)


def make_hnsw(connection: Connection, generation: Generation, dimension: int) -> None:
    if dimension <= HNSW_DIMENSIONS:
        connection.execute(_HNSW.format(name=f"vec_{generation.id}_{dimension}_hnsw", vec=generation.vectors(dimension)))
