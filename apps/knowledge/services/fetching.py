"""The worker's side of an import: what is at a document's address becomes its original."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common import http
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput, TransientError
from apps.common.policy import authorize
from apps.common.text import display_name
from apps.knowledge import files, intake
from apps.knowledge.models import Document

FILE_LIMIT = 10 * 1024 * 1024  # contract knowledge 4.4: files behind an address
TIMEOUT_S = 90.0
ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,*/*;q=0.8"
EXTENSIONS = {"text/html": "html", "application/xhtml+xml": "html"}


def document_fetch_source(*, actor: Actor, document: Document, on_chunk: Callable[[int], None] | None = None) -> Document:
    """The document with what its address holds now stored as its original; unchanged bytes store nothing anew.

    Called by the pipeline before parsing documents of type `url` and `file_url`, outside any transaction. `on_chunk` may raise to stop.
    `media_type` is what the server says, corrected by what the bytes are; `metadata["http_content_type"]` keeps the header.

    Raises: InvalidInput (fetch_failed, too_large, refused_address, empty, unsupported_type, ...); TransientError when a retry may help;
    Conflict(gone) when the document was deleted meanwhile.
    """
    authorize(actor, "document.update", document)
    limit = FILE_LIMIT if document.type == Document.Type.FILE_URL else settings.MAX_FILE_SIZE
    with http.fetch(document.source, max_bytes=limit, timeout_s=TIMEOUT_S, accept=ACCEPT, on_chunk=on_chunk) as answer:
        _check_status(answer.status)
        digest = files.digest(answer.path)
        intake.check_size(digest.size_bytes)
        intake.check_space(digest.size_bytes)
        found = intake.inspect(answer.path, _name_for(document, answer), blank=digest.blank)
        if digest.sha256 == document.content_sha256 and document.storage_path:
            return document
        key = files.store_original(answer.path, space_id=document.space_id, kb_uid=document.kb.uid, document_uid=document.uid)
    old = document.storage_path
    metadata = {**(document.metadata or {}), "http_content_type": answer.headers.get("content-type", ""), "final_url": answer.url}
    values = {
        "storage_path": key,
        "file_size": digest.size_bytes,
        "content_sha256": digest.sha256,
        "media_type": found.media_type,
        "file_type": found.extension or document.file_type,
        "metadata": metadata,
        "updated_at": timezone.now(),
    }
    if document.type == Document.Type.FILE_URL:
        values["file_hash"] = digest.md5
    try:
        with transaction.atomic():
            if not Document.objects.filter(pk=document.pk, deleted_at__isnull=True, storage_path=old).update(**values):
                raise Conflict(_("The document was deleted or replaced in the meantime."), code="gone")
            files.delete_on_commit([old])
    except BaseException:
        files.discard_files([key])
        raise
    for name, value in values.items():
        setattr(document, name, value)
    return document


def _check_status(status: int) -> None:
    if status in (408, 425, 429) or status >= 500:
        raise TransientError(f"the server answered {status}", code="fetch_failed")
    if status != 200:
        raise InvalidInput(
            _("The server answered with status %(status)d. Check that the address opens in a browser without signing in.")
            % {"status": status},
            code="fetch_failed",
            field="url",
            status=status,
        )


def _name_for(document: Document, answer: http.Fetched) -> str:
    """A name whose extension says what the bytes should be, for the inspector to compare with what they are."""
    if document.type == Document.Type.FILE_URL:
        return document.file_name or f"file.{document.file_type}"
    if answer.media_type in EXTENSIONS or not answer.media_type:
        return "page.html"
    last = display_name(answer.url.split("?")[0].rpartition("/")[2], fallback="page.html")
    return last if "." in last else "page.html"
