"""Originals on their way out: one by one, or many as an archive."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.utils.translation import gettext_lazy as _

from apps.common import storage
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound, RateLimited, Unavailable
from apps.common.policy import authorize
from apps.common.text import archive_name
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors.ids import as_uuid, clean_ids

ARCHIVE_LIMIT = 512 * 1024 * 1024
ARCHIVES_AT_ONCE = 4
_archives = threading.BoundedSemaphore(ARCHIVES_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Original:
    """What a document was made from; `source` is open, seekable, and closed by whoever took it."""

    file_name: str
    media_type: str
    encoding: str
    size_bytes: int
    source: IO[bytes]


def document_original(*, actor: Actor, document: Document, action: str) -> Original:
    """The original of a document; Markdown written by hand is its own original. `action`: document.download or document.read.

    Raises: NotFound when there is none.
    """
    authorize(actor, action, document)
    content = _content_of(document)
    if content is not None:
        return Original(f"{document.title}.md", "text/markdown", "utf-8", len(content), io.BytesIO(content))
    if not document.storage_path:
        raise NotFound(_("This document has no original file."), code="no_original")
    try:
        source = storage.read(document.storage_path)
    except FileNotFoundError:
        raise NotFound(_("The original file is missing from the file store. Upload it again."), code="no_original") from None
    size_bytes = source.seek(0, os.SEEK_END)
    source.seek(0)
    return Original(original_name(document), document.media_type, document.encoding, size_bytes, source)


def original_name(document: Document) -> str:
    """The name the file came under, even where the name that is shown differs from it."""
    kept = (document.metadata or {}).get("original_name")
    if isinstance(kept, str) and kept:
        return kept
    return document.file_name or f"{document.title or 'document'}.{document.file_type or 'bin'}"


def documents_archive(*, actor: Actor, base: KnowledgeBase, ids: Sequence[Any]) -> Path:
    """A ZIP of the originals of 1 to 200 documents in a temporary file, complete; the caller deletes it (contract knowledge 4.16).

    Documents without an original are skipped.

    Raises: NotFound when one id is not of this base (nothing is read then); InvalidInput when nothing is left or it is too much;
    RateLimited when too many archives are being made; Unavailable when a file cannot be read.
    """
    authorize(actor, "document.download", base)
    names = clean_ids(ids)
    if not names:
        raise InvalidInput(_("Name at least one document."), field="ids", api_code=1000)
    uids = [as_uuid(name) for name in names]
    rows = Document.objects.visible_to(actor).select_related("kb").filter(kb=base, uid__in=[uid for uid in uids if uid])
    found = {row.uid: row for row in rows}
    if any(uid not in found for uid in uids):
        raise NotFound(_("Document not found."))
    documents = [found[uid] for uid in dict.fromkeys(uids) if uid and (found[uid].storage_path or _content_of(found[uid]) is not None)]
    if not documents:
        raise InvalidInput(_("None of these documents has an original file."), code="no_original", field="ids", api_code=1000)
    if sum(document.file_size for document in documents) > ARCHIVE_LIMIT:
        raise InvalidInput(
            _("These files are more than 512 MB together. Choose fewer."),
            code="too_large",
            field="ids",
            limit_bytes=ARCHIVE_LIMIT,
            api_code=1000,
        )
    if not _archives.acquire(blocking=False):
        raise RateLimited(_("Other archives are being made. Try again in a moment."), retry_after_s=5)
    try:
        return _write_archive(documents)
    finally:
        _archives.release()


def _content_of(document: Document) -> bytes | None:
    if document.type != Document.Type.MANUAL:
        return None
    return str((document.metadata or {}).get("content", "")).encode("utf-8", "replace")


def _write_archive(documents: Sequence[Document]) -> Path:
    with tempfile.NamedTemporaryFile(prefix="kb-archive-", suffix=".zip", dir=storage.temp_folder(), delete=False) as target:
        path = Path(target.name)
    taken: set[str] = set()
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            for document in documents:
                _add(archive, document, _free_name(document, taken))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _add(archive: zipfile.ZipFile, document: Document, name: str) -> None:
    entry = zipfile.ZipInfo(name, date_time=document.updated_at.timetuple()[:6])
    entry.external_attr = 0o600 << 16
    content = _content_of(document)
    try:
        with io.BytesIO(content) if content is not None else storage.read(document.storage_path) as source:
            entry.file_size = document.file_size
            with archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target, 1 << 20)
    except OSError as error:
        raise Unavailable(
            _("The original of a document cannot be read."),
            code="unreadable_original",
            http_status=500,
            api_code=1007,
            knowledge_id=str(document.uid),
        ) from error


def _free_name(document: Document, taken: set[str]) -> str:
    """`folder/name`, with ` (2)` and so on where file systems that ignore case would see a clash."""
    raw = f"{document.title}.md" if document.type == Document.Type.MANUAL else original_name(document)
    name = archive_name(raw)
    folders: list[str] = []
    for part in document.folder_path.split("/"):
        segment = archive_name(part).encode()[:80].decode("utf-8", "ignore") if part else ""
        if segment and len("/".join([*folders, segment]).encode()) <= 160:
            folders.append(segment)
    folder = "/".join(folders)
    stem, dot, extension = name.rpartition(".") if "." in name else (name, "", "")
    number, candidate = 1, name
    while (full := f"{folder}/{candidate}" if folder else candidate).casefold() in taken:
        number += 1
        candidate = f"{stem} ({number}){dot}{extension}"
    taken.add(full.casefold())
    return full
