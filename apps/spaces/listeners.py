"""What this context does about the news of lower ones."""

from __future__ import annotations

from apps.accounts.events import UserRegistered
from apps.common.events import listen
from apps.spaces.models import Membership, Space


@listen(UserRegistered)
def make_personal_space(event: UserRegistered) -> None:
    """Every account has a space of its own from its first moment (contract platform 1.5)."""
    name = f"{event.username}'s Workspace"
    space = Space.objects.create(name=name, kind=Space.Kind.PERSONAL, owner_id=event.user_id)
    Membership.objects.create(space=space, user_id=event.user_id, role=Membership.Role.ADMIN)
