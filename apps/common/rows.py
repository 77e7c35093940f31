"""Whole tables, read and written past every manager: what copies between databases, backups and restores have in common."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

from django.apps import apps
from django.apps.registry import Apps
from django.core.management.color import no_style
from django.db import connections
from django.db.models import Model, QuerySet
from django.db.models.fields.json import JSONField

ROWS_AT_ONCE = 500
# Written by `migrate` itself; replaced by the rows that are brought in.
MADE_BY_MIGRATE = frozenset({"contenttypes.ContentType", "auth.Permission"})


def table_models(registry: Apps = apps) -> list[type[Model]]:
    """Every model with a table of its own, those of many-to-many relations included."""
    return [m for m in registry.get_models(include_auto_created=True) if m._meta.managed and not m._meta.proxy]


def rows_of(model: type[Model], alias: str) -> QuerySet[Any]:
    return QuerySet(model=model, using=alias).order_by("pk")  # not the manager, which shows one space only


def columns(model: type[Model]) -> list[Any]:
    """The fields whose values are stored, in a fixed order."""
    return [field for field in model._meta.local_concrete_fields if not getattr(field, "generated", False)]


def read(model: type[Model], alias: str, fields: Sequence[Any] = ()) -> Iterator[tuple]:
    """Every row as values in the order of `fields` (those of `columns` when not given)."""
    names = [field.attname for field in fields or columns(model)]
    return rows_of(model, alias).values_list(*names).iterator(chunk_size=ROWS_AT_ONCE)


def write(model: type[Model], alias: str, rows: Iterable[Sequence[Any]], fields: Sequence[Any] = ()) -> tuple[int, int]:
    """Add rows with their ids, values in the order of `fields`.

    Returns (rows, values that held a NUL character, which was taken out because PostgreSQL cannot store one).
    Raises: DataError, IntegrityError of Django when a row does not fit.
    """
    fields, target = fields or columns(model), connections[alias]
    quote = target.ops.quote_name
    table, named = quote(model._meta.db_table), ", ".join(quote(field.column) for field in fields)
    to_server = target.vendor == "postgresql"
    count = cleaned = 0

    def prepared() -> Iterator[list[Any]]:
        nonlocal count, cleaned
        for row in rows:
            fit = [without_nul(value) for value in row] if to_server else row
            cleaned += sum(now is not before for now, before in zip(fit, row, strict=True))
            yield [field.get_db_prep_save(value, connection=target) for field, value in zip(fields, fit, strict=True)]
            count += 1

    with target.cursor() as cursor:
        if to_server:
            with cursor.copy(f"COPY {table} ({named}) FROM STDIN") as copy:
                for row in prepared():
                    copy.write_row(row)
        else:
            statement = f"INSERT INTO {table} ({named}) VALUES ({', '.join(['%s'] * len(fields))})"  # noqa: S608 - quoted names only
            ready = prepared()
            while batch := list(islice(ready, ROWS_AT_ONCE)):
                cursor.executemany(statement, batch)
    return count, cleaned


def without_nul(value: Any) -> Any:
    """The value itself, or a copy without NUL characters where there are some."""
    if isinstance(value, str):
        return value.replace("\0", "") if "\0" in value else value
    if isinstance(value, (dict, list)) and "\\u0000" in json.dumps(value):
        if isinstance(value, list):
            return [without_nul(item) for item in value]
        return {without_nul(key): without_nul(item) for key, item in value.items()}
    return value


class Checksum:
    """Counts rows and sums them up, whatever their order and whichever database they stand in."""

    def __init__(self) -> None:
        self.rows = self.total = 0

    def add(self, row: Sequence[Any]) -> None:
        line = json.dumps([_comparable(without_nul(value)) for value in row], ensure_ascii=True, sort_keys=True)
        self.total = (self.total + int.from_bytes(hashlib.blake2b(line.encode("ascii"), digest_size=16).digest())) % 2**128
        self.rows += 1

    @property
    def hex(self) -> str:
        return f"{self.total:032x}"


def checksum(model: type[Model], alias: str, fields: Sequence[Any] = ()) -> Checksum:
    """The checksum of a whole table; it depends on the order of the columns."""
    found = Checksum()
    for row in read(model, alias, fields):
        found.add(row)
    return found


def _comparable(value: Any) -> Any:
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


def to_json(row: Sequence[Any]) -> str:
    """One row as a line of JSON; `from_json` gives the same values back."""
    return json.dumps([_written(value) for value in row], ensure_ascii=True, separators=(",", ":"))


def _written(value: Any) -> Any:
    if isinstance(value, (bytes, memoryview, bytearray)):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if value is None or isinstance(value, (bool, int, float, str, list, dict)):
        return value
    return str(value)


def from_json(fields: Sequence[Any], line: str | bytes) -> list[Any]:
    """Raises: ValueError, ValidationError when the line does not fit the fields."""
    values = json.loads(line)
    return [_as_read(field, value) for field, value in zip(fields, values, strict=True)]


def _as_read(field: Any, value: Any) -> Any:
    if value is None or isinstance(field, JSONField):
        return value
    return field.to_python(value)


def last_ids(models: Iterable[type[Model]], alias: str) -> dict[str, int]:
    """{table: highest id it ever gave out}, also to rows that were deleted since (the search index relies on ids not coming back)."""
    source = connections[alias]
    with source.cursor() as cursor:
        if source.vendor == "sqlite":
            cursor.execute("SELECT name FROM sqlite_master WHERE name = 'sqlite_sequence'")
            if cursor.fetchone() is None:
                return {}
            cursor.execute("SELECT name, seq FROM sqlite_sequence")
            return {name: int(last) for name, last in cursor.fetchall()}
        found = {}
        for model in models:
            if (field := model._meta.auto_field) is None:
                continue
            cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [source.ops.quote_name(model._meta.db_table), field.column])
            if (sequence := cursor.fetchone()[0]) is not None:
                cursor.execute(f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608 - a name the server has quoted
                last, used = cursor.fetchone()
                found[model._meta.db_table] = int(last) if used else 0
        return found


def continue_ids(models: list[type[Model]], alias: str, used: Mapping[str, int]) -> None:
    """Let new rows get ids that never were in use."""
    target = connections[alias]
    with target.cursor() as cursor:
        if target.vendor == "sqlite":
            for model in models:
                table, last = model._meta.db_table, used.get(model._meta.db_table, 0)
                if last and model._meta.auto_field is not None:
                    cursor.execute("UPDATE sqlite_sequence SET seq = max(seq, %s) WHERE name = %s", [last, table])
                    if not cursor.rowcount:
                        cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, last])
            return
        for statement in target.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)
        for model in models:
            last, column = used.get(model._meta.db_table, 0), model._meta.auto_field.column if model._meta.auto_field else ""
            if last and column:
                sequence = "pg_get_serial_sequence(%s, %s)"
                values = [target.ops.quote_name(model._meta.db_table), column]
                cursor.execute(f"SELECT setval({sequence}, greatest(%s, nextval({sequence}) - 1))", [*values, last, *values])
