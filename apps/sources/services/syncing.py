"""Starting and stopping runs, by hand and on schedule; forgetting old ones."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.jobs.models import LIVE, RunState
from apps.common.jobs.service import cancel_run, enqueue
from apps.common.policy import authorize
from apps.sources.models import DataSource, SyncRun
from apps.sources.schedule import next_run

SYNC = "sync"


def sync_start(*, actor: Actor, source: DataSource, mode: str = "", trigger: str = SyncRun.Trigger.MANUAL) -> SyncRun:
    """A run over the source, or the one that is under way: there is never more than one. Paused sources can be asked by hand.

    `mode` "" is the source's own; "full" fetches everything again and brings back what was deleted here.
    """
    authorize(actor, "source.sync", source)
    try:
        with transaction.atomic():
            run = SyncRun.objects.create(
                space_id=source.space_id,
                kind=SYNC,
                source=source,
                trigger=trigger,
                mode=mode or source.sync_mode,
                starter_id=actor.user_id,
                progress_unit="items",
            )
            if trigger == SyncRun.Trigger.MANUAL:
                audit(
                    actor, "source.sync_started", source, outcome="accepted", target_type="datasource", title=source.name,
                    run_id=str(run.uid), mode=run.mode,
                )  # fmt: skip
            enqueue(run)
    except IntegrityError:
        under_way = SyncRun.objects.filter(source=source, state__in=LIVE).select_related("source").first()
        if under_way is None:
            raise Conflict(_("A run just ended. Start it again.")) from None
        return under_way  # type: ignore[no-any-return]
    return run


def sync_stop(*, actor: Actor, source: DataSource) -> bool:
    """Stop the run under way; whether there was one. What it took over stays, and the next run goes on from there."""
    authorize(actor, "source.sync", source)
    run = SyncRun.objects.filter(source=source, state__in=LIVE).first()
    if run is None:
        return False
    cancel_run(run)
    if run.state == RunState.CANCELLED:  # it was still waiting; one that runs says so itself when it has stopped
        audit(actor, "source.sync_canceled", source, outcome="canceled", target_type="datasource", title=source.name)
    return True


def due_start(*, actor: Actor, now: datetime | None = None) -> int:
    """Start a run for every source of the space that is due; how many. However often a source was due while nobody looked, it runs once.

    Inside the space's scope. A source that is being looked at already is only put off to its next time.
    """
    authorize(actor, "source.sync")
    moment = now or timezone.now()
    started = 0
    due = DataSource.objects.filter(next_run_at__lte=moment, deleted_at__isnull=True, kb__deleted_at__isnull=True)
    for source in due.exclude(status=DataSource.Status.PAUSED).select_related("kb").order_by("next_run_at", "pk"):
        following = next_run(source.schedule, source.time_zone, source.uid, moment)
        with transaction.atomic():
            mine = DataSource.objects.filter(pk=source.pk, next_run_at=source.next_run_at).update(next_run_at=following)
            if mine and not SyncRun.objects.filter(source=source, state__in=LIVE).exists():
                sync_start(actor=actor, source=source, trigger=SyncRun.Trigger.SCHEDULE)
                started += 1
    return started


def log_trim(*, actor: Actor, now: datetime | None = None) -> int:
    """Forget runs of the space older than their source keeps them; how many. The latest one, and the latest that worked, stay."""
    authorize(actor, "source.sync")
    moment, gone = now or timezone.now(), 0
    for source in DataSource.objects.order_by("pk").only("pk", "log_retention_days", "space_id"):
        old = SyncRun.objects.filter(source=source, created_at__lt=moment - timedelta(days=source.log_retention_days))
        old = old.exclude(state__in=LIVE)
        if old.exists():
            every = SyncRun.objects.filter(source=source)
            kept = [every.aggregate(last=Max("pk"))["last"], every.filter(state=RunState.DONE).aggregate(last=Max("pk"))["last"]]
            gone += old.exclude(pk__in=[pk for pk in kept if pk]).delete()[0]
    return gone
