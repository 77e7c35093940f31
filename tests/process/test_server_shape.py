"""The portal on PostgreSQL: what many requests leave behind."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest

from tests.support.postgres import PostgresProcess
from tests.support.rest import Rest
from tests.support.stack import LiveStack

pytestmark = [pytest.mark.process, pytest.mark.timeout(200)]


def test_requests_share_a_few_database_connections(live_stack: Callable[..., LiveStack], postgres_server: PostgresProcess) -> None:
    url = postgres_server.create_database("kb_connections")
    stack = live_stack(only="web", env={"KB_DATABASE_URL": url, "KB_DATABASE_CONNECTIONS": "4"})
    rest = Rest(stack.base_url).sign_up()
    answers: list[int] = []

    def ask() -> None:
        answers.extend(rest.call("GET", "/knowledge-bases").status for _ in range(8))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 64
    with psycopg.connect(postgres_server.url()) as connection:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'kb_connections' AND application_name <> 'kbportal-index'"
        held = connection.execute(sql).fetchone()
    assert held is not None and 1 <= held[0] <= 5  # the supervisor may have one
