"""Beside bases and lists: what was opened last, what there is to filter by, which files there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db.models import Count, F

from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import BaseVisit, Document, DocumentImage, DocumentVersion, KnowledgeBase, ParseStatus


@dataclass(frozen=True, slots=True)
class Facets:
    """What the live documents of a base can be told apart by: {state: count}, {type: count}."""

    statuses: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)


def bases_visited(*, actor: Actor, limit: int = 5) -> list[KnowledgeBase]:
    """The bases a person opened last, latest first, without counts, in one query; none for keys or outside a space."""
    if actor.user_id is None or actor.space_id is None or actor.role is None:
        return []
    authorize(actor, "base.list")
    rows = BaseVisit.objects.visible_to(actor).filter(user_id=actor.user_id, kb__deleted_at__isnull=True).select_related("kb")
    return [row.kb for row in rows.order_by("-visited_at", "-pk")[:limit]]


def document_facets(*, actor: Actor, base: KnowledgeBase) -> Facets:
    """States and types of a base's documents with how many there are of each, in one query. A page or a manual text is its own type."""
    authorize(actor, "document.read", base)
    rows = Document.objects.visible_to(actor).listed().filter(kb=base).exclude(parse_status=ParseStatus.DELETING)
    facets = Facets()
    for status, kind, extension, count in rows.order_by().values_list("parse_status", "type", "file_type").annotate(count=Count("pk")):
        name = kind if kind in (Document.Type.MANUAL, Document.Type.URL) else extension
        facets.statuses[status] = facets.statuses.get(status, 0) + count
        if name:
            facets.types[name] = facets.types.get(name, 0) + count
    return facets


def stored_files() -> Iterator[tuple[str, int, int, bool]]:
    """(key in the store, space, base, is an original) of every file a row names, tombstones included; call it unscoped."""
    rows = Document.objects.order_by("pk").values_list("space_id", "kb_id", "storage_path", "parsed_path")
    for space_id, kb_id, original, parsed in rows.iterator(chunk_size=2000):
        if original:
            yield original, space_id, kb_id, True
        if parsed:
            yield parsed, space_id, kb_id, False
    earlier = DocumentVersion.objects.order_by("pk").values_list("space_id", "document__kb_id", "storage_path", "parsed_path")
    for space_id, kb_id, original, parsed in earlier.iterator(chunk_size=2000):
        yield original, space_id, kb_id, True
        if parsed:
            yield parsed, space_id, kb_id, False
    pictures = DocumentImage.objects.exclude(storage_path=F("document__storage_path")).order_by("pk")
    for space_id, kb_id, key in pictures.values_list("space_id", "kb_id", "storage_path").iterator(chunk_size=2000):
        yield key, space_id, kb_id, False
