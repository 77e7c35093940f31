"""The schedule process: celery beat over the database, which also tells the database that it lives."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import DatabaseError, connection
from django.utils import timezone
from django_celery_beat.schedulers import DatabaseScheduler

from apps.common.jobs.claims import WORKER_NAME
from apps.common.models import WorkerBeat

log = logging.getLogger(__name__)

SCHEDULE = "schedule"  # what it serves, in the words of WorkerBeat
BEAT_S = 10.0


class Scheduler(DatabaseScheduler):  # type: ignore[misc]
    """Wakes at least every 5 s; about every 10 s it leaves a sign of life."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._started = timezone.now()
        self._beat_at = 0.0
        super().__init__(*args, **options)

    def tick(self, *args: Any, **options: Any) -> float:
        if time.monotonic() - self._beat_at > BEAT_S:
            self._sign_of_life()
        return float(super().tick(*args, **options))

    def _sign_of_life(self) -> None:
        values = {"queues": [SCHEDULE], "started_at": self._started, "seen_at": timezone.now()}
        try:
            WorkerBeat.objects.update_or_create(name=self._name, defaults=values)
            self._beat_at = time.monotonic()
        except DatabaseError:
            log.warning("the schedule could not reach the database", exc_info=True)
            connection.close()

    def close(self) -> None:
        WorkerBeat.objects.filter(name=self._name).delete()
        super().close()

    @property
    def _name(self) -> str:
        return f"{SCHEDULE}@{WORKER_NAME}"
