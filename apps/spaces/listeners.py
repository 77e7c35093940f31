"""What this context does about the news of lower ones."""

from __future__ import annotations

from django.utils import translation
from django.utils.translation import gettext as _

from apps.accounts.events import UserRegistered
from apps.common.events import listen
from apps.spaces.models import Membership, Space


@listen(UserRegistered)
def make_personal_space(event: UserRegistered) -> None:
    """Every account has a space of its own from its first moment (contract platform 1.5)."""
    with translation.override(event.language or "en"):  # clients of the contract know the English form
        name = _("%(name)s's Workspace") % {"name": event.username}
    space = Space.objects.create(name=name, kind=Space.Kind.PERSONAL, owner_id=event.user_id)
    Membership.objects.create(space=space, user_id=event.user_id, role=Membership.Role.ADMIN)
