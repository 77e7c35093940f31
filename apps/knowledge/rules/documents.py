"""Rules about documents, their folders and tags that several services share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.common.text import folder_path as normal_folder
from apps.knowledge.models import Document, KnowledgeBase, ParseStatus, Tag
from apps.knowledge.selectors.ids import as_uuid


def clean_folder(raw: str, *, field: str = "folder_path") -> str:
    """The path in its normal form. Raises: InvalidInput on control characters."""
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in raw):
        raise InvalidInput(_("The folder name contains characters that are not allowed. Rename it."), code="illegal_name", field=field)
    return normal_folder(raw)


def has_source(document: Document) -> bool:
    """Whether the pipeline would find anything to read."""
    if document.type == Document.Type.MANUAL:
        return bool((document.metadata or {}).get("content"))
    return bool(document.storage_path or (document.type in (Document.Type.URL, Document.Type.FILE_URL) and document.source))


def is_pdf(document: Document) -> bool:
    return document.media_type == "application/pdf" or document.file_type == "pdf"


def opened_with_password(document: Document) -> bool:
    """Whether what is there now was read from a locked file: without its password a fresh parse would only lose it."""
    return any(warning.get("code") == "opened_with_password" for warning in document.warnings or [])


def tags_of(base: KnowledgeBase, names: Sequence[Any]) -> list[Tag]:
    """The tags of a base with these ids. Raises: InvalidInput when one is not there."""
    uids = {as_uuid(str(name).strip()) for name in names if str(name).strip()}
    found = list(Tag.objects.filter(kb=base, uid__in=[uid for uid in uids if uid])) if uids else []
    if len(found) != len(uids):
        raise InvalidInput(_("Some of these tags are not in this knowledge base."), code="unknown_tag", field="tag_ids", api_code=1000)
    return found


def same_bytes(base: KnowledgeBase, md5: str, extension: str) -> Document | None:
    """The live document of a base that has these bytes, if any."""
    rows = Document.objects.filter(kb=base, type=Document.Type.FILE, file_hash=md5, file_type=extension, deleted_at__isnull=True)
    return first_alive(rows)


def first_alive(rows: Any) -> Document | None:
    """The oldest of these documents that is there and could be read."""
    alive = rows.exclude(parse_status__in=(ParseStatus.FAILED, ParseStatus.DELETING))
    return alive.select_related("kb", "creator").prefetch_related("tags").order_by("pk").first()  # type: ignore[no-any-return]
