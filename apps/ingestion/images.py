"""Pictures of a document on their way into the file store and beside its passages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.core.files.base import ContentFile
from django.utils import timezone

from apps.common import storage
from apps.ingestion.illustrating import Known
from apps.ingestion.plugins.pictures import FORMATS, SMALLEST_SIDE
from apps.ingestion.plugins.protocol import ExtractedImage, ParsedDocument
from apps.knowledge.models import SCHEME, Chunk, Document, DocumentImage
from apps.knowledge.services import picture_passages, tell_pictures

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


def keys_of(document: Document) -> list[str]:
    """Keys of pictures of a document that are files of their own."""
    paths = DocumentImage.objects.filter(document=document).values_list("storage_path", flat=True)
    return [path for path in paths if path != document.storage_path]


def replace_images(document: Document, parsed: ParsedDocument, stored: StoredImages, known: Mapping[str, Known]) -> int:
    """Rows for the pictures of a document whose passages were just replaced, their mention in those passages, and the passages of what is
    known of them already. How many pictures.

    Call it in the transaction that replaced the passages (which took the old rows with them).
    """
    chunks = list(Chunk.objects.filter(document=document, chunk_type=Chunk.Type.TEXT).order_by("start_at", "pk"))
    if not chunks:
        return 0
    starts = [chunk.start_at for chunk in chunks]
    rows: list[DocumentImage] = []
    for (_image, key), image in zip(stored.found, parsed.images, strict=True):
        chunk = chunks[max(0, bisect_right(starts, image.at) - 1)]
        rows.append(_row(document, chunk, image, key, len(rows), known[image.sha256]))
    if (own := _own(document, parsed)) is not None:
        row = _row(document, chunks[0], own, document.storage_path, len(rows), known[own.sha256])
        row.ocr_text = "" if SCHEME in parsed.text else parsed.text
        row.read_at = timezone.now()
        rows.append(row)
    if not rows:
        return 0
    DocumentImage.objects.bulk_create(rows, batch_size=200)
    tell_pictures(document, rows)
    picture_passages(document)
    return len(rows)


def _own(document: Document, parsed: ParsedDocument) -> ExtractedImage | None:
    """A picture that was uploaded as such is its own picture; its text is what OCR read of it."""
    if document.media_type not in FORMATS.values() or not document.storage_path or not document.content_sha256:
        return None
    width, height = (int(parsed.details.get(name) or 0) for name in ("width", "height"))
    if min(width, height) < SMALLEST_SIDE:
        return None
    return ExtractedImage(document.file_name, document.media_type, b"", 0, sha256=document.content_sha256, width=width, height=height)


def _row(document: Document, chunk: Chunk, image: ExtractedImage, key: str, number: int, known: Known) -> DocumentImage:
    return DocumentImage(
        uid=known.uid,
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
        ocr_text=known.ocr_text,
        read_at=known.read_at,
    )
