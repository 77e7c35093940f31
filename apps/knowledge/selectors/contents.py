"""Reading tags and passages."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import Forbidden, NotFound
from apps.common.policy import authorize
from apps.knowledge.models import Chunk, ChunkRevision, Document, DocumentTag, KnowledgeBase, Tag
from apps.knowledge.selectors.ids import as_uuid


def tag_list(*, actor: Actor, base: KnowledgeBase, keyword: str = "") -> Any:
    """Tags of a base with how many live documents carry each (`knowledge_count`), as a queryset in the contract's order."""
    authorize(actor, "tag.read", base)
    rows = Tag.objects.visible_to(actor).filter(kb=base).select_related("kb")
    if keyword:
        rows = rows.filter(name__icontains=keyword)
    # Links less those of tombstones, which are few: no look at the row of every tagged document.
    gone = Document.objects.filter(kb=base, deleted_at__isnull=False).values("pk")
    links = DocumentTag.objects.filter(tag=OuterRef("pk")).exclude(document__in=gone).order_by()
    used = links.values("tag").annotate(count=Count("pk")).values("count")
    return rows.annotate(knowledge_count=Coalesce(Subquery(used), 0)).order_by("sort_order", "-created_at", "-pk")


def tag_get(*, actor: Actor, base: KnowledgeBase, tag_id: Any) -> Tag:
    """The tag of this base by its id or its number. Raises: NotFound."""
    rows = Tag.objects.visible_to(actor).filter(kb=base).select_related("kb")
    raw = str(tag_id)
    if raw.isascii() and raw.isdigit():
        found = rows.filter(pk=int(raw)).first() if len(raw) < 20 and int(raw) < 2**63 else None  # int() refuses thousands of digits
    else:
        uid = as_uuid(raw)
        found = rows.filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("Tag not found."))
    return found  # type: ignore[no-any-return]


def chunk_list(*, actor: Actor, document: Document, types: list[str] | None = None) -> Any:
    """Passages of a document in reading order, disabled ones included, as a queryset."""
    authorize(actor, "chunk.read", document)
    rows = Chunk.objects.visible_to(actor).filter(document=document, chunk_type__in=types or [Chunk.Type.TEXT])
    return rows.select_related("kb", "document", "parent").order_by("chunk_index", "pk")


def chunk_get(*, actor: Actor, chunk_id: Any, document: Document | None = None) -> Chunk:
    """The passage of this id. Raises: NotFound; Forbidden when it is visible but not of `document` (contract knowledge 7.2)."""
    uid = as_uuid(chunk_id)
    rows = Chunk.objects.visible_to(actor).select_related("kb", "document", "parent")
    found = rows.filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("Passage not found."))
    if document is not None and found.document_id != document.pk:
        raise Forbidden(_("This passage belongs to another document."), code="other_document")
    return found  # type: ignore[no-any-return]


def chunk_neighbours(*, actor: Actor, chunks: list[Chunk]) -> dict[int, tuple[str, str]]:
    """{primary key: (id of the passage before, id of the one after)} for passages of one document, "" at the ends. One query."""
    if not chunks:
        return {}
    wanted = {chunk.chunk_index + step for chunk in chunks for step in (-1, 1)}
    rows = Chunk.objects.visible_to(actor).filter(document_id=chunks[0].document_id, chunk_type=Chunk.Type.TEXT, chunk_index__in=wanted)
    at = {index: str(uid) for index, uid in rows.values_list("chunk_index", "uid")}
    numbered = {chunk.pk: chunk.chunk_index for chunk in chunks if chunk.chunk_type == Chunk.Type.TEXT}
    return {pk: (at.get(index - 1, ""), at.get(index + 1, "")) for pk, index in numbered.items()}


def revision_list(*, actor: Actor, chunk: Chunk) -> Any:
    """Superseded states of a passage, newest first; the current one is the passage itself."""
    authorize(actor, "chunk.read", chunk)
    return (
        ChunkRevision.objects.visible_to(actor)
        .filter(chunk=chunk)
        .select_related("chunk__kb", "chunk__document", "editor")
        .order_by("-revision")
    )
