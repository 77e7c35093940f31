"""A disk that is really full, under files, index and database in turn: refused or waited for, nothing half done, and well again after."""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.rest import Answer, Rest
from tests.support.stack import LiveStack
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SIZES = {"": "48m", "files": "4m", "index": "4m"}


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[Path]:
    """A data folder on a small disk of its own, with further ones for files and index in it."""
    data, mounted = tmp_path / "data", []
    try:
        for name, size in SIZES.items():
            place = data / name
            place.mkdir(exist_ok=True)
            done = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, text=True, check=False
            )
            if done.returncode:
                pytest.skip(f"this user may not mount a disk: {done.stderr.strip()}")
            mounted.append(place)
        yield data
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def stack(disks: Path, live_stack: Callable[..., LiveStack]) -> Iterator[LiveStack]:
    started = live_stack(data_dir=disks, env={"KB_DATABASE_URL": "", "KB_BROKER_URL": "", "KB_EMBEDDER": "none"})
    yield started
    started.stop()  # before its disks go


@contextmanager
def full(place: Path) -> Iterator[None]:
    """Not a byte is free in that place during the block."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\1" * 65536)
        except OSError:
            pass
        left = os.statvfs(place)
        assert left.f_bavail == 0
    try:
        yield
    finally:
        filler.unlink()


def is_an_error_of_the_portal(answer: Answer) -> bool:
    """An answer in the form of every error, that says nothing of the inside."""
    text = json.dumps(answer.body)
    return (
        answer.status in (500, 503)
        and answer.body["success"] is False
        and not any(word in text for word in ("Traceback", "Errno", "sqlite"))
    )


def last_run(data: Path) -> tuple[str, int]:
    with closing(sqlite3.connect(f"file:{data / 'kbportal.sqlite3'}?mode=ro", uri=True)) as connection:
        return tuple(connection.execute("SELECT state, attempt FROM ingestion_ingestionrun ORDER BY id DESC LIMIT 1").fetchone())


def ready(stack: LiveStack) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=10)
    with closing(connection):
        connection.request("GET", "/healthz/ready")
        return json.loads(connection.getresponse().read())["status"]


def test_a_full_disk_costs_time_and_nothing_else(stack: LiveStack) -> None:
    data = stack.data_dir
    rest = Rest(stack.base_url).sign_up()
    base = rest.make_base()
    first = rest.upload(base, "first.md", "# First\n\nThe firstword stands here.\n").body["data"]["id"]
    assert rest.wait(first)["parse_status"] == "completed"

    def documents() -> int:
        return int(rest.call("GET", f"/knowledge-bases/{base}/knowledge").body["total"])

    def stored() -> list[str]:
        return sorted(path.name for path in (data / "files").rglob("*") if path.is_file() and path.name != "filler")

    before = stored()
    large = "# Second\n\nThe secondword.\n\n" + "More of it. " * 20_000
    with full(data / "files"):
        assert is_an_error_of_the_portal(rest.upload(base, "second.md", large))
        assert (documents(), stored()) == (1, before)
        assert [hit["knowledge_id"] for hit in rest.search(base, "firstword")] == [first]
    second = rest.upload(base, "second.md", large).body["data"]["id"]
    assert rest.wait(second)["parse_status"] == "completed"

    with full(data / "index"):
        third = rest.upload(base, "third.md", large.replace("second", "third")).body["data"]["id"]
        until(lambda: last_run(data)[1] >= 1, "the run to be put off", timeout_s=60)
        assert rest.document(third)["parse_status"] == "processing"  # its passages are stored, but no word of it is found yet
        assert rest.search(base, "thirdword") == []
        assert [hit["knowledge_id"] for hit in rest.search(base, "firstword")] == [first]
    assert rest.wait(third, timeout_s=90)["parse_status"] == "completed"
    assert rest.search(base, "thirdword")[0]["knowledge_id"] == third

    with full(data):
        made = [rest.call("POST", "/knowledge-bases", {"name": f"Base {number}", "description": "x" * 2000}) for number in range(40)]
        refused = [answer for answer in made if answer.status != 201]
        assert refused and all(is_an_error_of_the_portal(answer) for answer in refused)
        assert rest.call("GET", f"/knowledge-bases/{base}").status == 200
    assert rest.call("POST", "/knowledge-bases", {"name": "Afterwards"}).status == 201
    listed = rest.data("GET", "/knowledge-bases?page_size=100")
    assert len(listed) == 1 + 1 + len(made) - len(refused)
    until(lambda: ready(stack) == "ok", "the portal to say that all is well", timeout_s=60, every_s=0.5)
    assert "database, index and files agree" in stack.manage("reconcile", "--check", "--young", "0").stdout
