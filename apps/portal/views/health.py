"""Health checks: `live` says the process answers; `ready` touches everything a request or a job needs."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from kombu.exceptions import OperationalError as BrokerError

from apps.common import storage
from apps.common.errors import DomainError, StoreUnavailable, TransientError
from apps.common.jobs.service import served_queues
from apps.retrieval.selectors import probe_vectors, probe_words
from kbportal.celery import app

log = logging.getLogger(__name__)


@login_not_required
def health(request: HttpRequest) -> JsonResponse:
    """Contract platform 1.2: 200 `{"status": "ok"}`."""
    return JsonResponse({"status": "ok"})


@login_not_required
def live(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok", "version": settings.VERSION})


@login_not_required
def ready(request: HttpRequest) -> JsonResponse:
    """200 when all is well, 503 with the parts that are not; every part is really used once."""
    parts: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            parts[name] = check() or "ok"
        except (DatabaseError, BrokerError, OSError, DomainError, TransientError) as error:
            log.warning("health check of %s failed: %s", name, error)
            parts[name] = f"failed: {error.why if isinstance(error, StoreUnavailable) else type(error).__name__}"
    well = all(state == "ok" for state in parts.values())
    return JsonResponse({"status": "ok" if well else "degraded", "parts": parts}, status=200 if well else 503)


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


def _broker() -> str:
    with app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=1, timeout=2)
    return ""


def _worker() -> str:
    missing = sorted(set(settings.WORKER_QUEUES) - served_queues())
    return f"no worker serves: {', '.join(missing)}" if missing else ""


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


CHECKS: dict[str, Callable[[], str]] = {
    "database": _database,
    "broker": _broker,
    "worker": _worker,
    "disk": _disk,
    "files": _files,
    "search_words": _search_words,
    "search_vectors": _search_vectors,
}
