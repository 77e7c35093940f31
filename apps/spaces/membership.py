"""Rules that every way into a space shares: what a role's name means, who may grant it, and the row that lets a person in."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, Forbidden, InvalidInput, NotFound
from apps.spaces.models import Invitation, Membership, Space

#: names of the contract (platform 1.8) and our own -> what a membership stores
ROLE_WORDS = {
    "owner": Membership.Role.ADMIN,
    "admin": Membership.Role.ADMIN,
    "contributor": Membership.Role.MEMBER,
    "member": Membership.Role.MEMBER,
    "viewer": Membership.Role.MEMBER,
}


def role_of_word(word: str) -> Membership.Role:
    """What a role's name stands for. Raises: InvalidInput listing the known names."""
    try:
        return ROLE_WORDS[word.strip().lower()]
    except KeyError:
        known = ", ".join(ROLE_WORDS)
        raise InvalidInput(_("Choose a role: %(known)s.") % {"known": known}, code="bad_role", field="role", api_code=1000) from None


def grantable(actor: Actor, role: str) -> Membership.Role:
    """The role a word stands for. Raises: InvalidInput; Forbidden when a key would hand out more than it is."""
    wanted = role_of_word(role)
    if actor.kind == "key" and wanted == Membership.Role.ADMIN:
        raise Forbidden(_("An API key cannot make somebody an admin."), code="key_grants_admin")
    return wanted


def join(actor: Actor, space: Space, user: User, role: str) -> Membership:
    """The row that lets a person in; open invitations to them end with it. Raises: Conflict(already_member)."""
    hold(space)
    inviter = actor.user_id if actor.user_id != user.pk else None
    try:
        with transaction.atomic():
            membership = Membership.objects.create(space=space, user=user, role=role, invited_by_id=inviter)
    except IntegrityError:
        raise Conflict(_("This person is a member already."), code="already_member", space_id=space.pk) from None
    Invitation.objects.filter(space=space, email=user.email, is_link=False, status=Invitation.Status.PENDING).update(
        status=Invitation.Status.ACCEPTED, responded_at=timezone.now(), accepted_count=1
    )
    audit(actor, "rbac.member_added", target_type="user", target_id=str(user.pk), space_id=space.pk, role=role)
    return membership


def hold(space: Space) -> None:
    """Wait for other changes to who is in this space (SQLite: the transaction holds the write lock already)."""
    if not Space.objects.select_for_update().filter(pk=space.pk, deleted_at__isnull=True).exists():
        raise NotFound(_("Not found."))
