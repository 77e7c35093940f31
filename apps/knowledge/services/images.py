"""Changing what is said about pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.events import publish
from apps.common.policy import authorize
from apps.knowledge.events import ChunksChanged
from apps.knowledge.models import Chunk, Document, DocumentImage
from apps.knowledge.picturing import picture_passages, tell_pictures
from apps.knowledge.services.chunks import reindex_passage


@dataclass(frozen=True, slots=True)
class Learned:
    """What was found out about a picture; None leaves what is known. `attrs` are joined with those observed before."""

    image: DocumentImage
    ocr_text: str | None = None
    caption: str | None = None
    attrs: dict[str, Any] | None = None


MAX_BYTES = 200_000
_TEXTS = ("caption", "ocr_text")


def image_info_update(*, actor: Actor, chunk: Chunk, image_info: str) -> Chunk:
    """The passage with another `image_info` (contract knowledge 4.19, 7.1); the gallery shows its captions, texts and attributes.

    Raises: InvalidInput when it is not a JSON list of objects, or names a picture this passage did not have.
    """
    authorize(actor, "image.update", chunk)
    entries = _entries(image_info)
    with transaction.atomic():
        locked = Chunk.objects.select_related("kb", "document").select_for_update(of=("self",)).get(pk=chunk.pk)
        before = _entries(locked.image_info)
        known = {str(entry.get(name)) for entry in before for name in ("url", "original_url") if entry.get(name)}
        for number, entry in enumerate(entries):
            if str(entry["url"]) not in known:
                raise InvalidInput(
                    _("image_info: entry %(number)d names an image that this passage does not have.") % {"number": number},
                    field="image_info",
                )
        locked.image_info = json.dumps(entries, ensure_ascii=False) if entries else ""
        locked.save(update_fields=["image_info", "updated_at"])
        rows = {row.url: row for row in DocumentImage.objects.filter(chunk=locked)}
        for entry in entries:
            if (row := rows.get(str(entry["url"]))) is not None:
                _describe(row, entry)
        if picture_passages(locked.document):
            reindex_passage(locked)
        audit(
            actor,
            "image.updated",
            base=locked.kb.uid,
            target_type="chunk",
            target_id=str(locked.uid),
            document=str(locked.document.uid),
            changes={"image_info": {"before": before, "after": entries}},
            images=len(entries),
        )
    return locked


def pictures_learned(*, actor: Actor, document: Document, learned: Sequence[Learned]) -> int:
    """Keep what was found out about pictures of a document; the passages beside them say it, it is found, and the index follows.

    Pictures that are gone by now (the document was parsed again) are passed over; how many were told.
    """
    authorize(actor, "image.update", document)
    now = timezone.now()
    with transaction.atomic():
        Document.objects.select_for_update(of=("self",)).get(pk=document.pk)
        there = {row.pk: row for row in DocumentImage.objects.filter(document=document, pk__in=[each.image.pk for each in learned])}
        for each in learned:
            if (row := there.get(each.image.pk)) is not None:
                _learn(row, each, now)
        DocumentImage.objects.bulk_update(there.values(), ["ocr_text", "caption", "attrs", "read_at", "described_at", "updated_at"])
        tell_pictures(document, there.values())
        if picture_passages(document):
            Document.objects.filter(pk=document.pk).update(index_rev=F("index_rev") + 1)
            publish(ChunksChanged(space_id=document.space_id, document_id=document.pk, chunk_ids=()))
    return len(there)


def _learn(row: DocumentImage, each: Learned, now: datetime) -> None:
    if each.ocr_text is not None:
        row.ocr_text, row.read_at = each.ocr_text, now
    if each.caption is not None:
        row.caption, row.described_at = each.caption or row.caption, now
    if each.attrs is not None:
        row.attrs = {**(row.attrs or {}), **each.attrs}
    row.updated_at = now


def _entries(raw: str) -> list[dict[str, Any]]:
    if len(raw.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidInput(_("image_info: more than 200,000 bytes."), field="image_info")
    try:
        loaded = json.loads(raw) if raw.strip() else []
    except (ValueError, RecursionError):
        raise InvalidInput(_("image_info: not JSON text."), field="image_info") from None
    if not isinstance(loaded, list) or not all(isinstance(entry, dict) and isinstance(entry.get("url"), str) for entry in loaded):
        raise InvalidInput(_("image_info: send a list of objects, each with its url."), field="image_info")
    for entry in loaded:
        if any(not isinstance(entry.get(name, ""), str) for name in _TEXTS):
            raise InvalidInput(_("image_info: caption and ocr_text are texts."), field="image_info")
    return loaded


def _describe(row: DocumentImage, entry: dict[str, Any]) -> None:
    values: dict[str, Any] = {name: entry[name] for name in _TEXTS if name in entry}
    observed = entry.get("attrs")
    if isinstance(observed, dict) and isinstance(observed.get("attrs"), dict):
        values["attrs"] = observed["attrs"]
    now = timezone.now()
    if values.get("caption", row.caption) != row.caption:
        values["described_at"] = now
    DocumentImage.objects.filter(pk=row.pk).update(**values, updated_at=now)
