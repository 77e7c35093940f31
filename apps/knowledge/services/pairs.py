"""The document that stands for all question pairs of an FAQ base."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import Document, KnowledgeBase, ParseStatus


def pairs_container(*, actor: Actor, base: KnowledgeBase) -> Document:
    """The document that clients know as the home of every entry of an FAQ base (contract content 3); made on the first write."""
    authorize(actor, "document.create", base)
    rows = Document.objects.select_related("kb").filter(kb=base, type=Document.Type.FAQ, deleted_at__isnull=True)
    if (found := rows.first()) is not None:
        return found  # type: ignore[no-any-return]
    try:
        with transaction.atomic():
            return Document.objects.create(  # type: ignore[no-any-return]
                space_id=base.space_id,
                kb=base,
                type=Document.Type.FAQ,
                title=base.name,
                parse_status=ParseStatus.COMPLETED,
                creator_id=actor.user_id,
            )
    except IntegrityError:  # made by another request at this moment
        return rows.get()  # type: ignore[no-any-return]
