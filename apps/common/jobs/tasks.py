"""Celery entry points of background work, and the threads that live in a worker process."""

from __future__ import annotations

import logging
import random
import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models.functions import Now

from apps.common import activity, context, temp
from apps.common.errors import DomainError, NotYet, TransientError
from apps.common.jobs.claims import WORKER_NAME, Claim, Stop, claim_next, heartbeats, release_dead, runnable
from apps.common.jobs.models import RunState
from apps.common.jobs.registry import JobKind, job_kinds
from apps.common.jobs.service import ring
from apps.common.models import WorkerBeat
from apps.common.scope import space_scope, unscoped

log = logging.getLogger(__name__)

SLICE_S = 60.0  # one bell works this long, then rings again, so that a queue's other kinds get their turn
RING_AGAIN = timedelta(seconds=8)

_slots: dict[str, threading.BoundedSemaphore] = {}
_slots_lock = threading.Lock()


def _slot(kind: JobKind) -> threading.BoundedSemaphore:
    with _slots_lock:
        if kind.name not in _slots:
            _slots[kind.name] = threading.BoundedSemaphore(max(1, kind.concurrency()))
        return _slots[kind.name]


@shared_task(name="jobs.drain", acks_late=True)
def drain(kind_name: str) -> int:
    """Work rows of one kind, fairest first, until none is left or the slice is over; how many were worked.

    Delivered twice, late, or for rows that are gone, it changes nothing. When this process already works as many rows of the kind as it
    may, the bell is dropped: whoever holds a slot looks for more when done.
    """
    kind = job_kinds.get(kind_name)
    slot = _slot(kind)
    worked = 0
    if not slot.acquire(blocking=False):
        return 0
    try:
        until = time.monotonic() + SLICE_S
        while time.monotonic() < until:
            claim = claim_next(kind)
            if claim is None:
                return worked
            work(claim)
            worked += 1
        ring(kind_name)
        return worked
    finally:
        slot.release()


def work(claim: Claim) -> None:
    """Do one claimed row and see that it ends truthfully, whatever happens."""
    token = context.run_id.set(f"{claim.kind.name}:{claim.run.pk}")
    in_space = context.space_id.set(str(claim.run.space_id))
    started = time.monotonic()
    heartbeats.add(claim)
    try:
        with space_scope(claim.run.space_id, f"run {claim.run.pk}"):
            _work(claim)
    finally:
        heartbeats.drop(claim)
        log.info("%s run %s worked for %.1f s", claim.kind.name, claim.run.pk, time.monotonic() - started)
        context.space_id.reset(in_space)
        context.run_id.reset(token)


def _work(claim: Claim) -> None:
    try:
        claim.check()
        claim.kind.work(claim)
        return
    except Stop as stop:
        if stop.why == "cancelled":
            _end(claim, RunState.CANCELLED, "cancelled", "")
        return
    except NotYet as error:
        claim.wait(error.retry_after_s or 30.0, error.code, str(error))
    except TransientError as error:
        if claim.run.attempt + 1 < max(claim.kind.max_attempts, error.attempts):
            delay = error.retry_after_s or min(300.0, 2.0 ** (claim.run.attempt + 1)) * random.uniform(0.8, 1.2)  # noqa: S311
            claim.retry_later(delay, str(error), reason=error.code)
            return
        _end(claim, RunState.FAILED, error.code, str(error))
    except OperationalError as error:
        log.warning("the database refused run %s, it will be tried again: %s", claim.run.pk, error)
        claim.retry_later(2.0, str(error))
    except DomainError as error:
        _end(claim, RunState.FAILED, error.code, str(error))
    except Exception as error:
        log.exception("run %s failed", claim.run.pk)
        _end(claim, RunState.FAILED, "internal", f"{type(error).__name__}: {error}")


def _end(claim: Claim, state: RunState, reason: str, error: str) -> None:
    with transaction.atomic():
        if claim.finish(state, reason=reason, error=error):
            claim.run.refresh_from_db()
            claim.kind.on_end(claim.run)


def sweep() -> int:
    """Ring again for rows nobody picked up and for expired leases; how many bells were sent. Called once a second in each worker."""
    rung = 0
    with unscoped("sweep of unclaimed runs"):
        for name, kind in job_kinds:
            if kind.queue not in settings.WORKER_QUEUES:
                continue
            quiet = runnable(kind).exclude(rung_at__gte=Now() - RING_AGAIN)
            stale = list(quiet.order_by("id").values_list("pk", flat=True)[:500])
            if stale:
                kind.model.objects.filter(pk__in=stale).update(rung_at=Now())
                ring(name)
                rung += 1
    return rung


def beat_worker() -> None:
    """Tell the database that this worker lives and what it serves; by the database's clock, which everybody who asks goes by."""
    WorkerBeat.objects.update_or_create(
        name=WORKER_NAME,
        defaults={"queues": settings.WORKER_QUEUES, "seen_at": Now()},
        create_defaults={"queues": settings.WORKER_QUEUES, "seen_at": Now(), "started_at": Now()},
    )


class WorkerThread(threading.Thread):
    """Lives in the worker process: its heartbeat every 10 s, the sweep every second."""

    def __init__(self) -> None:
        super().__init__(name="sweeper", daemon=True)
        self.stopping = threading.Event()

    def run(self) -> None:
        last_beat, wait_s = float("-inf"), 0.0
        is_new = True
        while not self.stopping.wait(wait_s):
            wait_s = 1.0
            try:
                if is_new:  # here and not before: a database that is busy at this moment is asked again
                    for _name, kind in job_kinds:
                        release_dead(kind)
                    is_new = False
                if time.monotonic() - last_beat > 10:
                    beat_worker()
                    last_beat = time.monotonic()
                sweep()
            except DatabaseError:
                log.warning("the sweeper could not reach the database", exc_info=True)
                connection.close()
        with suppress(DatabaseError):
            WorkerBeat.objects.filter(name=WORKER_NAME).delete()
        connection.close()


_thread: WorkerThread | None = None


@worker_ready.connect
def _start_thread(**_kwargs: Any) -> None:
    global _thread
    temp.sweep(settings.TEMP_DIR)
    _thread = WorkerThread()
    _thread.start()


@worker_shutting_down.connect
def _stop_thread(**_kwargs: Any) -> None:
    if _thread is not None:
        _thread.stopping.set()


@shared_task(name="apps.common.jobs.tasks.housekeeping")
def housekeeping() -> None:
    """Forget workers long gone, expired sessions, activity older than wanted, and temporary files of processes that were killed."""
    from django.core.management import call_command

    WorkerBeat.objects.filter(seen_at__lt=Now() - timedelta(days=1)).delete()
    call_command("clearsessions")
    activity.trim(settings.ACTIVITY_DAYS)
    temp.sweep(settings.TEMP_DIR)
