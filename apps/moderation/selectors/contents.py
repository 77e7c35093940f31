"""Which spaces' contents a moderator may read now, and the contents themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils import timezone

from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import Chunk, Document
from apps.moderation.models import ContentGrant
from apps.spaces.models import Membership

PER_PAGE = 30


@dataclass(frozen=True, slots=True)
class Readable:
    """Spaces whose contents the moderator may see: those they are in, and those they gave a reason for, with the grant."""

    own: frozenset[int] = frozenset()
    granted: dict[int, ContentGrant] = field(default_factory=dict)

    def __contains__(self, space_id: object) -> bool:
        return space_id in self.own or space_id in self.granted


def readable_spaces(*, actor: Actor) -> Readable:
    """See Readable; two queries."""
    authorize(actor, "content.open")
    own = frozenset(Membership.objects.filter(user_id=actor.person).values_list("space_id", flat=True))
    live = ContentGrant.objects.filter(moderator_id=actor.person, expires_at__gt=timezone.now()).order_by("pk")
    return Readable(own, {grant.space_id: grant for grant in live})


def grants_of(*, actor: Actor, space_id: int) -> list[ContentGrant]:
    """Who gave a reason to read this space, newest first."""
    authorize(actor, "content.open")
    return list(ContentGrant.objects.filter(space_id=space_id).select_related("moderator").order_by("-pk")[:20])


def passages_of(*, actor: Actor, document: Document, page: int) -> tuple[list[Chunk], int]:
    """(one page of a document's passages in reading order, how many pages)."""
    authorize(actor, "content.open")
    rows = Chunk.objects.filter(document=document).exclude(chunk_type=Chunk.Type.PARENT).order_by("chunk_index", "pk")
    pages = max(1, -(-rows.count() // PER_PAGE))
    page = max(1, min(page, pages))
    return list(rows[(page - 1) * PER_PAGE : page * PER_PAGE]), pages
