"""Celery entry points: sources that are due, history that is too old."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.common.actor import Actor
from apps.common.scope import space_scope, unscoped
from apps.sources.models import DataSource
from apps.sources.services import due_start, log_trim


@shared_task(name="apps.sources.tasks.start_due")
def start_due() -> int:
    """Start a run for every source that is due, in every space; how many."""
    started = 0
    with unscoped("which spaces have sources that are due"):
        due = DataSource.objects.filter(next_run_at__lte=timezone.now(), deleted_at__isnull=True, kb__deleted_at__isnull=True)
        spaces = sorted(set(due.values_list("space_id", flat=True)))
    for space_id in spaces:
        with space_scope(space_id, "sources that are due"):
            started += due_start(actor=Actor.system(space_id, "the schedule of a data source"))
    return started


@shared_task(name="apps.sources.tasks.sources_upkeep")
def sources_upkeep() -> int:
    """Forget runs older than their source keeps them, in every space; how many."""
    gone = 0
    with unscoped("which spaces have sources"):
        spaces = sorted(set(DataSource.objects.values_list("space_id", flat=True)))
    for space_id in spaces:
        with space_scope(space_id, "old runs of sources"):
            gone += log_trim(actor=Actor.system(space_id, "old runs of data sources are forgotten"))
    return gone
