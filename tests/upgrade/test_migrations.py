"""A migration that locks, rewrites or empties a table says so, with what it costs, where the next reader finds it."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from django.db import connections, models
from django.db.migrations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    AlterUniqueTogether,
    CreateModel,
    DeleteModel,
    Migration,
    RemoveField,
    RenameField,
    RenameModel,
    RunPython,
    RunSQL,
    SeparateDatabaseAndState,
)
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from tests.inventory.source import ROOT
from tests.upgrade.releases import NEWEST, before

NOTE = re.compile(r"^# upgrade: .{20,}", re.M)
COSTS = {
    RunPython: "changes rows",
    RunSQL: "does what only its SQL says",
    SeparateDatabaseAndState: "does what only its inner operations say",
    RemoveField: "loses a column",
    DeleteModel: "loses a table",
    RenameField: "breaks processes of the version before",
    RenameModel: "breaks processes of the version before",
    AlterField: "may rewrite the table",
    AddIndex: "reads the whole table, writers wait (AddIndexConcurrently on PostgreSQL)",
    AddConstraint: "reads the whole table, writers wait",
    AlterUniqueTogether: "reads the whole table, writers wait",
}


def cost_of(operation: Operation, made_here: set[str]) -> str:
    """What an operation does to a table that has rows; "" when that is next to nothing."""
    model = getattr(operation, "model_name", None) or getattr(operation, "name", "")
    if str(model).lower() in made_here:
        return ""
    if isinstance(operation, AddField):
        field: Any = operation.field
        return "" if field.null and not field.has_default() else "rewrites the table on SQLite"
    return next((words for kind, words in COSTS.items() if isinstance(operation, kind)), "")


def costs_of(migration: Migration) -> list[str]:
    made_here = {operation.name.lower() for operation in migration.operations if isinstance(operation, CreateModel)}
    return [f"{type(operation).__name__} {cost}" for operation in migration.operations if (cost := cost_of(operation, made_here))]


def ours_since_the_release() -> list[Migration]:
    loader = MigrationLoader(connections["default"], replace_migrations=False)
    known = before(loader.graph, NEWEST)
    found = [migration for key, migration in loader.disk_migrations.items() if key not in known]
    return [migration for migration in found if type(migration).__module__.startswith("apps.")]


def test_what_a_migration_costs_is_written_into_it(db: None) -> None:
    silent = {}
    for migration in ours_since_the_release():
        source = inspect.getsource(inspect.getmodule(type(migration)) or type(migration))
        if (costs := costs_of(migration)) and not NOTE.search(source):
            silent[str(migration)] = costs
    assert silent == {}, "write `# upgrade: <what waits, for how long, what to do>` into the migration"


def test_every_migration_has_a_way_back(db: None) -> None:
    loader = MigrationLoader(connections["default"], replace_migrations=False)
    ours = [migration for migration in loader.disk_migrations.values() if type(migration).__module__.startswith("apps.")]
    assert len(ours) > 5
    assert [str(migration) for migration in ours if not all(operation.reversible for operation in migration.operations)] == []


def test_rows_are_changed_apart_from_the_schema(db: None) -> None:
    wrong = []
    for migration in ours_since_the_release():
        data = [operation for operation in migration.operations if isinstance(operation, RunPython)]
        if data and len(data) != len(migration.operations):
            wrong.append(str(migration))
    assert wrong == []


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (RunPython(lambda apps, editor: None), "changes rows"),
        (RemoveField("chunk", "content"), "loses a column"),
        (AlterField("chunk", "content", models.TextField()), "may rewrite"),
        (AddIndex("chunk", models.Index(fields=["content"], name="x")), "writers wait"),
        (AddField("chunk", "a", models.IntegerField(default=0)), "rewrites the table"),
        (AddField("chunk", "a", models.IntegerField(null=True)), ""),
        (CreateModel("Fresh", [("id", models.BigAutoField(primary_key=True))]), ""),
        (AddIndex("fresh", models.Index(fields=["id"], name="y")), ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Operation) else None,
)
def test_the_costs_are_seen(operation: Operation, words: str) -> None:
    found = cost_of(operation, {"fresh"})
    assert words in found if words else found == ""


def test_releases_are_explained() -> None:
    text = (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
    assert f"## {NEWEST}" in text
