"""Making rows known to workers, cancelling them, and telling whether anybody is there to do the work."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.db.models import Count
from django.db.models.functions import Now
from kombu.exceptions import ChannelError
from kombu.exceptions import OperationalError as BrokerError

from apps.common.jobs.models import LIVE, Run, RunState
from apps.common.jobs.registry import job_kinds
from apps.common.models import WorkerBeat

log = logging.getLogger(__name__)

WORKER_SILENCE = timedelta(seconds=30)  # a worker not heard of for this long is not there; shown within 60 s


def enqueue(run: Run) -> None:
    """Ring for a saved row once the transaction that made it commits. Never fails the request: the sweeper rings again."""
    transaction.on_commit(lambda: ring(run.kind), robust=True)


def ring(kind_name: str) -> None:
    """Send one bell to the queue of a kind; a broker that is down costs time, not work."""
    from apps.common.jobs.tasks import drain

    kind = job_kinds.get(kind_name)
    try:
        drain.apply_async(args=[kind_name], queue=kind.queue, retry=False)
    except (BrokerError, ChannelError, OSError) as error:
        log.warning("the broker did not take a bell for %s: %s", kind_name, error)


def cancel_run(run: Run) -> None:
    """Cancel one row: at once when queued, by flag when running (its worker stops at the next slice)."""
    kind = job_kinds.get(run.kind)
    rows = kind.model.objects.filter(pk=run.pk)
    ended = rows.filter(state=RunState.QUEUED).update(
        state=RunState.CANCELLED, reason="cancelled", finished_at=Now(), cancel_requested=True
    )
    if not ended:
        rows.filter(state=RunState.RUNNING).update(cancel_requested=True)
    run.refresh_from_db()


def requeue_run(run: Run) -> bool:
    """Put a failed row back into its queue with its counts at zero; False when it is not failed (any more)."""
    kind = job_kinds.get(run.kind)
    back = kind.model.objects.filter(pk=run.pk, state=RunState.FAILED).update(
        state=RunState.QUEUED,
        attempt=0,
        takeovers=0,
        reason="",
        error="",
        worker="",
        not_before=None,
        started_at=None,
        finished_at=None,
        rung_at=None,
        cancel_requested=False,
    )
    if back:
        enqueue(run)
    run.refresh_from_db()
    return bool(back)


def living_workers() -> list[WorkerBeat]:
    return list(WorkerBeat.objects.filter(seen_at__gte=Now() - WORKER_SILENCE).order_by("name"))


def served_queues() -> set[str]:
    """Queues some living worker serves."""
    return {queue for beat in living_workers() for queue in beat.queues}


def has_worker(kind_name: str, served: set[str] | None = None) -> bool:
    """Whether anybody would pick up a row of this kind now."""
    return job_kinds.get(kind_name).queue in (served_queues() if served is None else served)


def live_counts() -> dict[str, dict[str, int]]:
    """{kind: {state: rows}} of everything not ended; call it inside a scope."""
    parts = [
        model.objects.filter(state__in=LIVE).order_by().values_list("kind", "state").annotate(rows=Count("id"))
        for model in {kind.model: None for _name, kind in job_kinds}
    ]
    counts: dict[str, dict[str, int]] = {}
    # One query, however many tables there are; each kind has its rows in one table, so no two parts count the same one.
    for name, state, rows in parts[0].union(*parts[1:], all=True) if parts else ():
        counts.setdefault(name, {})[state] = rows
    return counts
