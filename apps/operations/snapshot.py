"""One moment of the database to read from at leisure, under the alias SNAPSHOT, while the portal goes on writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.db import connections, transaction
from django.db.utils import ConnectionHandler
from psycopg import IsolationLevel

from kbportal import databases

SNAPSHOT = "snapshot"


@contextmanager
def snapshot(folder: Path) -> Iterator[str]:
    """The alias of a database that does not change during the block.

    SQLite: a copy by the online backup API in `folder`, removed afterwards; writers wait for none of it. PostgreSQL: a read-only
    REPEATABLE READ transaction on a connection of its own.
    """
    if connections["default"].vendor == "sqlite":
        with _sqlite_copy(folder):
            yield SNAPSHOT
        return
    _register({**connections["default"].settings_dict, "OPTIONS": _one_moment(connections["default"].settings_dict["OPTIONS"])})
    try:
        with transaction.atomic(using=SNAPSHOT), connections[SNAPSHOT].cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            yield SNAPSHOT
    finally:
        _forget()


def _one_moment(options: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in options.items() if name != "pool"}
    return {**kept, "isolation_level": IsolationLevel.REPEATABLE_READ}


@contextmanager
def _sqlite_copy(folder: Path) -> Iterator[None]:
    path = folder / "backup-snapshot.sqlite3"
    path.unlink(missing_ok=True)  # of a backup that was killed; only one runs at a time
    source = connections["default"].settings_dict["NAME"]
    try:
        with closing(sqlite3.connect(source, timeout=30)) as live, closing(sqlite3.connect(path)) as copy:
            path.chmod(0o600)
            live.backup(copy, pages=-1)  # in one go: in pieces it would start over with every write of the portal
            copy.execute("PRAGMA journal_mode=DELETE").fetchone()  # no further files beside it
        configured = databases.sqlite(path)
        configured["OPTIONS"] = {"timeout": 30, "init_command": "PRAGMA query_only=ON;"}
        _register(configured)
        yield
    finally:
        _forget()
        path.unlink(missing_ok=True)


def _register(configured: dict[str, Any]) -> None:
    _forget()
    connections.settings[SNAPSHOT] = ConnectionHandler({"default": configured}).settings["default"]


def _forget() -> None:
    if SNAPSHOT in connections.settings:
        connections[SNAPSHOT].close()
        del connections[SNAPSHOT]
        del connections.settings[SNAPSHOT]
