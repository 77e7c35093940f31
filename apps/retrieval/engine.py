"""The search engine of this deployment, made once per process."""

from __future__ import annotations

import hashlib
import threading

from django.conf import settings

from apps.retrieval.plugins.protocol import SearchBackend

_lock = threading.Lock()
_engine: SearchBackend | None = None


def engine() -> SearchBackend:
    """The configured engine with its store ensured. Raises: IndexOutdated when it must be rebuilt first."""
    global _engine
    with _lock:
        if _engine is None:
            from apps.retrieval.plugins import load

            made = load(settings.SEARCH_BACKEND, {"path": str(settings.DATA_DIR / "index" / "search.sqlite3")})
            made.ensure()
            _engine = made
        return _engine


def forget_engine() -> None:
    """Drop this process's engine (tests, after a fork)."""
    global _engine
    with _lock:
        _engine = None


def folder_key(path: str) -> int:
    """The integer an engine knows a folder path by: 0 is the root, else 63 bits of its hash."""
    if not path:
        return 0
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "big") >> 1
