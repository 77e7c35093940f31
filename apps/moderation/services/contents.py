"""Reading contents of a space one is not in: a reason first, for an hour, and the space's activity says who, why and what."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import authorize
from apps.common.text import clean_line
from apps.moderation.models import ContentGrant
from apps.spaces.models import Space

GRANT_LASTS = timedelta(hours=1)
REASON_MIN, REASON_MAX = 10, 500


@transaction.atomic
def content_grant_open(*, actor: Actor, space: Space, reason: str, base: uuid.UUID | None = None) -> ContentGrant:
    """Let the actor read contents of `space` for an hour. Raises: InvalidInput for a reason that says nothing or too much."""
    authorize(actor, "content.open", space)
    reason = clean_line(reason)
    if len(reason) < REASON_MIN:
        raise InvalidInput(_("Say why in at least 10 characters; people of the space will read it."), field="reason")
    if len(reason) > REASON_MAX:
        raise InvalidInput(_("Use at most 500 characters."), field="reason")
    grant = ContentGrant.objects.create(space=space, moderator_id=actor.person, reason=reason, expires_at=timezone.now() + GRANT_LASTS)
    audit(
        actor,
        "moderator.access_granted",
        space,
        target_type="space",
        target_id=str(space.pk),
        base=base,
        space_id=space.pk,
        reason=reason,
        until=grant.expires_at.isoformat(),
    )
    return grant


def content_opened(
    *, actor: Actor, space_id: int, what: str, target_id: str, grant: ContentGrant, base: uuid.UUID | None = None, **details: Any
) -> None:
    """Write to the space's activity that contents were read under a grant."""
    authorize(actor, "content.open")
    audit(
        actor,
        "moderator.opened",
        target_type=what,
        target_id=target_id,
        base=base,
        space_id=space_id,
        reason=grant.reason,
        **details,
    )
