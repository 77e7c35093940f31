"""New files under the identity of a document that exists; earlier ones are kept and can come back."""

from __future__ import annotations

from typing import Any

from django.core.files import File
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.events import publish
from apps.common.policy import authorize
from apps.common.text import display_name
from apps.knowledge import files, intake
from apps.knowledge.events import DocumentStored
from apps.knowledge.models import Document, DocumentVersion, KnowledgeBase, ParseStatus
from apps.knowledge.rules.documents import clean_folder, same_bytes
from apps.knowledge.rules.locks import check_not_moving
from apps.knowledge.rules.texts import with_overrides
from apps.knowledge.rules.wishes import clean_process_config
from apps.knowledge.services.intake import Arrival, Stored, document_upload, on_disk

KEEP, SKIP, VERSION = "keep", "skip", "version"
FIELDS = ("file_name", "file_type", "media_type", "file_size", "file_hash", "content_sha256", "storage_path")


def document_version_add(
    *, actor: Actor, document: Document, upload: File[Any], file_name: str, wishes: dict[str, Any] | None = None
) -> Stored:
    """The document with a new file: same id, folder, tags, custom metadata; the file before it is kept as an earlier version.

    `wishes`: how the new file is processed (contract knowledge 4.5), in place of what was wished before; None keeps that.

    Its present passages go on serving until those of the new file are there. Bytes the base has already change nothing (`duplicate`).

    Raises: InvalidInput as for an upload, or when the document is not a file.
    """
    authorize(actor, "document.update", document)
    if document.type != Document.Type.FILE:
        raise InvalidInput(_("Only uploaded files have versions. Edit the text, or import the address again."), code="not_a_file")
    intake.check_file_name(file_name)
    intake.check_size(upload.size or 0)
    intake.check_space(upload.size or 0)
    name = display_name(file_name)
    overrides = clean_process_config(wishes, base=document.kb) if wishes is not None else None
    with on_disk(upload) as path:
        digest = files.digest(path)
        found = intake.inspect(path, name, blank=digest.blank)
        existing = same_bytes(document.kb, digest.md5, found.extension)
        if existing is not None:
            return Stored(existing, duplicate=True, mismatch=found.mismatch)
        key = files.store_original(upload, space_id=document.space_id, kb_uid=document.kb.uid, document_uid=document.uid)
    values = {
        "file_name": name,
        "file_type": found.extension,
        "media_type": found.media_type,
        "file_size": digest.size_bytes,
        "file_hash": digest.md5,
        "content_sha256": digest.sha256,
        "storage_path": key,
    }
    try:
        return Stored(_replace(actor, document, values, overrides=overrides))
    except BaseException:
        files.discard_files([key])
        raise


def document_receive(
    *, actor: Actor, base: KnowledgeBase, upload: File[Any], file_name: str, arrival: Arrival, same_name: str = KEEP
) -> Stored:
    """`document_upload`, where a file of the same name in the same folder may stand in the way (contract: it does not).

    `same_name`: "keep" both, "skip" the new one (`duplicate` is then the one that is there), or take it as a new "version" of that one.

    Raises: InvalidInput as an upload does.
    """
    authorize(actor, "document.create", base)
    there = _same_name(base, file_name, arrival) if same_name in (SKIP, VERSION) else None
    if there is None:
        return document_upload(actor=actor, base=base, upload=upload, file_name=file_name, arrival=arrival)
    if same_name == SKIP:
        return Stored(there, duplicate=True)
    wishes = arrival.process_config
    return document_version_add(actor=actor, document=there, upload=upload, file_name=file_name, wishes=wishes)


def _same_name(base: KnowledgeBase, file_name: str, arrival: Arrival) -> Document | None:
    folder, _slash, _last = file_name.replace("\\", "/").rpartition("/")
    path = clean_folder(folder or arrival.folder_path, field="fileName")
    rows = Document.objects.filter(
        kb=base, type=Document.Type.FILE, file_name=display_name(file_name), folder_path=path, deleted_at__isnull=True
    )
    found: Document | None = rows.select_related("kb", "creator").prefetch_related("tags").order_by("-pk").first()
    return found


def document_version_restore(*, actor: Actor, document: Document, version: DocumentVersion) -> Document:
    """The document with the file of an earlier version as its newest one. Raises: Conflict when another document has that content now."""
    authorize(actor, "document.update", document)
    if not files.exists(version.storage_path):
        raise Conflict(_("The file of this version is missing from the file store."), code="no_original")
    return _replace(actor, document, {name: getattr(version, name) for name in FIELDS}, restored=version.number)


def _replace(
    actor: Actor, document: Document, values: dict[str, Any], *, restored: int | None = None, overrides: dict[str, Any] | None = None
) -> Document:
    try:
        with transaction.atomic():
            check_not_moving(document.kb, [document.pk])
            row = Document.objects.select_related("kb").select_for_update(of=("self",)).get(pk=document.pk, deleted_at__isnull=True)
            before = {name: getattr(row, name) for name in FIELDS}
            DocumentVersion.objects.create(
                space_id=row.space_id,
                document=row,
                number=row.version,
                parsed_path=row.parsed_path,
                creator_id=row.version_creator_id,
                **before,
            )
            if row.title == row.file_name:
                row.title = values["file_name"]
            for name, value in values.items():
                setattr(row, name, value)
            kept = {key: value for key, value in (row.metadata or {}).items() if key != "original_name"}
            row.metadata = with_overrides(kept or None, overrides)
            row.version += 1
            row.version_creator_id = actor.user_id
            row.parse_status = ParseStatus.PENDING
            row.description, row.summary_status = "", "none"
            row.processed_at, row.pending_subtasks_count = None, 0
            row.reason = row.error_message = ""
            row.index_rev += 1
            row.save()
            changes = {"file_name": {"before": before["file_name"], "after": row.file_name}}
            audit(
                actor, "knowledge.updated", row, outcome="accepted", target_type="knowledge", title=row.title, changed_fields=["file"],
                version=row.version, restored_version=restored, changes=changes,
            )  # fmt: skip
            options = (row.metadata or {}).get("process_overrides") or {}
            publish(DocumentStored(space_id=row.space_id, document_id=row.pk, trigger="user", options=options))
    except IntegrityError:
        raise Conflict(_("Another document of this base has the same content."), code="duplicate_file") from None
    return row
