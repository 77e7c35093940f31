"""Health checks: `live` says the process answers; `ready` touches everything a request or a job needs."""

from __future__ import annotations

import os
import shutil

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, JsonResponse

from apps.common import storage
from apps.common.jobs.schedule import SCHEDULE
from apps.common.jobs.service import served_queues
from apps.common.probes import Check, Probes
from apps.retrieval.selectors import probe_vectors, probe_words
from kbportal.celery import app

probes = Probes(deadline_s=3.0, keep_s=1.0)


@login_not_required
def health(request: HttpRequest) -> JsonResponse:
    """Contract platform 1.2: 200 `{"status": "ok"}`."""
    return JsonResponse({"status": "ok"})


@login_not_required
def live(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok", "version": settings.VERSION})


@login_not_required
def ready(request: HttpRequest) -> JsonResponse:
    """200 when all is well, 503 with the parts that are not; every part is really used once, and one that hangs is said to hang."""
    parts = probes.states(CHECKS)
    well = all(state == "ok" for state in parts.values())
    return JsonResponse({"status": "ok" if well else "degraded", "parts": parts}, status=200 if well else 503)


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


def _broker() -> str:
    with app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=1, timeout=2)
    folder = settings.BROKER_FOLDER / "queue"
    if app.conf.broker_url.startswith("folder:") and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        return "its folder is missing or cannot be written"
    return ""


def _worker() -> str:
    missing = sorted(set(settings.WORKER_QUEUES) - served_queues())
    return f"no worker serves: {', '.join(missing)}" if missing else ""


def _schedule() -> str:
    return "" if SCHEDULE in served_queues() else "the schedule is not running"


def _disk() -> str:
    free = shutil.disk_usage(settings.DATA_DIR).free
    return f"only {free // 1024**3} GiB free" if free < settings.DISK_REFUSE_BYTES else ""


def _files() -> str:
    storage.probe()
    return ""


def _search_words() -> str:
    probe_words()
    return ""


def _search_vectors() -> str:
    probe_vectors()
    return ""


CHECKS: dict[str, Check] = {
    "database": _database,
    "broker": _broker,
    "worker": _worker,
    "schedule": _schedule,
    "disk": _disk,
    "files": _files,
    "search_words": _search_words,
    "search_vectors": _search_vectors,
}
