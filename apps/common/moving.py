"""Every row of the embedded shape's SQLite file, copied into an empty PostgreSQL: same ids, all of it or nothing.

The copy is one transaction on the server and one snapshot of the file. Before it is committed both sides are compared row by row, so a
copy that ends without an error is complete, and one that is interrupted leaves the server's tables as they were.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DataError, Error, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Model, QuerySet
from django.db.utils import ConnectionHandler

from apps.common.errors import Conflict, InvalidInput
from kbportal import databases

SOURCE, TARGET = "default", "server"
ROWS_AT_ONCE = 500
# Written by `migrate` itself; replaced by the rows of the file.
MADE_BY_MIGRATE = frozenset({"contenttypes.ContentType", "auth.Permission"})


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
    filled = [m._meta.db_table for m in _models() if m._meta.label not in MADE_BY_MIGRATE and _rows(m, TARGET).exists()]
    if filled and not force:
        raise Conflict(f"the server is not empty ({', '.join(filled[:5])}); with --force its rows are deleted first")


def copy_all(*, keep: bool, told: Callable[[Copied], None]) -> None:
    """Copy and compare every table; without `keep` it is all undone at the end. `told` hears of each table when it is done.

    Raises: Conflict naming the table when rows do not fit or the two sides differ.
    """
    try:
        with transaction.atomic(using=SOURCE), transaction.atomic(using=TARGET):
            models = _models()
            tables = ", ".join(connections[TARGET].ops.quote_name(model._meta.db_table) for model in models)
            with connections[TARGET].cursor() as cursor:
                cursor.execute(f"TRUNCATE {tables}")
            for model in models:
                told(_copied(model))
            with connections[TARGET].cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for model in models:
                _compare(model)
            _reset_sequences(models)
            if not keep:
                raise _CheckedOnly
    except _CheckedOnly:
        return
    except Error as error:
        raise Conflict(f"the server refused the rows: {error}") from error


def _models() -> list[type[Model]]:
    """Every model with a table of its own, those of many-to-many relations included."""
    return [m for m in apps.get_models(include_auto_created=True) if m._meta.managed and not m._meta.proxy]


def _rows(model: type[Model], alias: str) -> QuerySet[Any]:
    return QuerySet(model=model, using=alias).order_by("pk")  # not the manager, which shows one space only


def _columns(model: type[Model]) -> list[Any]:
    return [field for field in model._meta.local_concrete_fields if not getattr(field, "generated", False)]


def _read(model: type[Model], alias: str) -> Iterator[tuple]:
    names = [field.attname for field in _columns(model)]
    return _rows(model, alias).values_list(*names).iterator(chunk_size=ROWS_AT_ONCE)


def _copied(model: type[Model]) -> Copied:
    fields, target = _columns(model), connections[TARGET]
    quote = target.ops.quote_name
    statement = f"COPY {quote(model._meta.db_table)} ({', '.join(quote(field.column) for field in fields)}) FROM STDIN"
    rows = cleaned = 0
    try:
        with target.cursor() as cursor, cursor.copy(statement) as copy:
            for row in _read(model, SOURCE):
                fit = [_without_nul(value) for value in row]
                cleaned += sum(now is not before for now, before in zip(fit, row, strict=True))
                copy.write_row([field.get_db_prep_save(value, connection=target) for field, value in zip(fields, fit, strict=True)])
                rows += 1
    except DataError as error:
        raise Conflict(f"{model._meta.db_table}, after {rows} rows: a value does not fit: {error}") from error
    return Copied(model._meta.db_table, rows, cleaned)


def _without_nul(value: Any) -> Any:
    """The value itself, or a copy without NUL characters where there are some."""
    if isinstance(value, str):
        return value.replace("\0", "") if "\0" in value else value
    if isinstance(value, (dict, list)) and "\\u0000" in json.dumps(value):
        if isinstance(value, list):
            return [_without_nul(item) for item in value]
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    return value


def _compare(model: type[Model]) -> None:
    (count, digest), (copied, copied_digest) = _sum(model, SOURCE), _sum(model, TARGET)
    if (count, digest) != (copied, copied_digest):
        what = f"{copied} of {count} rows" if count != copied else "the same number of rows with other contents"
        raise Conflict(f"{model._meta.db_table}: the server has {what}; nothing was kept")


def _sum(model: type[Model], alias: str) -> tuple[int, int]:
    """(rows, checksum that does not depend on their order)."""
    count = total = 0
    for row in _read(model, alias):
        line = json.dumps([_plain(_without_nul(value)) for value in row], ensure_ascii=True, sort_keys=True)
        total = (total + int.from_bytes(hashlib.blake2b(line.encode("ascii"), digest_size=16).digest())) % 2**128
        count += 1
    return count, total


def _plain(value: Any) -> Any:
    """The value in a form that is equal on both sides exactly when the value is."""
    if isinstance(value, (bytes, memoryview, bytearray)):
        return ["bytes", hashlib.blake2b(bytes(value), digest_size=16).hexdigest()]
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).isoformat()
    if isinstance(value, Decimal):
        return str(value.normalize())
    if value is None or isinstance(value, (bool, int, float, str, list, dict)):
        return value
    return str(value)


def _reset_sequences(models: list[type[Model]]) -> None:
    """Let new rows get ids that never were in use, also not by rows that were deleted since (the index relies on it)."""
    source, target = connections[SOURCE], connections[TARGET]
    with source.cursor() as cursor:
        cursor.execute("SELECT name, seq FROM sqlite_sequence")
        used = dict(cursor.fetchall())
    with target.cursor() as cursor:
        for statement in target.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)
        for model in models:
            last, column = used.get(model._meta.db_table, 0), model._meta.auto_field.column if model._meta.auto_field else ""
            if last and column:
                sequence = "pg_get_serial_sequence(%s, %s)"
                values = [target.ops.quote_name(model._meta.db_table), column]
                cursor.execute(f"SELECT setval({sequence}, greatest(%s, nextval({sequence}) - 1))", [*values, last, *values])
