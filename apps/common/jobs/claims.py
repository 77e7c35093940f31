"""Claiming rows: one conditional UPDATE decides who works; a heartbeat keeps the hold; losing it stops the work."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Max, Min, Q
from django.db.models.functions import Now

from apps.common.jobs.models import Run, RunState
from apps.common.jobs.registry import JobKind, job_kinds
from apps.common.scope import unscoped

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)
HEARTBEAT_S = 5.0
WORKER_NAME = f"{socket.gethostname()}:{os.getpid()}"


class Stop(Exception):
    """The work must end now: it was cancelled, or another worker holds the row."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why  # "cancelled" | "lost"


class Claim:
    """A worker's hold on one row. `check()` between slices, `progress()` as often as wanted (written at most twice a second)."""

    def __init__(self, kind: JobKind, run: Run, token: uuid.UUID) -> None:
        self.kind = kind
        self.run = run
        self.token = token
        self.stopped = ""
        self._progress_at = 0.0

    def rows(self) -> Any:
        """The row, if still held: every write of the worker goes through this filter."""
        return self.kind.model.objects.filter(pk=self.run.pk, claim_token=self.token, state=RunState.RUNNING)

    def check(self) -> None:
        """Raises: Stop when the row was cancelled or taken over."""
        if self.stopped:
            raise Stop(self.stopped)

    def should_stop(self) -> bool:
        return bool(self.stopped)

    def beat(self) -> None:
        """Renew the lease and learn of a cancel; called by the heartbeat thread."""
        with unscoped("heartbeat of a held run"):
            held = self.rows().update(lease_until=Now() + LEASE)
            if not held:
                self.stopped = "lost"
            elif self.rows().filter(cancel_requested=True).exists():
                self.stopped = "cancelled"

    def progress(self, done: int, total: int, unit: str = "", *, failed: int = 0) -> None:
        now = time.monotonic()
        if now - self._progress_at < 0.5 and done < total:
            return
        self._progress_at = now
        with unscoped("progress of a held run"):
            self.rows().update(progress_done=done, progress_total=total, progress_unit=unit, progress_failed=failed)

    def finish(self, state: RunState, *, reason: str = "", error: str = "") -> bool:
        """End the row; False when the hold was lost (then the caller's transaction must not commit its results).

        Call it inside the transaction that stores the results: work and its record stand or fall together.
        """
        with unscoped("end of a held run"):
            ended = self.rows().update(
                state=state, reason=reason[:32], error=error[:4000], finished_at=Now(), claim_token=None, lease_until=None
            )
        return bool(ended)

    def hold(self) -> None:
        """Inside a transaction: make sure the row is still ours, and lock it until commit. Raises: Stop."""
        with unscoped("hold of a run before its results are stored"):
            if not self.rows().update(lease_until=Now() + LEASE):
                raise Stop("lost")

    def retry_later(self, delay_s: float, error: str, *, reason: str = "") -> None:
        """Put the row back to be tried again; `reason` and `error` say why it waits."""
        self._put_back(delay_s, reason=reason[:32], error=error[:4000], attempt=F("attempt") + 1)

    def wait(self, delay_s: float, reason: str, error: str) -> None:
        """The same without counting the try: nothing was tried, or whoever waits decides itself when to give up."""
        self._put_back(delay_s, reason=reason[:32], error=error[:4000])

    def _put_back(self, delay_s: float, **values: Any) -> None:
        with unscoped("retry of a held run"):
            not_before = Now() + timedelta(seconds=delay_s)
            self.rows().update(state=RunState.QUEUED, claim_token=None, lease_until=None, not_before=not_before, rung_at=None, **values)

    def give_way(self) -> None:
        """Put the row back at the end of the line: others wait, and what was done so far is kept."""
        with unscoped("a held run gives way"):
            self.rows().update(state=RunState.QUEUED, claim_token=None, lease_until=None, rung_at=None)


def others_wait(claim: Claim) -> bool:
    """Whether another space waits for this kind of work."""
    with unscoped("does another space wait"):
        return bool(runnable(claim.kind).exclude(space_id=claim.run.space_id).exists())


def anyone_waits(kind_name: str) -> bool:
    """Whether a row of another kind, of any space, could be worked on now: what matters less gives way to it."""
    with unscoped("does work of another kind wait"):
        return bool(runnable(job_kinds.get(kind_name)).exists())


def runnable(kind: JobKind) -> Any:
    """Rows of a kind that may be claimed now: queued and due, or running with an expired lease.

    Leases are written and read by the database's clock: those of two machines may be minutes apart.
    """
    due = Q(state=RunState.QUEUED) & (Q(not_before__isnull=True) | Q(not_before__lte=Now()))
    expired = Q(state=RunState.RUNNING, lease_until__lt=Now())
    return kind.model.objects.filter(kind=kind.name).filter(due | expired)


def fairest(kind: JobKind) -> int | None:
    """Primary key of the row to take next: the space served longest ago first, then its oldest row."""
    waiting = {row["space"]: row["oldest"] for row in runnable(kind).order_by().values("space").annotate(oldest=Min("id"))}
    if not waiting:
        return None
    served = dict(
        kind.model.objects.filter(kind=kind.name, space__in=waiting, started_at__isnull=False)
        .order_by()
        .values_list("space")
        .annotate(last=Max("started_at"))
    )
    space = min(waiting, key=lambda s: (served[s].timestamp() if s in served else 0.0, waiting[s]))
    return int(waiting[space])


def claim_next(kind: JobKind) -> Claim | None:
    """Take the fairest runnable row, or None when nothing is left; two workers never get the same one."""
    for _try in range(50):
        with unscoped("choosing the next run"):
            pk = fairest(kind)
            if pk is None:
                return None
            claim = _take(kind, pk)
        if claim is not None:
            return claim
    return None


def _take(kind: JobKind, pk: int) -> Claim | None:
    token = uuid.uuid4()
    with transaction.atomic():
        run = kind.model.objects.filter(pk=pk).first()
        if run is None:
            return None
        taken_over = run.state == RunState.RUNNING
        if taken_over and run.takeovers >= kind.max_takeovers:
            _end_poisoned(kind, run)
            return None
        held = (
            runnable(kind)
            .filter(pk=pk, claim_token=run.claim_token, state=run.state)
            .update(
                state=RunState.RUNNING,
                claim_token=token,
                worker=WORKER_NAME,
                lease_until=Now() + LEASE,
                started_at=Now(),
                takeovers=F("takeovers") + (1 if taken_over else 0),
            )
        )
        if not held:
            return None
        run.refresh_from_db()
    if run.cancel_requested:
        claim = Claim(kind, run, token)
        claim.stopped = "cancelled"
        return claim
    return Claim(kind, run, token)


def _end_poisoned(kind: JobKind, run: Run) -> None:
    """A row whose worker died every time is ended with a reason instead of killing workers for ever."""
    ended = kind.model.objects.filter(pk=run.pk, state=RunState.RUNNING, claim_token=run.claim_token).update(
        state=RunState.FAILED,
        reason="stalled",
        error="its worker stopped every time it was tried",
        finished_at=Now(),
        claim_token=None,
    )
    if ended:
        run.refresh_from_db()
        kind.on_end(run)


def release_dead(kind: JobKind) -> int:
    """Expire the leases of workers of this machine whose process is gone, so that a restart need not wait for them; how many."""
    host = WORKER_NAME.rpartition(":")[0]
    released = 0
    with unscoped("leases of dead workers of this machine"):
        held = kind.model.objects.filter(kind=kind.name, state=RunState.RUNNING, worker__startswith=f"{host}:")
        for worker in set(held.values_list("worker", flat=True)):
            if not _alive(int(worker.rpartition(":")[2])):
                released += held.filter(worker=worker).update(lease_until=Now() - timedelta(seconds=1))
    return released


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Heartbeats:
    """One thread per process that renews the leases of everything the process holds."""

    def __init__(self) -> None:
        self._held: dict[uuid.UUID, Claim] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def add(self, claim: Claim) -> None:
        with self._lock:
            self._held[claim.token] = claim
            if self._thread is None or self._pid != os.getpid() or not self._thread.is_alive():
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._beat, name="run-heartbeats", daemon=True)
                self._thread.start()

    def drop(self, claim: Claim) -> None:
        with self._lock:
            self._held.pop(claim.token, None)

    def _beat(self) -> None:
        wake = threading.Event()
        while True:
            wake.wait(HEARTBEAT_S / 5)
            with self._lock:
                held = list(self._held.values())
                if not held:
                    self._thread = None
                    connection.close()
                    return
            self.beat(held)

    def beat(self, held: list[Claim]) -> None:
        for claim in held:
            try:
                claim.beat()
            except Exception:
                log.warning("heartbeat of run %s failed", claim.run.pk, exc_info=True)
                connection.close()


heartbeats = Heartbeats()
