"""A backup of a portal in use, restored: the same rows, files, answers, keys and sign-ins, on either engine and from one to the other."""

from __future__ import annotations

import hashlib
import json
import tarfile
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import PostgresProcess
from tests.support.rest import Rest
from tests.support.stack import LiveStack
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

TEXTS = {
    "手册.md": "# 传感器手册\n\n## 校准\n\n传感器应每季度校准一次。故障代码 ERR-4021 表示过热。\n",
    "manual.md": "# Pump manual\n\nThe pump must be primed before it is started.\n\nERR-4012 means that the pump runs dry.\n",
    "报销.txt": "差旅报销制度：出差人员应在返回后七个工作日内提交报销单，附上发票与行程单。\n",
}
QUESTIONS = ("ERR-4021", "怎么校准传感器", "pump runs dry", "报销需要什么材料")
SQLITE = {"KB_DATABASE_URL": "", "KB_BROKER_URL": ""}


def manifest_of(archive: Path) -> dict[str, Any]:
    with tarfile.open(archive) as tar:
        found = tar.extractfile("manifest.json")
        assert found is not None
        return dict(json.loads(found.read()))


def original(rest: Rest, document: str) -> str:
    request = urllib.request.Request(
        f"{rest.base_url}/api/v1/knowledge/{document}/download", headers={"Authorization": f"Bearer {rest.token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return hashlib.sha256(answer.read()).hexdigest()


def answers(rest: Rest, base: str) -> dict[str, list[tuple[str, float]]]:
    found = {question: rest.search(base, question) for question in QUESTIONS}
    return {question: [(hit["id"], round(hit["score"], 1)) for hit in hits] for question, hits in found.items()}


@contextmanager
def load(rest: Rest, base: str) -> Iterator[list[int]]:
    """Uploads, new versions and deletions that go on during the block; how many rounds were made."""
    rounds: list[int] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            number = len(rounds)
            made = rest.upload(base, f"busy-{number}.md", f"# Busy {number}\n\nWritten during a backup, number LOAD-{number:04d}.\n" * 40)
            written = rest.call(
                "POST", f"/knowledge-bases/{base}/knowledge/manual", {"title": f"m{number}", "content": "# a", "status": "publish"}
            )
            assert made.status in (200, 201) and written.status in (200, 201), (made, written)
            rest.call(
                "PUT", f"/knowledge/manual/{written.body['data']['id']}", {"title": "m", "content": f"# b {number}", "status": "publish"}
            )
            if number % 2:
                assert rest.call("DELETE", f"/knowledge/{made.body['data']['id']}").status == 200
            rounds.append(number)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        until(lambda: len(rounds) >= 2, "the load to begin")
        yield rounds
    finally:
        stop.set()
        thread.join()


def restored(tmp_path: Path, archive: Path, name: str, env: dict[str, str]) -> LiveStack:
    stack = LiveStack(tmp_path / name, env=env)
    stack.data_dir.mkdir()
    done = stack.manage("restore", str(archive))
    assert "restored: " in done.stdout, done
    said = manifest_of(archive)
    assert f"{sum(table['rows'] for table in said['tables'].values())} rows" in done.stdout
    return stack


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_backup_of_a_portal_in_use_is_the_whole_portal(
    live_stack: Callable[..., LiveStack], postgres_server: PostgresProcess, tmp_path: Path, engine: str
) -> None:
    def database() -> dict[str, str]:
        return SQLITE if engine == "sqlite" else {**SQLITE, "KB_DATABASE_URL": postgres_server.create_database()}

    stack = live_stack(env=database())
    rest = Rest(stack.base_url).sign_up("alice")
    base, busy = rest.make_base("产品"), rest.make_base("busy")
    key = rest.data("POST", "/tenants/{}/api-keys".format(rest.data("GET", "/auth/me")["tenant"]["id"]), {"name": "k", "full_access": True})
    documents = {name: rest.upload(base, name, text).body["data"]["id"] for name, text in TEXTS.items()}
    for document in documents.values():
        assert rest.wait(document)["parse_status"] == "completed"
    found, files = answers(rest, base), {document: original(rest, document) for document in documents.values()}
    assert all(found.values())

    archive = tmp_path / "backup.tar"
    with load(rest, busy) as rounds:
        begun = len(rounds)
        done = stack.manage("backup", "--to", str(archive))
        until(lambda: len(rounds) > begun, "the portal to go on while it is backed up")
    assert "backup: " in done.stdout and "signing key" in done.stderr
    assert archive.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert "sound" in stack.manage("restore", "--check", str(archive)).stdout
    refused = stack.manage("restore", str(archive), check=False)
    assert refused.returncode == 1 and "Stop it first" in refused.stderr or "alive" in refused.stderr
    stack.stop()

    for name, env in (
        (engine, database()),
        ("other", {**SQLITE, "KB_DATABASE_URL": postgres_server.create_database()} if engine == "sqlite" else SQLITE),
    ):
        copy = restored(tmp_path, archive, name, env)
        assert "database, index and files agree" in copy.manage("reconcile", "--check", "--young", "0").stdout
        if name == "other":
            continue
        again = copy.manage("restore", str(archive), check=False)
        assert again.returncode == 1 and "not empty" in again.stderr
        running = live_stack(data_dir=copy.data_dir, env=env)
        there = Rest(running.base_url, token=rest.token)
        assert answers(there, base) == found
        assert {document: original(there, document) for document in files} == files
        assert (
            Rest(running.base_url, headers={"X-API-Key": key["api_key"]}).call("GET", f"/knowledge/{documents['manual.md']}").status == 200
        )
        fresh = there.upload(base, "new.txt", "恢复之后新写的一篇，编号 NEW-0001。").body["data"]["id"]
        assert there.wait(fresh)["parse_status"] == "completed"
        assert Rest(running.base_url).call("POST", "/auth/login", {"email": "alice@example.com", "password": "passw0rd-1"}).status == 200
