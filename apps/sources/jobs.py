"""The kind of background work of this context."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.common.errors import Conflict
from apps.common.jobs.registry import JobKind, job_kinds
from apps.sources.endings import run_ended
from apps.sources.engine.run import work_sync
from apps.sources.models import DataSource, SyncRun
from apps.sources.services.syncing import SYNC, sync_start, sync_stop

CONCURRENCY = 2  # sources waited for at a time by one worker; they are waited for more than worked on


def _ended(run: Any) -> None:
    with transaction.atomic():
        run_ended(run)


def _again(actor: Any, run: Any) -> None:
    """A new run does it; the failed row stays in the history as it is."""
    source = DataSource.objects.select_related("kb").filter(pk=run.source_id, deleted_at__isnull=True, kb__deleted_at__isnull=True).first()
    if source is None:
        raise Conflict(_("The data source was deleted; there is nothing to try again."), code="deleted")
    sync_start(actor=actor, source=source, mode=run.mode)


def _stop(actor: Any, run: Any) -> None:
    sync_stop(actor=actor, source=run.source)


# A killed worker costs nothing of what was taken over, so a run is taken up often; a source that is away is asked for about an hour.
job_kinds.add(SYNC, JobKind(SYNC, SyncRun, "sync", work_sync, lambda: CONCURRENCY, _ended, max_takeovers=20, retry=_again, cancel=_stop))
