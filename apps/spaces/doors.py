"""What ActorMiddleware asks: whose key is this, and may this actor enter that space. The only readers that run before a scope is open."""

from __future__ import annotations

import hashlib
import uuid
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor, Role
from apps.common.errors import Forbidden, InvalidInput, Unauthenticated
from apps.common.scope import unscoped
from apps.spaces.models import ApiKey, Invitation, Membership, Space

ROLES = {Membership.Role.ADMIN: Role.ADMIN, Membership.Role.MEMBER: Role.MEMBER}
LAST_USED_STEP = timedelta(minutes=1)


def token_hash(token: str) -> str:
    """What is stored of API keys and invitation tokens."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def actor_of_key(key: str) -> Actor:
    """The actor an API key stands for, already inside its space.

    Raises: Unauthenticated(invalid_key) when it is unknown, revoked or expired; (invalid_workspace) when its space is gone.
    """
    now = timezone.now()
    with unscoped("an API key is looked up before its space is known"):
        row = ApiKey.objects.select_related("space", "created_by").filter(token_hash=token_hash(key)).first()
        if row is None or not row.is_live(now) or (row.created_by is not None and not row.created_by.is_active):
            raise Unauthenticated(_("This API key is not valid."), code="invalid_key")
        if row.space.deleted_at is not None:
            raise Unauthenticated(_("The space of this API key is gone."), code="invalid_workspace")
        if row.last_used_at is None or row.last_used_at < now - LAST_USED_STEP:
            ApiKey.objects.filter(pk=row.pk).update(last_used_at=now)
    return Actor(
        kind="key",
        key_id=row.pk,
        space_id=row.space_id,
        space_kind=row.space.kind,  # type: ignore[arg-type]
        role=Role.ADMIN,
        capabilities=None if row.full_access else frozenset(row.capabilities),
        kb_uids=frozenset(uuid.UUID(uid) for uid in row.kb_uids) if row.kb_uids and not row.full_access else None,
    )


def enter_space(actor: Actor, space_id: int) -> tuple[Actor, Space]:
    """The actor with its role in that space, and the space.

    Raises: Forbidden (foreign_tenant, key_other_tenant). The contract answers 400 for a space that does not exist and 403 for a foreign
    one; both answer 403 here, so that nobody can learn which ids exist.
    """
    if actor.kind == "key":
        if actor.space_id != space_id:
            raise Forbidden(_("This API key belongs to another space."), code="key_other_tenant")
        return actor, Space.objects.get(pk=space_id)
    membership = _memberships(actor).filter(space_id=space_id).first()
    if membership is None:
        raise Forbidden(_("You are not a member of this space."), code="foreign_tenant")
    return _entered(actor, membership)


def personal_space_of(actor: Actor) -> tuple[Actor, Space]:
    """The actor in their own space. Raises: Forbidden(personal_only) for a key of an organization."""
    if actor.kind == "key":
        if actor.space_kind != Space.Kind.PERSONAL:
            raise Forbidden(_("This API key belongs to an organization; use its /v1/tenants/ address."), code="personal_only")
        return actor, Space.objects.get(pk=actor.space_id)  # type: ignore[misc]
    membership = _memberships(actor).filter(space__kind=Space.Kind.PERSONAL).first()
    if membership is None:
        raise InvalidInput(code="space_required")
    return _entered(actor, membership)


def find_default_space(actor: Actor, claimed: int, user: Any) -> tuple[Actor, Space | None]:
    """Where an actor is when nothing says otherwise: the token's tenant, the last one used, the personal space, the first joined."""
    if actor.kind == "key":
        return actor, Space.objects.get(pk=actor.space_id)  # type: ignore[misc]
    found = {m.space_id: m for m in _memberships(actor).order_by("joined_at")}
    if claimed and claimed not in found:
        raise Forbidden(_("You are no longer a member of this space."), code="not_a_member")
    for space_id in (claimed, user.last_space_id):
        if space_id in found:
            return _entered(actor, found[space_id])
    own = [m for m in found.values() if m.space.kind == Space.Kind.PERSONAL]
    chosen = next(iter(own or found.values()), None)
    return _entered(actor, chosen) if chosen else (actor, None)


def invitation_of_token(token: str) -> Invitation | None:
    """The invitation a token names, whatever became of it; its space comes along."""
    with unscoped("an invitation is looked up before its space is known"):
        return Invitation.objects.select_related("space", "invited_by").filter(token_hash=token_hash(token)).first()


def invitations_to(email: str) -> list[Invitation]:
    """Open invitations sent to an address, of every live space; newest first."""
    with unscoped("a person's invitations come from spaces they are not in yet"):
        rows = Invitation.objects.select_related("space", "invited_by").filter(
            email=email, is_link=False, status=Invitation.Status.PENDING, expires_at__gt=timezone.now(), space__deleted_at__isnull=True
        )
        return list(rows.order_by("-pk"))


def _memberships(actor: Actor) -> Any:
    return Membership.objects.select_related("space").filter(user_id=actor.user_id, space__deleted_at__isnull=True)  # type: ignore[misc]


def _entered(actor: Actor, membership: Membership) -> tuple[Actor, Space]:
    space = membership.space
    return actor.in_space(space.pk, space.kind, ROLES[Membership.Role(membership.role)]), space  # type: ignore[arg-type]
