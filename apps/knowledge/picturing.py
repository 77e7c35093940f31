"""Pictures of a document: the passages that say what is known of them; what becomes of both when a document is copied or passages go."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from apps.knowledge.models import SCHEME, Chunk, Document, DocumentImage, passage_hash
from apps.knowledge.rules.pictures import REFERENCE

ROWS_AT_ONCE = 500
OWN = frozenset("id uid kb document chunk storage_path created_at updated_at".split())
_NAMES = ("url", "original_url")


def picture_keys(document: Document) -> list[str]:
    """Keys of a document's pictures that are files of their own (an uploaded picture is its document's original), by number."""
    rows = DocumentImage.objects.filter(document=document).exclude(storage_path=document.storage_path)
    return list(rows.order_by("number", "pk").values_list("storage_path", flat=True))


def copied_pictures(
    copies: dict[int, Document], key_of: Callable[[DocumentImage], str], handle_of: Callable[[UUID], UUID]
) -> list[tuple[DocumentImage, DocumentImage]]:
    """(picture, its copy without a passage) for source documents, {primary key: copy}; a picture without a key is left out."""
    names = [field.attname for field in DocumentImage._meta.concrete_fields if field.name not in OWN]
    pairs = []
    for row in DocumentImage.objects.filter(document_id__in=copies).order_by("pk"):
        if key := key_of(row):
            copy = copies[row.document_id]
            values = {name: getattr(row, name) for name in names}
            pairs.append((row, DocumentImage(**values, uid=handle_of(row.uid), kb_id=copy.kb_id, document=copy, storage_path=key)))
    return pairs


def renamed_mentions(image_info: str, urls: dict[str, str]) -> str:
    """What a copied passage says of its pictures, under their own handles; pictures that were not copied are not mentioned."""
    entries = []
    known = set(urls.values())
    for entry in mentions(image_info):
        own = {name: urls.get(entry[name], entry[name]) for name in _NAMES if isinstance(entry.get(name), str)}
        if not any(url.startswith(SCHEME) and url not in known for url in own.values()):
            entries.append(entry | own)
    return json.dumps(entries, ensure_ascii=False) if entries else ""


def renamed_references(text: str, urls: dict[str, str]) -> str:
    """A copied text with the pictures' own handles; of pictures that were not copied their words stay."""
    if SCHEME not in text:
        return text
    return REFERENCE.sub(lambda found: f"![{found[1]}]({urls[found[2]]})" if found[2] in urls else found[1], text)


def mentions(image_info: str) -> list[dict[str, Any]]:
    """The entries of a passage's `image_info`; none of a text that is no list of objects."""
    try:
        loaded = json.loads(image_info) if image_info else []
    except ValueError:
        return []
    return [entry for entry in loaded if isinstance(entry, dict)] if isinstance(loaded, list) else []


def hand_over(document: Document, going: Iterable[int]) -> list[str]:
    """Put pictures of passages that are about to be deleted beside the nearest passage that stays.

    The keys of those that find none: nothing shows them any more. Call it in the transaction that deletes the passages.
    """
    ids = set(going)
    ids |= set(Chunk.objects.filter(parent_id__in=ids).values_list("pk", flat=True))  # they go with their parents
    rows = list(DocumentImage.objects.filter(chunk_id__in=ids).select_related("chunk").order_by("number", "pk"))
    if not rows:
        return []
    staying = list(Chunk.objects.filter(document=document, chunk_type=Chunk.Type.TEXT).exclude(pk__in=ids).order_by("start_at", "pk"))
    if not staying:
        return [row.storage_path for row in rows if row.storage_path != document.storage_path]
    for row in rows:
        said = next((entry for entry in mentions(row.chunk.image_info) if row.url in (entry.get("url"), entry.get("original_url"))), None)
        row.chunk = next((chunk for chunk in reversed(staying) if chunk.start_at <= row.at), staying[0])
        if said is not None:
            row.chunk.image_info = json.dumps([*mentions(row.chunk.image_info), said], ensure_ascii=False)
    DocumentImage.objects.bulk_update(rows, ["chunk"], batch_size=ROWS_AT_ONCE)
    Chunk.objects.bulk_update({row.chunk for row in rows}, ["image_info"], batch_size=ROWS_AT_ONCE)
    return []


#: Passages of pictures: what each kind says of a picture.
SAID = ((Chunk.Type.IMAGE_OCR, "ocr_text"), (Chunk.Type.IMAGE_CAPTION, "caption"))


def entry_of(image: DocumentImage) -> dict[str, Any]:
    """What a passage says of a picture beside it (contract knowledge 7.1)."""
    entry: dict[str, Any] = {
        "url": image.url,
        "original_url": image.url,
        "start_pos": image.at,
        "end_pos": image.at,
        "caption": image.caption,
        "ocr_text": image.ocr_text,
        "sha256": image.sha256,
    }
    if image.attrs is not None:
        entry["attrs"] = {"schema": 1, "source": "model", "attrs": image.attrs}
    return entry


def tell_pictures(document: Document, images: Iterable[DocumentImage]) -> None:
    """Have the passages beside these pictures say what is known of them now; other pictures they mention stay."""
    told: dict[int, dict[str, dict[str, Any]]] = {}
    for image in images:
        told.setdefault(image.chunk_id, {})[image.url] = entry_of(image)
    chunks = list(Chunk.objects.filter(document=document, pk__in=told))
    for chunk in chunks:
        new = told[chunk.pk]
        kept = [new.pop(str(entry.get("url")), entry) for entry in mentions(chunk.image_info)]
        chunk.image_info = json.dumps([*kept, *new.values()], ensure_ascii=False)
    Chunk.objects.bulk_update(chunks, ["image_info"], batch_size=ROWS_AT_ONCE)


def picture_passages(document: Document) -> bool:
    """Make the passages `image_ocr` and `image_caption` of a document what is known of its pictures; whether anything changed.

    They stand beside the passage their picture stands in, under its number, and are switched off with it. One that says the same keeps its
    row. `chunk_count` follows. Call it in the transaction that changed what is known, or which passages there are.
    """
    images = DocumentImage.objects.filter(document=document).select_related("chunk").order_by("number", "pk")
    there = {
        (_subject(row), row.chunk_type): row for row in Chunk.objects.filter(document=document, chunk_type__in=[kind for kind, _ in SAID])
    }
    made, changed = [], []
    for image in images:
        for kind, name in SAID:
            text = _said(document, image, kind, str(getattr(image, name)).strip())
            if not text:
                continue
            row = there.pop((image.url, kind), None)
            wanted = _picture_passage(document, image, kind, text)
            if row is None:
                made.append(wanted)
            elif any(getattr(row, each) != getattr(wanted, each) for each in _COMPARED):
                for each in _COMPARED:
                    setattr(row, each, getattr(wanted, each))
                changed.append(row)
    Chunk.objects.filter(pk__in=[row.pk for row in there.values()]).delete()
    Chunk.objects.bulk_create(made, batch_size=ROWS_AT_ONCE)
    Chunk.objects.bulk_update(changed, _COMPARED, batch_size=ROWS_AT_ONCE)
    if not (made or changed or there):
        return False
    count = Chunk.objects.filter(document=document).exclude(chunk_type=Chunk.Type.PARENT).count()
    Document.objects.filter(pk=document.pk).update(chunk_count=count)
    document.chunk_count = count
    return True


_COMPARED = (
    "content",
    "content_hash",
    "chunk_index",
    "parent_id",
    "kb_id",
    "is_enabled",
    "image_info",
    "start_at",
    "end_at",
    "heading_path",
)


def _subject(row: Chunk) -> str:
    return next((str(entry.get("url")) for entry in mentions(row.image_info)), "")


def _said(document: Document, image: DocumentImage, kind: str, text: str) -> str:
    """What a passage of this kind says; "" where the document's own text says it already."""
    if kind == Chunk.Type.IMAGE_OCR and image.storage_path == document.storage_path:
        return ""  # an uploaded picture: its text is the text of the document
    if kind == Chunk.Type.IMAGE_CAPTION and image.described_at is None:
        return ""  # an alternative text, which stands in the passage
    return text


def _picture_passage(document: Document, image: DocumentImage, kind: str, text: str) -> Chunk:
    beside = image.chunk
    return Chunk(
        space_id=document.space_id,
        kb_id=image.kb_id,
        document=document,
        chunk_index=beside.chunk_index,
        chunk_type=kind,
        content=text,
        content_hash=passage_hash(text),
        heading_path=beside.heading_path,
        start_at=image.at,
        end_at=image.at,
        positions=[image.position] if image.position else beside.positions[:1],
        parent_id=beside.pk,
        is_enabled=beside.is_enabled,
        image_info=json.dumps([entry_of(image)], ensure_ascii=False),
    )
