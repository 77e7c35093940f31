"""What this context does about the news of lower ones."""

from __future__ import annotations

from django.utils import timezone, translation
from django.utils.translation import gettext as _

from apps.accounts.events import UserDeactivated, UserRegistered
from apps.common.events import listen
from apps.common.scope import unscoped
from apps.spaces.models import ApiKey, Membership, Space


@listen(UserRegistered)
def make_personal_space(event: UserRegistered) -> None:
    """Every account has a space of its own from its first moment (contract platform 1.5)."""
    with translation.override(event.language or "en"):  # clients of the contract know the English form
        name = _("%(name)s's Workspace") % {"name": event.username}
    space = Space.objects.create(name=name, kind=Space.Kind.PERSONAL, owner_id=event.user_id)
    Membership.objects.create(space=space, user_id=event.user_id, role=Membership.Role.ADMIN)


@listen(UserDeactivated)
def end_keys(event: UserDeactivated) -> None:
    """SECURITY: whoever made a key may have kept a copy of it."""
    with unscoped("keys of a closed account, in whatever space"):
        ApiKey.objects.filter(created_by_id=event.user_id, revoked_at__isnull=True).update(revoked_at=timezone.now())
