"""A database of every release comes through `migrate` with all it holds, and back again, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps.registry import Apps
from django.core.management import call_command
from django.db import connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import ConnectionHandler

from apps.common import rows
from kbportal import databases
from tests.support.postgres import PostgresProcess
from tests.upgrade.filling import fill
from tests.upgrade.releases import RELEASES, heads_of

ALIAS = "rehearsal"
#: {"table.column": why a migration changes what it holds}
CHANGED: dict[str, str] = {}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path, django_db_blocker: Any) -> Iterator[str]:
    """The alias of an empty database."""
    if request.param == "sqlite":
        configured = databases.sqlite(tmp_path / "old.sqlite3")
    else:
        server: PostgresProcess = request.getfixturevalue("postgres_server")
        configured = databases.postgres(server.create_database())
    connections.settings[ALIAS] = ConnectionHandler({"default": configured}).settings["default"]
    with django_db_blocker.unblock():
        try:
            yield ALIAS
        finally:
            connections[ALIAS].close()
            del connections[ALIAS]
            del connections.settings[ALIAS]


def migrate(targets: list[tuple[str, str]]) -> Apps:
    """Go there, forward or back; the models that fit the tables then."""
    MigrationExecutor(connections[ALIAS]).migrate(targets)
    return MigrationExecutor(connections[ALIAS]).loader.project_state(targets).apps  # type: ignore[no-any-return]


def leaves() -> list[tuple[str, str]]:
    return MigrationExecutor(connections[ALIAS]).loader.graph.leaf_nodes()  # type: ignore[no-any-return]


def contents(registry: Apps) -> dict[str, dict[Any, dict[str, Any]]]:
    """{table: {primary key: {column: value}}}."""
    found: dict[str, dict[Any, dict[str, Any]]] = {}
    for model in rows.table_models(registry):
        fields = rows.columns(model)
        names = [field.column for field in fields]
        key = names.index(model._meta.pk.column)
        found[model._meta.db_table] = {row[key]: dict(zip(names, row, strict=True)) for row in rows.read(model, ALIAS, fields)}
    return found


def kept(old: dict[str, Any], new: dict[str, Any]) -> dict[str, dict[Any, dict[str, Any]]]:
    """What of `new` was in `old` already: tables, rows and columns; bytes made comparable."""
    found = {}
    for table, old_rows in old.items():
        columns = {name for row in old_rows.values() for name in row if f"{table}.{name}" not in CHANGED}
        found[table] = {
            key: {name: _comparable(value) for name, value in row.items() if name in columns}
            for key, row in new.get(table, {}).items()
            if key in old_rows
        }
    return found


def _comparable(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.mark.parametrize("release", RELEASES)
def test_a_database_of_a_release_comes_through_with_all_it_holds(database: str, release: str) -> None:
    registry = migrate(heads_of(release))
    connection = connections[ALIAS]
    with connection.constraint_checks_disabled(), transaction.atomic(using=ALIAS):
        made = fill(registry, ALIAS)
        connection.check_constraints()
    assert {table: count for table, count in made.items() if not count} == {}
    rows.continue_ids(rows.table_models(registry), ALIAS, {})
    old = contents(registry)
    assert {table: len(old[table]) for table in made} == made
    current = migrate(leaves())
    connection.check_constraints()
    new = contents(current)
    assert kept(old, new) == kept(old, old)
    call_command("migrate", database=ALIAS, interactive=False, verbosity=0)  # nothing is left to do, and permissions are made
    assert MigrationExecutor(connection).migration_plan(leaves()) == []
    again = contents(migrate(heads_of(release)))
    assert kept(old, again) == kept(old, old), "the way back loses rows"
