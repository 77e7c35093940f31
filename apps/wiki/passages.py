"""The passages a page is found by: kept in step with its text in the same transaction, so that a saved page is found at once."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db.models import F
from django.utils import timezone

from apps.common.events import publish
from apps.ingestion.selectors import passages_cut
from apps.ingestion.services import embed_start
from apps.knowledge.events import DocumentsRefiled
from apps.knowledge.models import Chunk, Document, ParseStatus, passage_hash
from apps.wiki import markup
from apps.wiki.models import WikiPage

TITLE = 1024
ROWS_AT_ONCE = 500


def found_text(page: WikiPage) -> str:
    """What is searched of a page: its summary, where that is not the beginning of its text, and its text as it reads."""
    body, summary = markup.plain(page.content).strip(), markup.plain(page.summary).strip()
    return "\n\n".join(part for part in (summary if not body.startswith(summary) else "", body) if part) or page.title


def _rows(page: WikiPage, names: list[str]) -> list[Chunk]:
    text = found_text(page)
    made = []
    for place, piece in enumerate(passages_cut(text, page.kb.chunking_config)):
        made.append(
            Chunk(
                space_id=page.space_id,
                kb_id=page.kb_id,
                document_id=page.document_id,
                chunk_index=place,
                chunk_type=Chunk.Type.WIKI,
                content=piece.content,
                content_hash=passage_hash(piece.content),
                prefix=piece.prefix,
                heading_path=list(piece.heading_path),
                start_at=piece.start,
                end_at=piece.end,
                metadata={"wiki": {"names": names}} if place == 0 else {"wiki": {}},
            )
        )
    return made


_COLUMNS = ("content", "content_hash", "prefix", "heading_path", "start_at", "end_at", "metadata")


def passages_write(page: WikiPage, names: list[str], *, created: bool = False) -> None:
    """The passages of a page, as its text and names have them now; those that say the same keep their ids. In the caller's transaction."""
    fresh = _rows(page, names)
    have = [] if created else list(Chunk.objects.filter(document_id=page.document_id).order_by("chunk_index", "pk"))
    changed = []
    for old, new in zip(have, fresh, strict=False):
        if any(getattr(old, name) != getattr(new, name) for name in (*_COLUMNS, "chunk_index")):
            if old.content != new.content:
                old.content_revision += 1
            for name in (*_COLUMNS, "chunk_index"):
                setattr(old, name, getattr(new, name))
            changed.append(old)
    if changed:
        Chunk.objects.bulk_update(changed, [*_COLUMNS, "chunk_index", "content_revision"], batch_size=ROWS_AT_ONCE)
    if len(have) > len(fresh):
        Chunk.objects.filter(pk__in=[chunk.pk for chunk in have[len(fresh) :]]).delete()
    Chunk.objects.bulk_create(fresh[len(have) :], batch_size=ROWS_AT_ONCE)
    Document.objects.filter(pk=page.document_id).update(
        title=page.title[:TITLE],
        enabled=page.status == WikiPage.Status.PUBLISHED,
        file_hash=hashlib.sha256(f"{page.title}\n{page.content}".encode("utf-8", "surrogatepass")).hexdigest(),
        chunk_count=len(fresh),
        vector_count=0,
        index_rev=F("index_rev") + 1,
        updated_at=timezone.now(),
    )
    publish(DocumentsRefiled(space_id=page.space_id, document_ids=(page.document_id,)))
    if page.status == WikiPage.Status.PUBLISHED:
        page.document.refresh_from_db()
        embed_start(page.document, {"trigger": "wiki"})


def document_of(page: WikiPage, creator_id: Any) -> Document:
    """The row a new page is kept as; its passages are written by `passages_write`."""
    return Document.objects.create(  # type: ignore[no-any-return]
        space_id=page.space_id,
        kb_id=page.kb_id,
        type=Document.Type.PAGE,
        title=page.title[:TITLE],
        channel="wiki",
        parse_status=ParseStatus.COMPLETED,
        enabled=page.status == WikiPage.Status.PUBLISHED,
        creator_id=creator_id,
        processed_at=timezone.now(),
    )
