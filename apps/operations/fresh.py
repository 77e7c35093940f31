"""A fresh database beside the one in use, filled from a backup and then put in its place in one step."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from django.apps.registry import Apps
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import Error, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import ConnectionHandler

from apps.common import rows
from apps.common.errors import Conflict, InvalidInput
from kbportal import databases

FRESH = "fresh"
SCHEMA = "kb_restoring"


class Place(Protocol):
    """Where the fresh database stands; one for each engine."""

    def open(self) -> None:
        """Make it, empty, under the alias FRESH; what an interrupted restore left is removed first."""

    def swap(self) -> None:
        """Put it in the place of the one in use: all of it or nothing."""

    def discard(self) -> None:
        """Remove it; the database in use stays as it is."""


def place() -> Place:
    return SqlitePlace() if connections["default"].vendor == "sqlite" else PostgresPlace()


class SqlitePlace:
    """Another file beside the database file; the swap is a rename."""

    def __init__(self) -> None:
        self.live = Path(connections["default"].settings_dict["NAME"])
        self.path = self.live.with_name(f"{self.live.name}.restoring")

    def open(self) -> None:
        self.discard()
        _register(databases.sqlite(self.path))

    def swap(self) -> None:
        for alias, path in ((FRESH, self.path), ("default", self.live)):
            connections[alias].close()
            with closing(sqlite3.connect(path, timeout=30)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                connection.execute("PRAGMA journal_mode=DELETE").fetchone()  # everything is in the one file that is renamed
        _sync(self.path)
        os.replace(self.path, self.live)
        _sync(self.live.parent)

    def discard(self) -> None:
        if FRESH in connections.settings:
            connections[FRESH].close()
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)


class PostgresPlace:
    """A schema of its own in the same database; the swap moves its tables, in one transaction, into the schema in use."""

    def open(self) -> None:
        self.discard()
        live = connections["default"].settings_dict
        options = {name: value for name, value in live["OPTIONS"].items() if name != "pool"}
        options["options"] = f"{options.get('options', '')} -c search_path={SCHEMA}".strip()
        with connections["default"].cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA {SCHEMA}")
        _register({**live, "OPTIONS": options})

    def swap(self) -> None:
        connections[FRESH].close()
        quote = connections["default"].ops.quote_name
        with transaction.atomic(), connections["default"].cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '15s'")  # somebody still works on the tables: say so instead of waiting for ever
            cursor.execute("SELECT current_schema()")
            home = quote(cursor.fetchone()[0])
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [SCHEMA])
            tables = [quote(name) for (name,) in cursor.fetchall()]
            for table in tables:
                cursor.execute(f"DROP TABLE IF EXISTS {home}.{table} CASCADE")
                cursor.execute(f"ALTER TABLE {SCHEMA}.{table} SET SCHEMA {home}")
            cursor.execute(f"DROP SCHEMA {SCHEMA}")

    def discard(self) -> None:
        if FRESH in connections.settings:
            connections[FRESH].close()
        with connections["default"].cursor() as cursor:
            cursor.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


def _register(configured: dict[str, Any]) -> None:
    if FRESH in connections.settings:
        del connections[FRESH]
    connections.settings[FRESH] = ConnectionHandler({"default": configured}).settings["default"]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def migrated_to(applied: Iterable[tuple[str, str]]) -> Apps:
    """Tables as they were when these migrations had been applied, and the models that fit them.

    Raises: InvalidInput when this version does not know one of them.
    """
    executor = MigrationExecutor(connections[FRESH])
    graph, wanted = executor.loader.graph, set(applied)
    if unknown := sorted(wanted - graph.nodes.keys()):
        names = ", ".join(f"{app}.{name}" for app, name in unknown[:3])
        raise InvalidInput(f"the backup is of a newer version of the portal ({names} is not known here); restore it with that version")
    before = {parent.key for key in wanted for parent in graph.node_map[key].parents if parent.key[0] == key[0]}
    state = executor.migrate(sorted(wanted - before))
    return state.apps


def load(table: str, said: dict[str, Any], registry: Apps, parts: Iterable[Iterator[bytes]]) -> int:
    """Fill one table of the fresh database; how many values held a NUL character, which PostgreSQL cannot store.

    Raises: Conflict naming the table when the rows do not fit or are not those of the backup.
    """
    model = next((m for m in rows.table_models(registry) if m._meta.db_table == table), None)
    if model is None:
        raise Conflict(f"there is no table {table} in this version")
    by_name = {field.attname: field for field in rows.columns(model)}
    if by_name.keys() != set(said["columns"]):
        raise Conflict(f"{table}: the columns differ: {', '.join(sorted(by_name.keys() ^ set(said['columns'])))}")
    fields = [by_name[name] for name in said["columns"]]  # models of a migration state have an order of their own
    try:
        with connections[FRESH].cursor() as cursor:
            cursor.execute(f"DELETE FROM {connections[FRESH].ops.quote_name(table)}")  # noqa: S608 - what the migrations put there
        _count, cleaned = rows.write(model, FRESH, (rows.from_json(fields, line) for part in parts for line in part), fields)
    except (Error, ValueError, ValidationError) as error:
        raise Conflict(f"{table}: a row does not fit: {error}") from error
    found = rows.checksum(model, FRESH, fields)
    if (found.rows, found.hex) != (said["rows"], said["checksum"]):
        raise Conflict(f"{table}: {found.rows} of {said['rows']} rows arrived, or with other contents")
    return cleaned


@contextmanager
def one_transaction() -> Iterator[None]:
    """Everything loaded in the block stands together: references may point to rows that come later."""
    connection = connections[FRESH]
    try:
        with connection.constraint_checks_disabled(), transaction.atomic(using=FRESH):
            yield
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            else:
                connection.check_constraints()
    except Error as error:
        raise Conflict(f"the rows of the backup do not fit together: {error}") from error


def finish(registry: Apps, last: dict[str, int], told: Callable[[str], None]) -> None:
    """Ids go on after the highest that ever was, and the tables are brought up to this version."""
    rows.continue_ids(rows.table_models(registry), FRESH, last)
    executor = MigrationExecutor(connections[FRESH])
    if pending := len(executor.migration_plan(executor.loader.graph.leaf_nodes())):
        told(f"{pending} migrations up to this version")
    call_command("migrate", database=FRESH, interactive=False, verbosity=0)
