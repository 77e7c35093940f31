"""Every row of the embedded shape's SQLite file, copied into an empty PostgreSQL: same ids, all of it or nothing.

The copy is one transaction on the server and one snapshot of the file. Before it is committed both sides are compared row by row, so a
copy that ends without an error is complete, and one that is interrupted leaves the server's tables as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.core.management import call_command
from django.db import DataError, Error, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Model
from django.db.utils import ConnectionHandler

from apps.common import rows
from apps.common.errors import Conflict, InvalidInput
from kbportal import databases

SOURCE, TARGET = "default", "server"


@dataclass(frozen=True, slots=True)
class Copied:
    """One table as it was copied. `cleaned`: values that held a NUL character, which PostgreSQL cannot store; it was taken out."""

    table: str
    rows: int
    cleaned: int


class _CheckedOnly(Exception):
    """Undoes a copy that was only to be tried."""


def open_target(url: str) -> None:
    """Make the server known under the alias TARGET. Raises: InvalidInput when the URL or the server behind it cannot be used."""
    if connections[SOURCE].vendor != "sqlite":
        raise InvalidInput("this portal already runs on a database server (KB_DATABASE_URL is set); there is no SQLite file to move")
    try:
        configured = databases.postgres(url)
    except ValueError as error:
        raise InvalidInput(str(error), field="database-url") from error
    connections.settings[TARGET] = ConnectionHandler({"default": configured}).settings["default"]
    try:
        connections[TARGET].ensure_connection()
    except Error as error:
        raise InvalidInput(f"the database cannot be reached: {error}", field="database-url") from error


def prepare_target(*, force: bool) -> None:
    """Bring the server's tables up to date. Raises: Conflict when the file lags behind this version, or when the server has rows."""
    executor = MigrationExecutor(connections[SOURCE])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise Conflict("the SQLite file is of an older version; run manage.py migrate first")
    call_command("migrate", database=TARGET, interactive=False, verbosity=0)
    filled = [
        m._meta.db_table for m in rows.table_models() if m._meta.label not in rows.MADE_BY_MIGRATE and rows.rows_of(m, TARGET).exists()
    ]
    if filled and not force:
        raise Conflict(f"the server is not empty ({', '.join(filled[:5])}); with --force its rows are deleted first")


def copy_all(*, keep: bool, told: Callable[[Copied], None]) -> None:
    """Copy and compare every table; without `keep` it is all undone at the end. `told` hears of each table when it is done.

    Raises: Conflict naming the table when rows do not fit or the two sides differ.
    """
    try:
        with transaction.atomic(using=SOURCE), transaction.atomic(using=TARGET):
            models = rows.table_models()
            tables = ", ".join(connections[TARGET].ops.quote_name(model._meta.db_table) for model in models)
            with connections[TARGET].cursor() as cursor:
                cursor.execute(f"TRUNCATE {tables}")
            for model in models:
                told(_copied(model))
            with connections[TARGET].cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for model in models:
                _compare(model)
            rows.continue_ids(models, TARGET, rows.last_ids(models, SOURCE))
            if not keep:
                raise _CheckedOnly
    except _CheckedOnly:
        return
    except Error as error:
        raise Conflict(f"the server refused the rows: {error}") from error


def _copied(model: type[Model]) -> Copied:
    try:
        count, cleaned = rows.write(model, TARGET, rows.read(model, SOURCE))
    except DataError as error:
        raise Conflict(f"{model._meta.db_table}: a value does not fit: {error}") from error
    return Copied(model._meta.db_table, count, cleaned)


def _compare(model: type[Model]) -> None:
    here, there = rows.checksum(model, SOURCE), rows.checksum(model, TARGET)
    if (here.rows, here.total) != (there.rows, there.total):
        what = f"{there.rows} of {here.rows} rows" if here.rows != there.rows else "the same number of rows with other contents"
        raise Conflict(f"{model._meta.db_table}: the server has {what}; nothing was kept")
