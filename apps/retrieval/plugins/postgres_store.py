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
from typing import TypeVar

import psycopg
from psycopg import Connection, errors

from apps.common.errors import TransientError, Unavailable
from apps.retrieval.plugins.bm25 import SLOTS
from apps.retrieval.plugins.postgres_schema import (
    BLOBS,
    GENERATIONS,
    PLAIN,
    SCHEMA_VERSION,
    TABLES,
    VECTOR,
    Generation,
    has_pgvector,
    make_word_index,
    tables,
)
from apps.retrieval.plugins.postgres_terms import USUAL_LENGTH
from apps.retrieval.plugins.protocol import IndexMissing, IndexOutdated
from apps.retrieval.tokens import tokeniser_id

log = logging.getLogger(__name__)

T = TypeVar("T")

IDLE_CONNECTIONS = 4
UNCHECKED_S = 5.0  # an idle connection older than this is tried before it is trusted
CONNECT_TIMEOUT_S = 10
STATEMENT_TIMEOUT_MS = 30_000
LOCK_TIMEOUT_MS = 20_000
_DAMAGED = (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedObject, errors.UndefinedFunction, errors.InternalError_)


@contextmanager
def told_plainly() -> Iterator[None]:
    """PostgreSQL's own errors as those of the house: busy or out of reach may pass, missing tables will not."""
    try:
        yield
    except _DAMAGED as error:
        message = f"the search index is damaged ({str(error).splitlines()[0]}); run manage.py rebuild_index"
        raise Unavailable(message, code="index_damaged") from error
    except errors.InsufficientPrivilege as error:
        message = f"the portal's database user may not make or use the search index: {str(error).splitlines()[0]}"
        raise Unavailable(message, code="index_denied") from error
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
            if connection.broken:  # the server went away: the others are dead too
                self.close_idle()
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
        sql = (
            f"SELECT state, id, version, tokeniser, mode, average FROM {self.schema}.generation WHERE state <> 'dropped' ORDER BY id {lock}"  # noqa: S608
        )
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
            # Not to_regnamespace: after the wait it still answers from what the session remembered before it.
            row = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self.schema,)).fetchone()
            if row is None:  # one that an administrator made may be used by those who could not make it
                connection.execute(f"CREATE SCHEMA {self.schema}")
            connection.execute(GENERATIONS.format(schema=self.schema))

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
        mode = VECTOR if self.mode != PLAIN and has_pgvector(connection) else PLAIN
        row = connection.execute(
            f"INSERT INTO {self.schema}.generation (state, version, tokeniser, mode, average) VALUES (%s, %s, %s, %s, %s) RETURNING id",  # noqa: S608
            (state, SCHEMA_VERSION, tokeniser_id(), mode, USUAL_LENGTH),
        ).fetchone()
        assert row is not None
        made = Generation(self.schema, row[0], SCHEMA_VERSION, tokeniser_id(), mode, USUAL_LENGTH)
        names = {name: made.table(name) for name in ("doc", "space", "text", "blob")}
        connection.execute(TABLES.format(sparse=f"SPARSEVEC({SLOTS})" if mode == VECTOR else "BYTEA", **names))
        if mode == PLAIN:
            connection.execute(BLOBS.format(**names))
        if state == "current":
            make_word_index(connection, made)
        return made

    def _sweep(self) -> None:
        """Drop the tables of generations that are out of use; what is still read just now is left to the next time."""
        with self.connection() as connection:
            rows = connection.execute(f"SELECT id FROM {self.schema}.generation WHERE state = 'dropped'").fetchall()  # noqa: S608
            for (key,) in rows:
                with suppress(errors.LockNotAvailable, errors.DeadlockDetected), connection.transaction():
                    for table in tables(connection, self.schema, key):
                        connection.execute(f"DROP TABLE IF EXISTS {self.schema}.{table}")
                    connection.execute(f"DELETE FROM {self.schema}.generation WHERE id = %s", (key,))  # noqa: S608

    def drop(self) -> None:
        """Remove the whole index from the database."""
        with self.connection() as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
