"""Celery entry points of this context."""

from __future__ import annotations

from celery import shared_task

from apps.chat.services.upkeep import events_trim, quotations_forget, turns_settle


@shared_task(name="apps.chat.tasks.upkeep")
def upkeep() -> int:
    """Settle answers whose writer is gone, drop streams nobody continues any more and quotations of what is gone; how many rows changed."""
    return turns_settle() + events_trim() + quotations_forget()
