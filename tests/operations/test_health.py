"""`/healthz/ready` says which part is not well, for every part, and in bounded time."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone
from kombu import Connection

from apps.common import storage
from apps.common.models import WorkerBeat
from apps.portal.views import health
from apps.retrieval.engine import engine, forget_engine
from kbportal.celery import app

pytestmark = pytest.mark.django_db(transaction=True)  # the checks run on threads of their own


@pytest.fixture(autouse=True)
def all_is_well() -> Iterator[None]:
    now = timezone.now()
    WorkerBeat.objects.create(name="w:1", queues=django_settings.WORKER_QUEUES, started_at=now, seen_at=now)
    WorkerBeat.objects.create(name="s:1", queues=["schedule"], started_at=now, seen_at=now)
    yield
    health.probes.forget()


def parts() -> dict[str, str]:
    health.probes.forget()
    answer = Client().get("/healthz/ready")
    found = answer.json()["parts"]
    well = all(state == "ok" for state in found.values())
    assert (answer.status_code, answer.json()["status"]) == ((200, "ok") if well else (503, "degraded"))
    return dict(found)


def unwell() -> dict[str, str]:
    return {name: state for name, state in parts().items() if state != "ok"}


def test_every_part_is_touched() -> None:
    assert parts() == dict.fromkeys(("database", "broker", "worker", "schedule", "disk", "files", "search_words", "search_vectors"), "ok")


def test_a_queue_without_a_worker_is_named() -> None:
    WorkerBeat.objects.filter(name="w:1").update(queues=["parse", "embed"])
    assert unwell() == {"worker": "no worker serves: copy, maintenance, ocr, sync"}
    WorkerBeat.objects.filter(name="w:1").update(seen_at=timezone.now() - timedelta(seconds=31))
    assert unwell() == {"worker": "no worker serves: copy, embed, maintenance, ocr, parse, sync"}


def test_a_schedule_that_stopped_is_named() -> None:
    WorkerBeat.objects.filter(name="s:1").update(seen_at=timezone.now() - timedelta(seconds=31))
    assert unwell() == {"schedule": "the schedule is not running"}


def test_a_full_disk_is_named(settings: Any) -> None:
    settings.DISK_REFUSE_BYTES = 2**62
    assert unwell()["disk"].startswith("only ")


def test_a_broker_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "connection_for_write", lambda: Connection("redis://127.0.0.1:1/0"))
    assert unwell() == {"broker": "failed: OperationalError"}


@pytest.mark.skipif("KB_BROKER_URL" in os.environ, reason="the broker is no folder here")
def test_a_broker_folder_that_is_gone_is_named(tmp_path: Path, settings: Any) -> None:
    settings.BROKER_FOLDER = tmp_path / "gone"
    assert unwell() == {"broker": "its folder is missing or cannot be written"}


@pytest.mark.skipif(django_settings.SEARCH_BACKEND != "sqlite", reason="the index is no file here")
def test_an_index_that_is_damaged_is_named() -> None:
    engine()
    folder = Path(django_settings.DATA_DIR) / "index"
    saved = {path: path.read_bytes() for path in folder.iterdir()}
    try:
        for path in folder.glob("search-*.sqlite3*"):
            path.write_bytes(b"no database " * 1000) if path.suffix == ".sqlite3" else path.unlink()
        forget_engine()
        found = unwell()
        assert set(found) == {"search_words", "search_vectors"}
        assert all(state.startswith("failed: ") for state in found.values())
    finally:
        shutil.rmtree(folder)
        folder.mkdir()
        for path, data in saved.items():
            path.write_bytes(data)
        forget_engine()
    assert unwell() == {}


def test_a_file_store_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "probe", full)
    assert unwell() == {"files": "failed: OSError"}


def test_a_part_that_hangs_is_answered_in_bounded_time_and_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go, asked = threading.Event(), []

    def hang() -> str:
        asked.append(1)
        let_go.wait(30)
        return ""

    monkeypatch.setattr(health.probes, "deadline_s", 0.5)
    monkeypatch.setitem(health.CHECKS, "broker", hang)
    started = time.monotonic()
    for _again in range(3):
        assert parts()["broker"] == "failed: no answer within 0.5 s"
    assert time.monotonic() - started < 10
    assert asked == [1], "a second thread that hangs would be one too many"
    let_go.set()
    monkeypatch.setattr(health.probes, "deadline_s", 10)
    assert parts()["broker"] == "ok"


def test_an_unexpected_error_is_no_error_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(health.CHECKS, "disk", lambda: str(1 // 0))
    assert unwell() == {"disk": "failed: ZeroDivisionError"}


def test_many_questions_at_once_are_answered_by_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setitem(health.CHECKS, "disk", lambda: looks.append(1) or "")
    health.probes.forget()
    for _again in range(5):
        assert Client().get("/healthz/ready").status_code == 200
    assert looks == [1]
