"""Documents made as rows, without parsing: for what is about many of them, or about words alone."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from apps.common.scope import unscoped
from apps.knowledge.models import Chunk, Document, DocumentTag, KnowledgeBase, ParseStatus, Tag

AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Filed:
    """A document to be: one passage a text."""

    title: str
    texts: Sequence[str] = ()
    tags: Sequence[Tag] = ()
    folder: str = ""


def make_documents(base: KnowledgeBase, wanted: Iterable[Filed], **values: Any) -> list[Document]:
    """The documents, parsed as it seems and in the order given; they are not indexed."""
    made: list[Document] = []
    with unscoped("test data"):
        batch: list[Filed] = []
        for filed in wanted:
            batch.append(filed)
            if len(batch) == AT_ONCE:
                made += _make(base, batch, values)
                batch = []
        made += _make(base, batch, values)
    return made


def _make(base: KnowledgeBase, batch: Sequence[Filed], values: dict[str, Any]) -> list[Document]:
    own = {"space_id": base.space_id, "kb": base}
    state = {"parse_status": ParseStatus.COMPLETED, "enabled": True, "attempt": 1, "index_rev": 1, **values}
    documents = Document.objects.bulk_create(
        Document(
            **own,
            title=filed.title,
            file_name=filed.title,
            file_type=filed.title.rpartition(".")[2] if "." in filed.title else "md",
            file_hash=uuid.uuid4().hex,
            folder_path=filed.folder,
            chunk_count=len(filed.texts),
            **state,
        )
        for filed in batch
    )
    Chunk.objects.bulk_create(
        Chunk(
            **own,
            document=document,
            chunk_index=at,
            content=text,
            content_hash=hashlib.sha256(text.encode()).hexdigest(),
            start_at=0,
            end_at=len(text),
        )
        for document, filed in zip(documents, batch, strict=True)
        for at, text in enumerate(filed.texts)
    )
    DocumentTag.objects.bulk_create(
        DocumentTag(space_id=base.space_id, document=document, tag=tag)
        for document, filed in zip(documents, batch, strict=True)
        for tag in filed.tags
    )
    return list(documents)
