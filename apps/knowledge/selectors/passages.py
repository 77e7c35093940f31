"""Reading the passages of one document the way its reader shows them: in order, filtered, by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.db.models import Count, Q

from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import Chunk, Document

#: What can be found; parents are only shown around their parts.
SHOWN = (Chunk.Type.TEXT, Chunk.Type.IMAGE_OCR, Chunk.Type.IMAGE_CAPTION, Chunk.Type.FAQ, Chunk.Type.WIKI)
State = Literal["", "on", "off", "edited", "unindexed"]


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """Where a passage stands: [start, end) of the parsed text, and its number (`Chunk.chunk_index`)."""

    index: int
    start: int
    end: int
    uid: UUID


def passage_list(*, actor: Actor, document: Document, keyword: str = "", state: State = "") -> Any:
    """Passages of a document in reading order as a queryset; `keyword`: those whose text has it; `state`: on, off, edited, not indexed."""
    authorize(actor, "chunk.read", document)
    rows = Chunk.objects.visible_to(actor).filter(document=document, chunk_type__in=SHOWN)
    if keyword:
        rows = rows.filter(content__icontains=keyword)
    if state in ("on", "off"):
        rows = rows.filter(is_enabled=state == "on")
    elif state == "edited":
        rows = rows.filter(content_revision__gt=0)
    elif state == "unindexed":
        rows = rows.exclude(index_status=Chunk.IndexStatus.READY)
    return rows.select_related("kb", "document", "last_editor").order_by("chunk_index", "pk")


def passage_rank(*, actor: Actor, chunk: Chunk, keyword: str = "", state: State = "") -> int | None:
    """How many passages of that list stand before this one; None when it is not in the list."""
    rows = passage_list(actor=actor, document=chunk.document, keyword=keyword, state=state)
    if not rows.filter(pk=chunk.pk).exists():
        return None
    before = rows.filter(chunk_index__lt=chunk.chunk_index).count()
    return int(before + rows.filter(chunk_index=chunk.chunk_index, pk__lt=chunk.pk).count())


def passage_spans(*, actor: Actor, document: Document, start: int, end: int) -> list[PassageSpan]:
    """The text passages that touch [start, end), in order. One query."""
    authorize(actor, "chunk.read", document)
    rows = Chunk.objects.visible_to(actor).filter(document=document, chunk_type=Chunk.Type.TEXT, start_at__lt=end, end_at__gt=start)
    values = rows.order_by("chunk_index", "pk").values_list("chunk_index", "start_at", "end_at", "uid")
    return [PassageSpan(*row) for row in values]


def passage_at(*, actor: Actor, document: Document, offset: int) -> Chunk | None:
    """The first text passage that holds this character of the parsed text."""
    authorize(actor, "chunk.read", document)
    rows = Chunk.objects.visible_to(actor).filter(document=document, chunk_type=Chunk.Type.TEXT, start_at__lte=offset, end_at__gt=offset)
    return rows.select_related("kb", "document").order_by("chunk_index", "pk").first()  # type: ignore[no-any-return]


def passage_numbered(*, actor: Actor, document: Document, index: int) -> Chunk | None:
    """The text passage of this number."""
    authorize(actor, "chunk.read", document)
    rows = Chunk.objects.visible_to(actor).filter(document=document, chunk_type=Chunk.Type.TEXT, chunk_index=index)
    return rows.select_related("kb", "document").order_by("pk").first()  # type: ignore[no-any-return]


def passage_counts(*, actor: Actor, document: Document) -> dict[str, int]:
    """{all, off, edited, unindexed}: how many passages there are of each kind. One query."""
    authorize(actor, "chunk.read", document)
    rows = Chunk.objects.visible_to(actor).filter(document=document, chunk_type__in=SHOWN)
    return rows.aggregate(  # type: ignore[no-any-return]
        all=Count("pk"),
        off=Count("pk", filter=Q(is_enabled=False)),
        edited=Count("pk", filter=Q(content_revision__gt=0)),
        unindexed=Count("pk", filter=~Q(index_status=Chunk.IndexStatus.READY)),
    )
