"""Celery entry points of this context."""

from __future__ import annotations

from celery import shared_task


@shared_task(name="apps.ingestion.tasks.forget_passwords")
def forget_passwords() -> None:
    """Drop sealed file passwords that outlived their run or their time."""
    from apps.ingestion.passwords import forget_stale

    forget_stale()
