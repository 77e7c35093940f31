"""Where the SQLite index lives: data files, which of them is current, connections, and the one writer at a time.

Beside the given path `search.sqlite3` stand `search.current` (a small JSON file naming the current data file and the one being built),
`search.lock` (held by whoever writes) and the data files `search-<token>.sqlite3`. Building anew writes another data file and then
replaces the pointer, so readers move over between two searches and never see half an index.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from apps.common.errors import TransientError, Unavailable
from apps.retrieval.plugins.protocol import IndexMissing, IndexOutdated
from apps.retrieval.tokens import tokeniser_id

try:
    import fcntl
except ImportError:  # not POSIX: BEGIN IMMEDIATE alone orders the writers
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

SCHEMA_VERSION = 3
IDLE_CONNECTIONS = 4

_PRAGMAS = (
    "busy_timeout=30000",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "cache_size=-65536",
    "mmap_size=1073741824",
    "temp_store=MEMORY",
    "journal_size_limit=67108864",
)
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE space (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
CREATE TABLE doc (
    id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, kb INTEGER NOT NULL, space INTEGER NOT NULL, rev INTEGER NOT NULL,
    folder INTEGER NOT NULL, enabled INTEGER NOT NULL, n INTEGER NOT NULL, vectors INTEGER NOT NULL,
    ids BLOB NOT NULL, live BLOB NOT NULL, scale BLOB NOT NULL, emb BLOB NOT NULL
);
CREATE INDEX doc_kb ON doc (kb);
CREATE INDEX doc_tenant ON doc (tenant, rev);
CREATE INDEX doc_folder ON doc (folder);
CREATE TABLE chunk (id INTEGER PRIMARY KEY, doc INTEGER NOT NULL, tenant INTEGER NOT NULL, kb INTEGER NOT NULL, enabled INTEGER NOT NULL);
CREATE INDEX chunk_doc ON chunk (doc);
CREATE TABLE words (
    doc INTEGER PRIMARY KEY, lens BLOB NOT NULL, segs BLOB NOT NULL, low BLOB NOT NULL, high BLOB NOT NULL, tf BLOB NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE doctag (tag INTEGER, doc INTEGER, PRIMARY KEY (tag, doc)) WITHOUT ROWID;
CREATE INDEX doctag_doc ON doctag (doc);
CREATE TABLE moved (doc INTEGER PRIMARY KEY, kb INTEGER NOT NULL, home INTEGER NOT NULL);
CREATE INDEX moved_kb ON moved (kb);
"""
# Without content of its own: that takes half of the disk, and what must be known to delete a passage stands packed in `words`.
_FTS = "CREATE VIRTUAL TABLE fts USING fts5(kb, body, content='', tokenize=\"ascii tokenchars '-_./:@#+'''\");"


@contextmanager
def told_plainly(path: Path) -> Iterator[None]:
    """SQLite's own errors as those of the house: busy, full or unreachable may pass, a damaged file will not."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise TransientError(f"the search index {path.name} cannot be used now: {error}", code="index_busy") from error
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        message = f"the search index {path.name} is damaged ({error}); run manage.py rebuild_index"
        raise Unavailable(message, code="index_damaged") from error


class Database:
    """One data file and its idle connections."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._pid = os.getpid()
        self._checked = False
        _open_databases.add(self)

    def create(self) -> None:
        """Make the file with its tables. Raises: sqlite3.Error when the folder cannot be written."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            connection.execute("PRAGMA page_size=8192")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(f"BEGIN; {_TABLES} {_FTS}")
            versions = [("schema", str(SCHEMA_VERSION)), ("tokeniser", tokeniser_id())]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", versions)
            connection.execute("COMMIT")
        finally:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        if not self._checked:
            held = dict(connection.execute("SELECT name, value FROM meta"))
            wanted = {"schema": str(SCHEMA_VERSION), "tokeniser": tokeniser_id()}
            if held != wanted:
                connection.close()
                raise IndexOutdated(f"the search index was written as {held}, this version needs {wanted}; run manage.py rebuild_index")
            self._checked = True
        return connection

    def take(self) -> sqlite3.Connection:
        """A connection no one else uses meanwhile, opened by this very process."""
        if self._pid != os.getpid():
            self._idle, self._pid = queue.LifoQueue(), os.getpid()
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._open()

    @contextmanager
    def lend(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        """`connection`, put back for others afterwards; after an error it is closed, and with it an open transaction is undone."""
        pid = os.getpid()
        try:
            with told_plainly(self.path):
                yield connection
        except BaseException:
            connection.close()
            raise
        if pid == os.getpid() and self._idle.qsize() < IDLE_CONNECTIONS:
            self._idle.put(connection)
        else:
            connection.close()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        with told_plainly(self.path):
            connection = self.take()
        with self.lend(connection):
            yield connection

    @contextmanager
    def fresh_connection(self) -> Iterator[sqlite3.Connection]:
        """A connection that has seen nothing yet: FTS5's own check trusts what an older one remembers of the index and cries wolf."""
        with closing(self._open()) as connection:
            yield connection

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` returns, committed; nothing of it is kept when it raises."""
        with self.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            result = work(connection)
            connection.execute("COMMIT")
            return result

    def close_idle(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def remove(self) -> None:
        """Delete the file; a process that still reads it keeps what it sees until it lets go."""
        self.close_idle()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)


_open_databases: weakref.WeakSet[Database] = weakref.WeakSet()


def _close_before_fork() -> None:
    # SQLite keeps its file locks per process; a connection carried into a child would share bookkeeping that is not true there.
    for database in list(_open_databases):
        database.close_idle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_before_fork)


class Generations:
    """The data file that counts now, found again after every swap by whichever process made it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pointer = path.with_suffix(".current")
        self._lock = path.with_suffix(".lock")
        self._seen: tuple[int, int, int] | None = None
        self._files: tuple[Database, Database | None] | None = None

    def databases(self) -> tuple[Database, Database | None]:
        """(current, the one being built or None). Raises: IndexMissing before `create`."""
        try:
            stat = self._pointer.stat()
        except FileNotFoundError:
            raise IndexMissing(f"there is no search index at {self.path}; run manage.py rebuild_index") from None
        seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        files = self._files
        if seen != self._seen or files is None:
            named = json.loads(self._pointer.read_text(encoding="utf-8"))
            known = {database.path.name: database for database in files or () if database}

            def opened(name: str) -> Database:
                return known.get(name) or Database(self.path.parent / name)

            files = opened(named["current"]), opened(named["building"]) if named["building"] is not None else None
            self._files, self._seen = files, seen
        return files

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes or swaps meanwhile, in any process; a killed holder lets go by dying."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a") as handle:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection to the current file."""
        current, _ = self.databases()
        try:
            connection = current.take()
        except sqlite3.Error:
            self._seen = None  # perhaps swapped between the look at the pointer and now; else the same error comes again
            current, _ = self.databases()
            with told_plainly(current.path):
                connection = current.take()
        with current.lend(connection):
            yield connection

    @contextmanager
    def fresh_connection(self) -> Iterator[sqlite3.Connection]:
        with self.databases()[0].fresh_connection() as connection:
            yield connection

    def create(self) -> None:
        """Make an empty index where there is none; an index of another version raises IndexOutdated."""
        with self.locked():
            if not self._pointer.exists():
                self._point(current=self._new_file(), building=None)
            current, _ = self.databases()
            if not current.path.exists():  # deleted by hand: the index is derived and may be
                current.create()
            with current.connection():
                return

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the current file and, while another is being built, on that one too, so that a swap loses nothing."""
        with self.locked():
            current, building = self.databases()
            if building is None:
                return current.write(work)
            built = building.write(work)
            try:
                return current.write(work)
            except (IndexOutdated, Unavailable):  # what is being built will take its place
                return built

    def begin(self) -> Database:
        """A new empty data file that receives every write from now on; a building that was left behind is thrown away."""
        with self.locked():
            name = self._new_file()
            try:
                current, left = self.databases()
            except IndexMissing:
                current, left = Database(self.path.parent / self._new_file()), None
            self._point(current=current.path.name, building=name)
            if left is not None:
                left.remove()
            return self.databases()[1] or Database(self.path.parent / name)

    def swap(self, new: Database, *, prepare: Callable[[], None]) -> None:
        """Make `new` the current file, `prepare` done first. Raises: IndexOutdated when another building began since."""
        if new.path.exists():  # slow, so before anybody has to wait
            prepare()
        with self.locked():
            current, building = self.databases()
            if building is None or building.path != new.path:
                raise IndexOutdated("this building was given up: another one was begun later")
            self._point(current=new.path.name, building=None)
            current.remove()

    def drop(self) -> None:
        """Remove the pointer and every data file; the lock stays for whoever waits for it."""
        with self.locked():
            for database in self._files or ():
                if database is not None:
                    database.close_idle()
            self._pointer.unlink(missing_ok=True)
            for file in self.path.parent.glob(f"{self.path.stem}-*{self.path.suffix}*"):
                file.unlink(missing_ok=True)
            self._seen = self._files = None

    def _new_file(self) -> str:
        name = f"{self.path.stem}-{secrets.token_hex(4)}{self.path.suffix}"
        Database(self.path.parent / name).create()
        return name

    def _point(self, *, current: str, building: str | None) -> None:
        fresh = self._pointer.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as handle:
            json.dump({"current": current, "building": building}, handle)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(fresh, self._pointer)
        self._seen = None
