"""How long what was deleted can be brought back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F

from apps.knowledge.models import ParseStatus


def purge_time(now: datetime, *, keep: bool = True) -> datetime | None:
    """When something deleted now may be removed for good; None: at once, because nothing is kept here."""
    return now + timedelta(days=settings.TRASH_DAYS) if keep and settings.TRASH_DAYS > 0 else None


def tombstone(now: datetime, purge_at: datetime | None) -> dict[str, Any]:
    """What deleting writes into a document: invisible now, and with `purge_at` all it takes to be what it was."""
    return {
        "deleted_at": now,
        "purge_at": purge_at,
        "trashed_status": F("parse_status"),
        "parse_status": ParseStatus.DELETING,
        "index_rev": F("index_rev") + 1,
        "updated_at": now,
    }
