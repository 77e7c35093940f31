"""Reads about spaces, members, invitations and keys."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.accounts.selectors import user_get
from apps.common.actor import Actor
from apps.common.errors import Gone, NotFound
from apps.common.events import publish
from apps.common.policy import authorize
from apps.common.scope import space_scope
from apps.spaces.doors import find_default_space, invitation_of_token, invitations_to
from apps.spaces.events import BasesAsked, StorageAsked
from apps.spaces.models import ApiKey, Invitation, Membership, Space

STORAGE_QUOTA_BYTES = 10 * 1024**3  # what the contract names as default; the portal's own limit is the disk


def space_get(*, actor: Actor) -> Space:
    """The space the actor is in. Raises: NotFound."""
    space = space_find(actor=actor)
    if space is None:
        raise NotFound(_("Not found."))
    return space


def space_find(*, actor: Actor) -> Space | None:
    """The space the actor is in, None when they are in none."""
    return Space.objects.filter(pk=actor.space_id, deleted_at__isnull=True).first() if actor.space_id else None


def default_space(*, user: Any) -> Space | None:
    """Where a person finds themselves when nothing says otherwise: the last space used, their own, the first they joined."""
    return find_default_space(Actor(kind="user", user_id=user.pk), 0, user)[1]


def home_id(*, actor: Actor) -> int | None:
    """The id of the actor's personal space."""
    own = Space.objects.filter(owner_id=actor.user_id, kind=Space.Kind.PERSONAL, deleted_at__isnull=True)
    return own.values_list("pk", flat=True).first() if actor.user_id else None


def membership_list(*, actor: Actor) -> list[Membership]:
    """The actor's own memberships with their spaces, the personal space first, then by name; empty for keys."""
    if actor.user_id is None:
        return []
    rows = Membership.objects.select_related("space").filter(user_id=actor.user_id, space__deleted_at__isnull=True)
    first = Case(When(space__kind=Space.Kind.PERSONAL, then=Value(0)), default=Value(1), output_field=IntegerField())
    return list(rows.annotate(order=first).order_by("order", "space__name", "pk"))


def member_list(*, actor: Actor, search: str = "") -> QuerySet[Membership]:
    """Members of the actor's space with their accounts, admins first, then by name."""
    authorize(actor, "member.list")
    rows = Membership.objects.select_related("user", "space").filter(space_id=actor.space)
    if search:
        rows = rows.filter(Q(user__username__icontains=search) | Q(user__email__icontains=search))
    first = Case(When(role=Membership.Role.ADMIN, then=Value(0)), default=Value(1), output_field=IntegerField())
    return rows.annotate(order=first).order_by("order", "user__username", "pk")


def key_counts(*, actor: Actor) -> dict[Any, int]:
    """{user id: live keys of this space they made}: what removing them would end."""
    authorize(actor, "key.list")
    counts: dict[Any, int] = {}
    for key in key_list(actor=actor):
        counts[key.created_by_id] = counts.get(key.created_by_id, 0) + 1
    return counts


def invitation_list(*, actor: Actor, include_terminal: bool = False) -> QuerySet[Invitation]:
    """Invitations of the actor's space, newest first; only open ones unless `include_terminal`."""
    authorize(actor, "invitation.list")
    rows: Any = Invitation.objects.visible_to(actor).select_related("space", "invited_by")
    if not include_terminal:
        rows = rows.filter(status=Invitation.Status.PENDING, expires_at__gt=timezone.now())
    return rows.order_by("-pk")


def invitation_get(*, actor: Actor, invitation_id: int) -> Invitation:
    """One invitation of the actor's space. Raises: NotFound."""
    row = Invitation.objects.visible_to(actor).select_related("space", "invited_by").filter(pk=invitation_id).first()
    if row is None:
        raise NotFound(_("Not found."))
    return row


def my_invitations(*, actor: Actor) -> list[Invitation]:
    """Open invitations to the actor's own address, newest first.

    SECURITY: an address that was never confirmed proves nothing, so an account younger than the invitation needs the mailed address of it.
    """
    authorize(actor, "invitation.mine")
    user = user_get(actor=actor)
    rows = invitations_to(user.email)
    if user.emailaddress_set.filter(email=user.email, verified=True).exists():  # type: ignore[attr-defined]
        return rows
    return [row for row in rows if row.created_at >= user.created_at]


def my_invitation_get(*, actor: Actor, invitation_id: int) -> Invitation:
    """One of them. Raises: NotFound."""
    for row in my_invitations(actor=actor):
        if row.pk == invitation_id:
            return row
    raise NotFound(_("Not found."))


def invitation_lookup(*, token: str) -> Invitation:
    """The open invitation a token names, for whoever holds it. Raises: Gone when it is unknown, answered, withdrawn or expired."""
    row = invitation_of_token(token)
    if row is None or row.space.deleted_at is not None or not row.is_open(timezone.now()):
        raise Gone(_("This invitation has expired or was withdrawn. Ask for a new one."), code="invitation_gone")
    return row


def key_list(*, actor: Actor) -> QuerySet[ApiKey]:
    """Keys of the actor's space that were not revoked, newest first; expired ones stay to be seen."""
    authorize(actor, "key.list")
    rows: Any = ApiKey.objects.visible_to(actor).select_related("created_by").filter(revoked_at__isnull=True)
    return rows.order_by("-pk")


def key_get(*, actor: Actor, key_id: int) -> ApiKey:
    """One of them. Raises: NotFound."""
    row = key_list(actor=actor).filter(pk=key_id).first()
    if row is None:
        raise NotFound(_("Not found."))
    return row


def base_names(*, actor: Actor) -> dict[uuid.UUID, str]:
    """{uid: name} of the knowledge bases in the actor's space, as their context tells."""
    question = BasesAsked(actor)
    publish(question)
    return question.found


def storage_used(*, space_id: int) -> int:
    """Bytes the space's contents take. Units: bytes."""
    question = StorageAsked(space_id)
    with space_scope(space_id, "how much a space holds"):
        publish(question)
    return question.used_bytes


def role_word(membership: Membership) -> str:
    """The contract's name of a membership's role: who made the space is its owner."""
    if membership.role == Membership.Role.ADMIN:
        return "owner" if membership.space.owner_id == membership.user_id else "admin"
    return "contributor"


def user_id_of(raw: str) -> uuid.UUID | None:
    """A person's public id, None when it is none."""
    try:
        return uuid.UUID(raw)
    except ValueError:
        return None
