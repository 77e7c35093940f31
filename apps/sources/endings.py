"""What the end of a run means for its source."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.jobs.models import LIVE, RunState
from apps.sources.models import DataSource, SyncRun

COUNTED = ("created", "updated", "renamed", "deleted", "held", "skipped", "failed")


def source_ok(source: DataSource, run: SyncRun, *, cursor: Any, selection: str) -> None:
    """Remember where the source stands now; a run that found nothing new writes nothing here. In the transaction that ends the run."""
    row = DataSource.objects.get(pk=source.pk)
    before = {"cursor": row.cursor, "selection": row.selection, "status": row.status, "error_code": row.error_code,
              "error_message": row.error_message}  # fmt: skip
    if cursor is not None:
        row.cursor = cursor
    row.selection = selection
    if row.status == DataSource.Status.ERROR:
        row.status = DataSource.Status.ACTIVE
    row.error_code = row.error_message = ""
    changed = [name for name, value in before.items() if getattr(row, name) != value]
    if changed:
        row.save(update_fields=[*changed, "updated_at"])
    if run.outcome != "success" or any(getattr(run, name) for name in COUNTED):
        _record(source, run, "source.sync_completed", "partial" if run.outcome == "partial" else "success")


def run_ended(run: Any) -> None:
    """A run that failed says so at its source; one that was stopped changes nothing there. In the transaction that ended it."""
    SyncRun.objects.filter(pk=run.pk).update(checkpoint=None, seen=None)
    source = DataSource.objects.select_related("kb").filter(pk=run.source_id).first()
    if source is None:
        return
    if run.state != RunState.FAILED:
        _record(source, run, "source.sync_canceled", "canceled")
        return
    values: dict[str, Any] = {"error_code": run.reason, "error_message": run.error[:2000]}
    if source.status != DataSource.Status.PAUSED:
        values["status"] = DataSource.Status.ERROR
    if any(getattr(source, name) != value for name, value in values.items()):
        DataSource.objects.filter(pk=source.pk, deleted_at__isnull=True).update(**values)
    _record(source, run, "source.sync_failed", "failed")


def runs_cancel(source_pk: int, *, why: str) -> None:
    """End every run of a source at once, with the reason: whoever works on one finds that it is not theirs any more."""
    SyncRun.objects.filter(source_id=source_pk, state__in=LIVE).update(
        state=RunState.CANCELLED, reason="deleted", error=why, finished_at=timezone.now(), claim_token=None, lease_until=None,
        cancel_requested=True, checkpoint=None, seen=None,
    )  # fmt: skip


def _record(source: DataSource, run: SyncRun, action: str, outcome: str) -> None:
    actor = Actor.system(source.space_id, f"sync of data source {source.uid}")
    counts = {name: getattr(run, name) for name in COUNTED if getattr(run, name)}
    audit(
        actor, action, source, outcome=outcome, target_type="datasource", title=source.name, run_id=str(run.uid), reason=run.reason or None,
        trigger=run.trigger, **counts,
    )  # fmt: skip
