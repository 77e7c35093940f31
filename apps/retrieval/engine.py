"""The search engine of this deployment, made once per process."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connections
from django.utils.translation import gettext_lazy as _
from psycopg.conninfo import make_conninfo

from apps.common.errors import Unavailable
from apps.retrieval.plugins import postgres_engine, sqlite_engine  # noqa: F401 - they register themselves
from apps.retrieval.plugins.protocol import IndexMissing, IndexOutdated, SearchBackend, backends

log = logging.getLogger(__name__)

_lock = threading.Lock()
_engine: SearchBackend | None = None


def _options(folder: Path, schema: str = postgres_engine.SCHEMA) -> dict[str, str]:
    if settings.SEARCH_BACKEND == "sqlite":
        return {"path": str(folder / "search.sqlite3")}
    database = connections["default"].settings_dict
    named = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    parts = {key: str(database[name]) for key, name in named.items() if database.get(name)}
    options = {key: value for key, value in database.get("OPTIONS", {}).items() if isinstance(value, str)}  # those of libpq
    return {"dsn": make_conninfo(**options, **parts, application_name="kbportal-index"), "schema": schema}


def bare_engine() -> SearchBackend:
    """The configured engine whatever state its store is in (for `rebuild_index`)."""
    return backends.get(settings.SEARCH_BACKEND)(_options(settings.DATA_DIR / "index"))


@contextmanager
def scratch_engine(folder: Path) -> Iterator[SearchBackend]:
    """An engine of the configured kind over an empty store of its own, gone after the block; `folder` is a temporary one."""
    made = backends.get(settings.SEARCH_BACKEND)(_options(folder, schema=f"kb_scratch_{secrets.token_hex(6)}"))
    made.ensure()
    try:
        yield made
    finally:
        if isinstance(made, postgres_engine.PostgresBackend):
            made.drop()


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
