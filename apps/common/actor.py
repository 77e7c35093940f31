"""Who is acting, in which space, with which rights: one frozen value that everything below the door takes first."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

from apps.common.errors import Forbidden

ActorKind = Literal["anonymous", "user", "key", "system", "moderator"]
SpaceKind = Literal["", "personal", "organization"]


class Role(IntEnum):
    """Rights inside a space. VIEWER is a read-only grant of API keys; people are members or admins."""

    VIEWER = 10
    MEMBER = 20
    ADMIN = 30


#: What the contract calls these roles (contract 1.9): owner/admin -> admin, contributor -> member.
ROLE_NAMES = {Role.VIEWER: "viewer", Role.MEMBER: "contributor", Role.ADMIN: "admin"}


@dataclass(frozen=True, slots=True)
class Actor:
    """`capabilities` None means everything the role may; `kb_uids` None means every base of the space."""

    kind: ActorKind
    user_id: uuid.UUID | None = None
    space_id: int | None = None
    space_kind: SpaceKind = ""
    role: Role | None = None
    capabilities: frozenset[str] | None = None
    kb_uids: frozenset[uuid.UUID] | None = None
    key_id: int | None = None
    language: str = ""
    reason: str = ""
    from_session: bool = False  # a browser session: CSRF is due
    is_moderator: bool = False

    @staticmethod
    def anonymous() -> Actor:
        return Actor(kind="anonymous")

    @staticmethod
    def system(space_id: int, reason: str) -> Actor:
        """The portal acting for a space (workers, sweeps); `reason` goes to logs and activity."""
        return Actor(kind="system", space_id=space_id, role=Role.ADMIN, reason=reason)

    @property
    def space(self) -> int:
        """The id of the space the actor is in. Raises: Forbidden when they are in none; an action that needs a space was checked before."""
        if self.space_id is None:
            raise Forbidden(code="space_required")
        return self.space_id

    @property
    def person(self) -> uuid.UUID:
        """The id of the account the actor is. Raises: Forbidden for keys and the portal itself."""
        if self.user_id is None:
            raise Forbidden(code="people_only")
        return self.user_id

    @property
    def signed_in(self) -> bool:
        return self.kind != "anonymous"

    @property
    def who(self) -> str:
        """Stable name for activity, throttling and logs."""
        if self.kind == "user":
            return f"user:{self.user_id}"
        if self.kind == "key":
            return f"key:{self.key_id}"
        return self.kind

    def in_space(self, space_id: int, space_kind: SpaceKind, role: Role) -> Actor:
        return replace(self, space_id=space_id, space_kind=space_kind, role=role)
