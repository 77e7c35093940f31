"""Making, renaming and deleting spaces."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.accounts.services import preferences_update
from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, Forbidden, InvalidInput, RateLimited
from apps.common.events import publish
from apps.common.policy import authorize
from apps.common.scope import space_scope
from apps.common.text import clean_line
from apps.spaces.doors import enter_space
from apps.spaces.events import SpaceDeleted
from apps.spaces.models import ApiKey, Membership, Space

NAME_MAX, DESCRIPTION_MAX, OWNED_MAX = 128, 512, 10


@transaction.atomic
def space_create(*, actor: Actor, name: str, description: str = "") -> Space:
    """A new organization with the actor as its admin.

    Raises: InvalidInput for a name that is empty or too long; RateLimited when the actor made as many as one person may.
    """
    authorize(actor, "space.create")
    name, description = _checked(name, description)
    Membership.objects.select_for_update().filter(user_id=actor.person).order_by("pk").first()  # one at a time per person
    owned = Space.objects.filter(owner_id=actor.person, kind=Space.Kind.ORGANIZATION, deleted_at__isnull=True).count()
    if owned >= OWNED_MAX:
        raise RateLimited(
            _("You have made %(count)d organizations, the most one person may. Delete one first.") % {"count": owned}, code="space_quota"
        )
    space = Space.objects.create(name=name, description=description, kind=Space.Kind.ORGANIZATION, owner_id=actor.person)
    Membership.objects.create(space=space, user_id=actor.person, role=Membership.Role.ADMIN)
    with space_scope(space.pk):
        audit(actor, "space.created", space, space_id=space.pk)
    return space


@transaction.atomic
def space_update(*, actor: Actor, space: Space, name: str | None = None, description: str | None = None) -> Space:
    """Rename or describe a space; what is None stays. Raises: InvalidInput."""
    authorize(actor, "space.update", space)
    space.name, space.description = _checked(
        space.name if name is None else name, space.description if description is None else description
    )
    space.save(update_fields=["name", "description", "updated_at"])
    audit(actor, "space.updated", space)
    return space


@transaction.atomic
def space_delete(*, actor: Actor, space: Space, typed_name: str | None = None) -> None:
    """The organization is gone for everyone at once: pages, tokens, keys. Its contents are cleared by who holds them.

    `typed_name`: what a person typed to confirm, None where the door asks for no confirmation.
    Raises: InvalidInput when it is not the space's name; Conflict when somebody was faster.
    """
    authorize(actor, "space.delete", space)
    if typed_name is not None and clean_line(typed_name) != space.name:
        raise InvalidInput(_("Type the name of the organization exactly to delete it."), field="typed_name")
    now = timezone.now()
    if not Space.objects.filter(pk=space.pk, deleted_at__isnull=True).update(deleted_at=now, updated_at=now):
        raise Conflict(_("This space is deleted already."), code="space_deleted")
    ApiKey.objects.filter(space=space, revoked_at__isnull=True).update(revoked_at=now)
    audit(actor, "space.deleted", space)
    publish(SpaceDeleted(space_id=space.pk))


def space_switch(*, actor: Actor, space_id: int) -> tuple[Actor, Space]:
    """The actor inside another of their spaces, remembered for next time. Raises: Forbidden for a space that is not theirs."""
    authorize(actor, "auth.switch-space")
    try:
        entered, space = enter_space(actor, space_id)
    except Forbidden as error:
        raise Forbidden(_("You are not a member of this space."), code="switch_refused") from error
    preferences_update(actor=entered, last_space_id=space.pk)
    return entered, space


def _checked(name: str, description: str) -> tuple[str, str]:
    name, description = clean_line(name), description.strip()
    if not name:
        raise InvalidInput(_("Give it a name."), code="name_required", field="name", api_code=2003)
    if len(name) > NAME_MAX:
        raise InvalidInput(_("Use at most 128 characters for the name."), field="name")
    if len(description) > DESCRIPTION_MAX:
        raise InvalidInput(_("Use at most 512 characters for the description."), field="description")
    return name, description
