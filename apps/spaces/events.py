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
    """Which knowledge bases of their space the actor can see, by name; a listener puts them into `found`."""

    actor: Actor
    found: dict[uuid.UUID, str] = field(default_factory=dict)
