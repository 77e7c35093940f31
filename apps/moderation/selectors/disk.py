"""How much room the parts of the portal take, and how much is left. Units: bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from apps.common import storage
from apps.common.errors import DomainError, TransientError
from apps.retrieval.selectors import index_stats


@dataclass(frozen=True, slots=True)
class Disk:
    """`line`: "refuse", "warn" or "" by the two lines of the settings."""

    free_bytes: int
    warn_bytes: int
    refuse_bytes: int
    line: str


def disk() -> Disk:
    """The disk of the data folder."""
    free, warn, refuse = storage.free_bytes(), settings.DISK_WARN_BYTES, settings.DISK_REFUSE_BYTES
    return Disk(free, warn, refuse, "refuse" if free < refuse else "warn" if free < warn else "")


def database_bytes() -> int:
    """The database: its files for SQLite, what the server says for PostgreSQL."""
    if connection.vendor == "sqlite":
        file = Path(str(connection.settings_dict["NAME"]))
        return sum(path.stat().st_size for path in (file, Path(f"{file}-wal")) if path.exists())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def index_bytes() -> int:
    """The search index; 0 while it cannot be opened."""
    try:
        return index_stats().size_bytes
    except (DomainError, TransientError):
        return 0
