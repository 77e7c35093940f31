"""What others may hear about people."""

from __future__ import annotations

import uuid
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UserRegistered:
    """An account was made, whatever the way in; heard in the same transaction."""

    user_id: uuid.UUID
    username: str
    language: str = ""  # the one the person signed up in, when it is known


@dataclass(frozen=True, slots=True)
class UserDeactivated:
    """A moderator closed an account; nothing its person can use may go on working."""

    user_id: uuid.UUID
