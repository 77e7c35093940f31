"""What others may hear about spaces, and what spaces ask of them: higher contexts fill in the mutable fields."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from apps.common.actor import Actor


@dataclass(frozen=True, slots=True)
class SpaceDeleted:
    """A space is gone for everyone; its contents are to follow."""

    space_id: int


@dataclass(slots=True)
class StorageAsked:
    """How many bytes a space uses; listeners add theirs. Heard inside the space's scope."""

    space_id: int
    used_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BasesAsked:
    """Which of these knowledge bases exist for the actor; listeners add them to `found`."""

    actor: Actor
    uids: frozenset[uuid.UUID]
    found: set[uuid.UUID] = field(default_factory=set)
