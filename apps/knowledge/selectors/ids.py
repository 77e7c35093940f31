"""Outside ids."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any


def as_uuid(raw: Any) -> uuid.UUID | None:
    """The id a client sent, or None when it cannot be one (and so names nothing)."""
    if isinstance(raw, uuid.UUID):
        return raw
    try:
        return uuid.UUID(str(raw)) if len(str(raw)) <= 36 else None
    except ValueError:
        return None


def clean_ids(raw: Iterable[Any]) -> list[str]:
    """Ids trimmed, blanks and duplicates dropped, in the order given."""
    return list(dict.fromkeys(text for item in raw if (text := str(item).strip())))
