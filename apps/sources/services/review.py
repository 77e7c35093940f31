"""Deciding about documents whose source does not have them any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.policy import authorize
from apps.knowledge.services import documents_delete
from apps.sources.models import DataSource, SourceItem

SLICE = 200


@dataclass(frozen=True, slots=True)
class Decided:
    """`stays`: (title, why) of those that could not be deleted."""

    count: int
    stays: list[tuple[str, str]]


def held_delete(*, actor: Actor, source: DataSource, items: Sequence[SourceItem]) -> Decided:
    """Delete the documents of held items; should the source name one again, it comes back as it was while the trash keeps it."""
    authorize(actor, "source.write", source)
    count, stays = 0, []
    for start in range(0, len(items), SLICE):
        part = items[start : start + SLICE]
        try:
            count += _delete(actor, source, part)
        except Conflict:
            for item in part:
                try:
                    count += _delete(actor, source, [item])
                except Conflict as error:
                    stays.append((item.title or item.external_id, str(error)))
    return Decided(count, stays)


def _delete(actor: Actor, source: DataSource, items: Sequence[SourceItem]) -> int:
    with transaction.atomic():
        held = _held(source, items)
        documents = [row.document for row in held if row.document is not None and row.document.deleted_at is None]
        documents = [document for document in documents if document.kb_id == source.kb_id]
        if documents:
            documents_delete(actor=actor, base=source.kb, documents=documents)
        SourceItem.objects.filter(pk__in=[row.pk for row in held]).update(state=SourceItem.State.DELETED)
    return len(held)


def held_keep(*, actor: Actor, source: DataSource, items: Sequence[SourceItem]) -> int:
    """Keep the documents of held items for good; nobody is asked about them again unless they return and vanish once more."""
    authorize(actor, "source.write", source)
    with transaction.atomic():
        held = _held(source, items)
        SourceItem.objects.filter(pk__in=[row.pk for row in held]).update(state=SourceItem.State.KEPT)
        if held:
            titles = [row.title or row.external_id for row in held][:50]
            audit(actor, "source.held_kept", source, target_type="datasource", title=source.name, titles=titles, count=len(held))
    return len(held)


def _held(source: DataSource, items: Sequence[SourceItem]) -> list[SourceItem]:
    rows = SourceItem.objects.filter(source=source, pk__in=[item.pk for item in items], state=SourceItem.State.HELD)
    return list(rows.select_related("document").order_by("pk"))
