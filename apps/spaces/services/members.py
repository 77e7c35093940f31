"""Who belongs to a space. Every change of rights happens while the space's row is held, so that one admin always stays."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.accounts.selectors import user_of_email
from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, Forbidden, NotFound
from apps.common.policy import authorize
from apps.spaces.membership import grantable, hold, join
from apps.spaces.models import ApiKey, Membership, Space


@transaction.atomic
def member_add(*, actor: Actor, space: Space, email: str, role: str) -> Membership:
    """A registered person joins at once.

    Raises: NotFound when nobody has that address; Conflict when they are in already; Forbidden when a key would make an admin.
    """
    authorize(actor, "member.write", space)
    wanted = grantable(actor, role)
    user = user_of_email(email=email)
    if user is None:
        raise NotFound(_("Nobody is registered with this e-mail address. Invite them instead."), code="user_not_registered", field="email")
    return join(actor, space, user, wanted)


@transaction.atomic
def member_role_set(*, actor: Actor, space: Space, user_id: uuid.UUID, role: str) -> Membership:
    """A member's role changes. Raises: NotFound; Conflict(last_admin); Forbidden when a key touches an admin."""
    authorize(actor, "member.write", space)
    wanted = grantable(actor, role)
    hold(space)
    membership = _member(space, user_id)
    if membership.role == wanted:
        return membership
    if membership.role == Membership.Role.ADMIN:
        _admin_may_go(actor, membership)
    membership.role = wanted
    membership.save(update_fields=["role"])
    audit(actor, "rbac.member_role_changed", target_type="user", target_id=str(user_id), space_id=space.pk, role=wanted)
    return membership


@transaction.atomic
def member_remove(*, actor: Actor, space: Space, user_id: uuid.UUID) -> None:
    """A member's access ends with this request, and with it the API keys they made. Raises: NotFound; Conflict(last_admin)."""
    authorize(actor, "member.write", space)
    _leave(actor, space, user_id, "rbac.member_removed")


@transaction.atomic
def member_leave(*, actor: Actor, space: Space) -> None:
    """The actor leaves. Raises: Conflict(last_admin)."""
    authorize(actor, "member.leave", space)
    assert actor.user_id is not None
    _leave(actor, space, actor.user_id, "rbac.member_left")


def _member(space: Space, user_id: uuid.UUID) -> Membership:
    membership = Membership.objects.select_related("user", "space").filter(space=space, user_id=user_id).first()
    if membership is None:
        raise NotFound(_("This person is not a member of the space."), code="member_missing")
    return membership


def _admin_may_go(actor: Actor, membership: Membership) -> None:
    """An admin stops being one. Raises: Conflict when they are the last; Forbidden for keys."""
    if actor.kind == "key":
        raise Forbidden(_("An API key cannot change the rights of an admin."), code="key_changes_admin")
    others = Membership.objects.filter(space_id=membership.space_id, role=Membership.Role.ADMIN, user__is_active=True)
    if not others.exclude(pk=membership.pk).exists():
        raise Conflict(_("A space needs at least one admin. Make somebody else an admin first."), code="last_admin")
    ApiKey.objects.filter(space_id=membership.space_id, created_by_id=membership.user_id, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )  # SECURITY: whoever made a key may have kept a copy of it


def _leave(actor: Actor, space: Space, user_id: uuid.UUID, what: str) -> None:
    hold(space)
    membership = _member(space, user_id)
    if membership.role == Membership.Role.ADMIN:
        _admin_may_go(actor, membership)
    membership.delete()
    audit(actor, what, target_type="user", target_id=str(user_id), space_id=space.pk)
