"""Scheduled upkeep of the index and of the retrieval log."""

from __future__ import annotations

import logging

from celery import shared_task
from django.conf import settings

from apps.common.scope import space_scope
from apps.retrieval.journal import forget_texts, trim
from apps.retrieval.services import reconcile_index
from apps.spaces.models import Space

log = logging.getLogger(__name__)


@shared_task(name="apps.retrieval.tasks.reconcile_all")
def reconcile_all() -> int:
    """Repair every space's index; how many documents were out of step. Twice changes nothing."""
    repaired = 0
    for space_id in Space.objects.filter(deleted_at__isnull=True).values_list("pk", flat=True):
        with space_scope(space_id, "reconcile"):
            repaired += reconcile_index(space_id).total
    return repaired


@shared_task(name="apps.retrieval.tasks.trim_log")
def trim_log() -> int:
    """Delete rows of the retrieval log past their keeping, and the questions of spaces that are gone; how many rows were deleted."""
    forget_texts(list(Space.objects.filter(deleted_at__isnull=False).values_list("pk", flat=True)))
    return trim(settings.RETRIEVAL_LOG_DAYS)
