"""From a database URL to Django's settings for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


def sqlite(path: Path) -> dict[str, Any]:
    """The embedded shape's database file."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",  # writers queue at BEGIN instead of failing when a read turns into a write
            "timeout": 30,
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=30000;"
                "PRAGMA cache_size=-16384; PRAGMA mmap_size=134217728; PRAGMA temp_store=MEMORY;"
            ),
        },
    }


def postgres(url: str, *, pooled: int = 0) -> dict[str, Any]:
    """`postgres://user:password@host:5432/name?sslmode=require`; what follows `?` goes to libpq as it is.

    `pooled`: connections one process may hold. Without a pool each thread has its own, and under ASGI every request is a new thread:
    120 requests left 42 connections behind.

    Raises: ValueError saying what is wrong with the URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ValueError("the URL must start with postgres://")
    if not parts.path.strip("/"):
        raise ValueError("the URL must end with the name of a database: postgres://user:password@host:5432/name")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": {**dict(parse_qsl(parts.query)), **({"pool": {"min_size": 1, "max_size": pooled}} if pooled else {})},
        "CONN_HEALTH_CHECKS": True,
    }
