"""Reading the versions of a document."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from apps.common import storage
from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.policy import authorize
from apps.knowledge.downloads import Original
from apps.knowledge.models import Document, DocumentVersion


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version of a document's file. `is_current`: the one the document has now. `replaced_at`: when the next one came."""

    number: int
    is_current: bool
    file_name: str
    file_type: str
    file_size: int
    file_hash: str
    replaced_at: datetime | None
    creator: Any


def version_list(*, actor: Actor, document: Document) -> list[VersionRow]:
    """Versions of a document, newest first; one that never got a second file has one."""
    authorize(actor, "document.read", document)
    rows = DocumentVersion.objects.filter(document=document).select_related("creator").order_by("-number")
    now = VersionRow(
        document.version, True, document.file_name, document.file_type, document.file_size, document.file_hash, None,
        document.version_creator or document.creator,
    )  # fmt: skip
    earlier = [VersionRow(r.number, False, r.file_name, r.file_type, r.file_size, r.file_hash, r.created_at, r.creator) for r in rows]
    if earlier and earlier[-1].creator is None:
        last = earlier.pop()
        earlier.append(VersionRow(*(getattr(last, name) for name in VersionRow.__slots__[:-1]), document.creator))  # type: ignore[attr-defined]
    return [now, *earlier]


def version_get(*, actor: Actor, document: Document, number: int) -> DocumentVersion:
    """An earlier version. Raises: NotFound for one that never was, and for the current one."""
    authorize(actor, "document.read", document)
    found = DocumentVersion.objects.filter(document=document, number=number).first()
    if found is None:
        raise NotFound(_("There is no such earlier version."))
    return found  # type: ignore[no-any-return]


def version_original(*, actor: Actor, document: Document, version: DocumentVersion) -> Original:
    """The file of an earlier version. Raises: NotFound when the store lost it."""
    authorize(actor, "document.download", document)
    try:
        source = storage.read(version.storage_path)
    except FileNotFoundError:
        raise NotFound(_("The file of this version is missing from the file store."), code="no_original") from None
    size_bytes = source.seek(0, os.SEEK_END)
    source.seek(0)
    return Original(version.file_name, version.media_type, "", size_bytes, source)
