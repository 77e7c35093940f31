"""The search engine of this deployment, made once per process."""

from __future__ import annotations

import logging
import threading

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.common.errors import Unavailable
from apps.retrieval.plugins import sqlite_engine  # noqa: F401 - registers itself
from apps.retrieval.plugins.protocol import IndexMissing, IndexOutdated, SearchBackend, backends

log = logging.getLogger(__name__)

_lock = threading.Lock()
_engine: SearchBackend | None = None


def bare_engine() -> SearchBackend:
    """The configured engine whatever state its store is in (for `rebuild_index`)."""
    return backends.get(settings.SEARCH_BACKEND)({"path": str(settings.DATA_DIR / "index" / "search.sqlite3")})


def engine() -> SearchBackend:
    """The configured engine, ready. Raises: Unavailable when its store is of another version and must be built again first."""
    global _engine
    with _lock:
        if _engine is None:
            made = bare_engine()
            try:
                made.ensure()
            except IndexMissing:
                raise
            except IndexOutdated as error:
                log.error("the search index is of another version: run `manage.py rebuild_index`")
                raise Unavailable(_("The search index is being renewed. Try again in a few minutes."), code="index_outdated") from error
            _engine = made
        return _engine


def index_is_current() -> bool:
    """Whether the store can be used as it is; an empty one is made when there is none."""
    made = bare_engine()
    try:
        made.ensure()
    except IndexOutdated:
        return False
    return True


def forget_engine() -> None:
    """Drop this process's engine (tests, after a rebuild by another version)."""
    global _engine
    with _lock:
        _engine = None
