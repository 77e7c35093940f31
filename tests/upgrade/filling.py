"""Rows for every table of any schema: two or more of each, all columns filled, references between them."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

from django.apps.registry import Apps
from django.db import models

from apps.common.rows import columns, table_models, write

ROWS = 3
ONE_ROW_ONLY = frozenset({"accounts.Founder", "django_celery_beat.PeriodicTasks"})
WHEN = datetime.datetime(2026, 5, 4, 3, 2, 1, 987654, tzinfo=datetime.UTC)
TEXT = "第{n}条 “fifth” Ⅴ\n\t{name}"
#: what some columns must hold
VALUES: dict[str, Any] = {
    "ingestion.IngestionRun.state": "done",
    "spaces.Space.deleted_at": None,
    "django_celery_beat.CrontabSchedule.timezone": "UTC",
}


def fill(registry: Apps, alias: str) -> dict[str, int]:
    """{table: rows made}. References are checked when the caller's transaction ends."""
    made = {}
    for model in table_models(registry):
        count = 1 if model._meta.label in ONE_ROW_ONLY else ROWS
        made[model._meta.db_table] = write(model, alias, (_row(model, number) for number in range(1, count + 1)))[0]
    return made


def _row(model: type[models.Model], number: int) -> list[Any]:
    return [_value(model, field, number) for field in columns(model)]


def _value(model: type[models.Model], field: Any, number: int) -> Any:
    known = f"{model._meta.label}.{field.name}"
    if known in VALUES:
        return VALUES[known]
    if field.is_relation:
        return _key(field.target_field.model, field.target_field, number)
    return _key(model, field, number) if field.primary_key else _plain(field, number)


def _key(model: type[models.Model], field: Any, number: int) -> Any:
    """The primary key, or other column referred to, of the row with this number."""
    if field.is_relation:
        return _key(field.target_field.model, field.target_field, number)
    if model._meta.label in ONE_ROW_ONLY:
        return 1
    return _plain(field, number)


def _plain(field: Any, number: int) -> Any:
    if field.choices:
        return list(dict(field.flatchoices))[0]
    if isinstance(field, models.UUIDField):
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{field.name}-{number}")
    if isinstance(field, models.DateTimeField):
        return WHEN + datetime.timedelta(seconds=number)
    if isinstance(field, models.DateField):
        return WHEN.date()
    if isinstance(field, models.BooleanField):
        return number % 2 == 0
    if isinstance(field, models.JSONField):
        return {"n": number, "文": ["a", None, 1.5, {"deep": True}]} if field.default is not list else [number, "文"]
    if isinstance(field, models.BinaryField):
        return bytes(range(number, 200))
    if isinstance(field, models.FloatField):
        return number + 0.25
    if isinstance(field, models.DecimalField):
        return Decimal(f"{number}.5")
    if isinstance(field, models.IntegerField):
        return number
    if isinstance(field, models.EmailField):
        return f"person-{number}@example.com"
    text = TEXT.format(n=number, name=field.name) if isinstance(field, models.TextField) else f"{field.name[:8]}{number}值"
    return text[: field.max_length] if field.max_length else text
