"""Trying background work again and stopping it, whatever kind it is: the registry says how each kind does it."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.jobs.models import LIVE, Run, RunState
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.service import cancel_run, requeue_run
from apps.common.policy import authorize


def run_retry(*, actor: Actor, run: Run) -> None:
    """Do ended work again. Raises: Conflict when it did not fail, or when there is nothing to do again any more (the sentence says why)."""
    authorize(actor, "run.moderate", run)
    kind = job_kinds.get(run.kind)
    again = (RunState.FAILED, RunState.CANCELLED) if kind.retry else (RunState.FAILED,)
    if run.state not in again:
        raise Conflict(_("Only work that failed can be tried again; this has not."), code="not_failed")
    with transaction.atomic():
        if kind.retry is not None:
            kind.retry(actor, run)
        elif not requeue_run(run):
            raise Conflict(_("Somebody was faster: it is queued again already."), code="not_failed")
        _record(actor, "moderator.run_retried", run)


def run_cancel(*, actor: Actor, run: Run) -> None:
    """Stop live work: at once while it waits, at its next step while it runs.

    Raises: Conflict when it has ended, or must not be stopped (the sentence says why).
    """
    authorize(actor, "run.moderate", run)
    if run.state not in LIVE:
        raise Conflict(_("It has ended already; there is nothing to stop."), code="not_live")
    kind = job_kinds.get(run.kind)
    with transaction.atomic():
        if kind.cancel is not None:
            kind.cancel(actor, run)
        else:
            waited = run.state == RunState.QUEUED
            cancel_run(run)
            if waited and run.state == RunState.CANCELLED:
                kind.on_end(run)
        _record(actor, "moderator.run_stopped", run)


def _record(actor: Actor, action: str, run: Run) -> None:
    audit(actor, action, target_type="run", target_id=f"{run.kind}-{run.pk}", space_id=run.space_id, kind=run.kind)
