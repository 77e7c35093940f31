"""The portal on PostgreSQL: what many requests leave behind, and its parts as processes of their own."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.filestore import ObjectServer
from tests.support.postgres import PostgresProcess
from tests.support.rest import Rest
from tests.support.stack import LiveStack
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]


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


def ready(stack: LiveStack) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{stack.base_url}/healthz/ready", timeout=20) as answer:
            return dict(json.loads(answer.read()))
    except urllib.error.HTTPError as error:
        return dict(json.loads(error.read()))


def download(rest: Rest, document: str) -> bytes:
    url = f"{rest.base_url}/api/v1/knowledge/{document}/download"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {rest.token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return bytes(answer.read())


@pytest.mark.parametrize("files", ["one shared folder", "a bucket, and a folder for each machine"])
def test_parts_run_as_processes_of_their_own(
    live_stack: Callable[..., LiveStack],
    postgres_server: PostgresProcess,
    redis_server: str,
    object_server: ObjectServer,
    tmp_path: Path,
    files: str,
) -> None:
    bucket = "bucket" in files
    env = {"KB_DATABASE_URL": postgres_server.create_database(), "KB_SECRET_KEY": "the-same-on-every-machine-and-long-enough"}
    env |= object_server.environ("machines") if bucket else {"KB_STORAGE_URL": ""}

    def part(only: str, name: str, **extra: str) -> LiveStack:
        return live_stack(broker_url=redis_server, only=only, env={**env, **extra}, data_dir=tmp_path / (name if bucket else "shared"))

    web = part("web", "web")
    first = ready(web)
    assert first["status"] == "degraded" and "no worker serves" in first["parts"]["worker"]
    assert first["parts"]["files"] == "ok"
    parse = part("worker", "parse", KB_WORKER_QUEUES="parse,ocr")
    rest_of_work = part("worker", "rest", KB_WORKER_QUEUES="embed,copy,sync,maintenance")
    schedule = part("schedule", "schedule")
    until(lambda: ready(web)["status"] == "ok", "every queue to be served", timeout_s=120)
    assert [sorted(stack.pids) for stack in (web, parse, rest_of_work, schedule)] == [
        ["supervisor", "web"],
        ["supervisor", "worker"],
        ["supervisor", "worker"],
        ["schedule", "supervisor"],
    ]

    client = Rest(web.base_url).sign_up()
    base = client.make_base("产品")
    text = "# 手册\n\n传感器应每季度校准一次。故障代码 ERR-4021 表示过热。\n"
    document = client.upload(base, "手册.md", text).body["data"]["id"]
    assert client.wait(document, timeout_s=120)["parse_status"] == "completed"
    assert [hit["knowledge_id"] for hit in client.search(base, "ERR-4021")] == [document]
    assert download(client, document) == text.encode()

    def stored() -> list[str]:
        if bucket:
            return object_server.keys("machines")
        return [str(path) for path in (tmp_path / "shared" / "files").rglob("*") if path.is_file()]

    assert len(stored()) == 2  # the original and the parsed text
    assert "database, index and files agree" in web.manage("reconcile", "--check", "--young", "0").stdout
    parse.stop()
    assert sorted(rest_of_work.pids) == ["supervisor", "worker"]
    client.data("DELETE", f"/knowledge/{document}")
    client.data("POST", f"/knowledge-bases/{base}/trash/purge", {"ids": [document]})
    until(lambda: not stored(), "its files to be gone", timeout_s=60)
    if bucket:
        assert not [path for name in ("web", "parse") for path in (tmp_path / name / "files").rglob("*") if path.is_file()]
        assert not [path for path in (tmp_path / "parse" / "tmp").rglob("*") if path.is_file()]


def test_two_schedules_on_one_folder_are_refused(
    live_stack: Callable[..., LiveStack], postgres_server: PostgresProcess, redis_server: str
) -> None:
    env = {"KB_DATABASE_URL": postgres_server.create_database()}
    stack = live_stack(broker_url=redis_server, only="schedule", env=env)
    until(lambda: "schedule" in stack.pids, "the schedule to run", timeout_s=60)
    second = stack.manage("serve", "--only", "schedule", check=False)
    assert second.returncode == 1
    assert "already runs the schedule of the data folder" in second.stderr
