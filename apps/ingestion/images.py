"""Pictures of a document on their way into the file store and beside its passages."""

from __future__ import annotations

import json
import uuid
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.files.base import ContentFile

from apps.common import storage
from apps.ingestion.plugins.pictures import FORMATS, SMALLEST_SIDE
from apps.ingestion.plugins.protocol import ExtractedImage, ParsedDocument
from apps.knowledge.models import Chunk, Document, DocumentImage

CAPTION_CHARS = 2000
_SUFFIX = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp"}


@dataclass(slots=True)
class StoredImages:
    """What one pass put into the store, not yet named by any row: (picture, key) in the order of the document."""

    found: list[tuple[ExtractedImage, str]] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return [key for _, key in self.found]


def store_images(document: Document, parsed: ParsedDocument, run_id: int) -> StoredImages:
    """Write the pictures of a parse; each pass has keys of its own, so a lost hold never removes what a good one named.

    Raises: StoreUnavailable, and then nothing of this call stays.
    """
    folder = f"{document.space_id}/{document.kb.uid}/{document.uid}/images/{run_id}"
    stored = StoredImages()
    try:
        for image in parsed.images:
            key = f"{folder}/{image.sha256[:32]}.{_SUFFIX[image.media_type]}"
            storage.remove(key)  # a take-over of the same run: same key, replaced
            stored.found.append((image, key))
            storage.write(key, ContentFile(image.data))
    except BaseException:
        storage.discard(stored.keys)
        raise
    return stored


def handles_of(document: Document) -> dict[str, uuid.UUID]:
    """{content hash: handle} of the pictures a document has now; read it before its passages are replaced."""
    return dict(DocumentImage.objects.filter(document=document).values_list("sha256", "uid"))


def keys_of(document: Document) -> list[str]:
    """Keys of pictures of a document that are files of their own."""
    paths = DocumentImage.objects.filter(document=document).values_list("storage_path", flat=True)
    return [path for path in paths if path != document.storage_path]


def replace_images(document: Document, parsed: ParsedDocument, stored: StoredImages, handles: dict[str, uuid.UUID]) -> int:
    """Rows for the pictures of a document whose passages were just replaced, and their mention in those passages. How many.

    The same bytes keep their handle. Call it in the transaction that replaced the passages (which took the old rows with them).
    """
    chunks = list(Chunk.objects.filter(document=document, chunk_type=Chunk.Type.TEXT).order_by("start_at", "pk"))
    if not chunks:
        return 0
    starts = [chunk.start_at for chunk in chunks]
    rows: list[DocumentImage] = []
    for image, key in stored.found:
        chunk = chunks[max(0, bisect_right(starts, image.at) - 1)]
        rows.append(_row(document, chunk, image, key, len(rows), handles))
    if (own := _own(document, parsed)) is not None:
        rows.append(_row(document, chunks[0], own, document.storage_path, len(rows), handles, ocr_text=parsed.text))
    if not rows:
        return 0
    DocumentImage.objects.bulk_create(rows, batch_size=200)
    _mention(chunks, rows)
    return len(rows)


def _own(document: Document, parsed: ParsedDocument) -> ExtractedImage | None:
    """A picture that was uploaded as such is its own picture; its text is what OCR read of it."""
    if document.media_type not in FORMATS.values() or not document.storage_path or not document.content_sha256:
        return None
    width, height = (int(parsed.details.get(name) or 0) for name in ("width", "height"))
    if min(width, height) < SMALLEST_SIDE:
        return None
    return ExtractedImage(document.file_name, document.media_type, b"", 0, sha256=document.content_sha256, width=width, height=height)


def _row(
    document: Document,
    chunk: Chunk,
    image: ExtractedImage,
    key: str,
    number: int,
    handles: dict[str, uuid.UUID],
    *,
    ocr_text: str = "",
) -> DocumentImage:
    return DocumentImage(
        uid=handles.get(image.sha256) or uuid.uuid4(),
        space_id=document.space_id,
        kb_id=document.kb_id,
        document=document,
        chunk=chunk,
        number=number,
        sha256=image.sha256,
        storage_path=key,
        media_type=image.media_type,
        size_bytes=len(image.data) or document.file_size,
        width=image.width,
        height=image.height,
        position=image.position.as_dict(),
        at=image.at,
        caption=image.alt[:CAPTION_CHARS],
        ocr_text=ocr_text,
    )


def _mention(chunks: Sequence[Chunk], rows: Sequence[DocumentImage]) -> None:
    by_chunk: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_chunk.setdefault(row.chunk_id, []).append(
            {
                "url": row.url,
                "original_url": row.url,
                "start_pos": row.at,
                "end_pos": row.at,
                "caption": row.caption,
                "ocr_text": row.ocr_text,
                "sha256": row.sha256,
            }
        )
    changed = [chunk for chunk in chunks if chunk.pk in by_chunk]
    for chunk in changed:
        chunk.image_info = json.dumps(by_chunk[chunk.pk], ensure_ascii=False)
    Chunk.objects.bulk_update(changed, ["image_info"], batch_size=200)
