"""Scheduled figures."""

from __future__ import annotations

from celery import shared_task

from apps.common.actor import Actor
from apps.moderation.services import storage_measure


@shared_task(name="apps.moderation.tasks.measure_storage")
def measure_storage() -> int:
    """Measure the store for the admin's storage page; how many files there are. Twice changes nothing but the time."""
    return storage_measure(actor=Actor(kind="system", reason="storage figures")).files
