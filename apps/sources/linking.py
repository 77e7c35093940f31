"""What a connector is handed: credentials opened for the moment, settings, and the client it reaches the outside with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from apps.common import crypto
from apps.sources.models import DataSource
from apps.sources.plugins.protocol import Link
from apps.sources.web import Web

CHECK_BUDGET_S = 45.0  # somebody is waiting for the answer


def sealed(credentials: Mapping[str, str]) -> str:
    """Credentials as they are stored; "" for none."""
    return crypto.encrypt(json.dumps(dict(credentials), ensure_ascii=False)) if credentials else ""


def credentials_of(source: DataSource) -> dict[str, str]:
    """Raises: Unavailable (secret_unreadable) when the portal's keys have changed."""
    return dict(json.loads(crypto.decrypt(source.sealed))) if source.sealed else {}


@contextmanager
def link_to(source: DataSource, *, check: Callable[[], None] | None = None) -> Iterator[Link]:
    """The link of a source for the length of the block; `check` is called before and during requests and raises to end them.

    Without one somebody waits: then everything together has 45 seconds.
    """
    credentials = credentials_of(source)
    with _web(credentials, check) as web:
        yield Link(credentials, source.settings, tuple(source.resource_ids), web)


@contextmanager
def link_with(credentials: Mapping[str, str], settings: Mapping[str, Any]) -> Iterator[Link]:
    """A link for trying values that are not stored (yet)."""
    with _web(credentials, None) as web:
        yield Link(dict(credentials), dict(settings), (), web)


def _web(credentials: Mapping[str, str], check: Callable[[], None] | None) -> Web:
    if check is None:
        return Web(secrets=credentials.values(), budget_s=CHECK_BUDGET_S, timeout_s=20.0)
    return Web(secrets=credentials.values(), check=check)
