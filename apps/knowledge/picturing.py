"""Pictures of a document when it is copied, and when a passage they stand beside goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from apps.knowledge.models import SCHEME, Chunk, Document, DocumentImage

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
