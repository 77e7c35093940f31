"""How documents come in: files, addresses, Markdown written by hand."""

from __future__ import annotations

import hashlib
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.files import File
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common import http, storage
from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.events import publish
from apps.common.policy import authorize
from apps.common.text import display_name
from apps.knowledge import files, intake
from apps.knowledge.events import DocumentsRefiled, DocumentStored
from apps.knowledge.models import Chunk, Document, DocumentTag, KnowledgeBase, ParseStatus
from apps.knowledge.rules.documents import clean_folder, first_alive, same_bytes, tags_of
from apps.knowledge.rules.texts import clean_markdown, clean_title, with_overrides
from apps.knowledge.rules.wishes import check_picture, clean_process_config

MAX_MANUAL = 200_000
MAX_CHANNEL = 32


@dataclass(frozen=True, slots=True)
class Stored:
    """`duplicate`: the document was there already (contract knowledge 4.3); `document` is the one that is there now.

    `mismatch`: the uploaded name claims another kind of file than its content is.
    """

    document: Document
    duplicate: bool = False
    mismatch: bool = False


@dataclass(frozen=True, slots=True)
class Arrival:
    """What comes beside the bytes, the address or the text of a new document.

    `title`, `source`: of an uploaded file that came from somewhere, what it is called there and its address.
    """

    channel: str = "web"
    tag_ids: Sequence[str] = ()
    process_config: dict[str, Any] | None = None
    enable_multimodel: bool | None = None
    metadata: dict[str, str] | None = None
    folder_path: str = ""
    title: str = ""
    source: str = ""

    def overrides(self) -> dict[str, Any]:
        config = clean_process_config(self.process_config) if self.process_config is not None else {}
        if self.enable_multimodel is not None:
            config.setdefault("enable_multimodel", self.enable_multimodel)
        return config


def document_upload(*, actor: Actor, base: KnowledgeBase, upload: File[Any], file_name: str, arrival: Arrival) -> Stored:
    """A new document with the uploaded bytes as its original, waiting to be parsed; or the one that has these bytes already.

    `file_name` may carry a folder path. The bytes are read in pieces, once, and stored before the row that names them.

    Raises: InvalidInput (empty, blank, too_large, unsupported_type, no_space, illegal_name, unknown_tag, ...) before anything is written.
    """
    authorize(actor, "document.create", base)
    _takes_documents(base)
    intake.check_file_name(file_name)
    intake.check_size(upload.size or 0)
    intake.check_space(upload.size or 0)
    folder, _slash, _last = file_name.replace("\\", "/").rpartition("/")
    name = display_name(file_name)
    tags = tags_of(base, arrival.tag_ids)
    overrides = arrival.overrides()
    with on_disk(upload) as path:
        digest = files.digest(path)
        found = intake.inspect(path, name, blank=digest.blank)
        check_picture(overrides, found.media_type)
        existing = same_bytes(base, digest.md5, found.extension)
        if existing is not None:
            return replace(_again(existing), mismatch=found.mismatch)
        document = Document(
            space_id=base.space_id,
            kb=base,
            uid=uuid.uuid4(),
            title=clean_title(arrival.title) or name,
            file_name=name,
            source=arrival.source,
            folder_path=clean_folder(folder or arrival.folder_path, field="fileName"),
            channel=arrival.channel[:MAX_CHANNEL] or "web",
            file_type=found.extension,
            media_type=found.media_type,
            file_size=digest.size_bytes,
            file_hash=digest.md5,
            content_sha256=digest.sha256,
            metadata=with_overrides(_with_original_name(arrival.metadata, file_name, name), overrides or None),
            creator_id=actor.user_id,
        )
        document.storage_path = files.store_original(upload, space_id=base.space_id, kb_uid=base.uid, document_uid=document.uid)
    return _insert(actor, base, document, tags, lambda: same_bytes(base, digest.md5, found.extension))


def document_import_url(
    *, actor: Actor, base: KnowledgeBase, url: str, arrival: Arrival, title: str = "", file_name: str = "", file_type: str = ""
) -> Stored:
    """A new document that stands for a web page or a file at an address; the fetch itself is the pipeline's first step.

    Raises: InvalidInput when the address is no http(s) address or leads where imports may not go.
    """
    authorize(actor, "document.create", base)
    _takes_documents(base)
    intake.check_space()
    intake.check_file_name(file_name)
    address = http.check_url(url)
    last = unquote(urlsplit(address).path).rpartition("/")[2]
    extension = (file_type or (file_name or last).rpartition(".")[2]).lower().lstrip(".")
    is_file = bool(file_name or file_type) or ("." in last and extension in intake.accepted_extensions() - {"html", "htm"})
    if is_file and extension not in intake.accepted_extensions():
        raise InvalidInput(intake.unsupported(extension), code="unsupported_type", field="file_type")
    name = display_name(file_name or last) if is_file else ""
    tags = tags_of(base, arrival.tag_ids)
    document = Document(
        space_id=base.space_id,
        kb=base,
        type=Document.Type.FILE_URL if is_file else Document.Type.URL,
        title=clean_title(title) or name,
        file_name=name,
        source=address,
        folder_path=clean_folder(arrival.folder_path),
        channel=arrival.channel[:MAX_CHANNEL] or "web",
        file_type=extension if is_file else "html",
        file_hash=hashlib.md5(address.encode(), usedforsecurity=False).hexdigest(),
        metadata=with_overrides(dict(arrival.metadata or {}) or None, arrival.overrides() or None),
        creator_id=actor.user_id,
    )
    existing = _same_address(base, document)
    if existing is not None:
        return _again(existing)
    return _insert(actor, base, document, tags, lambda: _same_address(base, document))


def document_write(*, actor: Actor, base: KnowledgeBase, content: str, arrival: Arrival, title: str = "", status: str = "") -> Document:
    """A new Markdown document written by hand: a draft, or published and waiting to be parsed (contract knowledge 4.6)."""
    authorize(actor, "document.create", base)
    _takes_documents(base)
    publishing = _publishing(status)
    text = _clean_content(content)
    title = clean_title(title) or f"Knowledge-{timezone.now():%Y%m%d-%H%M%S}"
    document = Document(
        space_id=base.space_id,
        kb=base,
        type=Document.Type.MANUAL,
        title=title,
        source="manual",
        file_type="manual",
        media_type="text/markdown",
        folder_path=clean_folder(arrival.folder_path),
        channel=arrival.channel[:MAX_CHANNEL] or "web",
        creator_id=actor.user_id,
    )
    _put_content(document, title, text, publishing, version=1, overrides=arrival.overrides() or None)
    return _insert(actor, base, document, tags_of(base, arrival.tag_ids), lambda: None).document


def document_rewrite(
    *,
    actor: Actor,
    document: Document,
    content: str,
    title: str = "",
    status: str = "",
    process_config: dict[str, Any] | None = None,
    expected_version: int | None = None,
) -> Document:
    """A manual document with new text (contract knowledge 4.6). Saved as a draft it is found nowhere until it is published.

    Raises: InvalidInput when it is not a manual document; Conflict when someone saved another version since `expected_version`.
    """
    authorize(actor, "document.update", document)
    if document.type != Document.Type.MANUAL:
        raise InvalidInput(
            _("Only Markdown documents written here can be edited. Upload a new file instead."), code="not_manual", api_code=1000
        )
    publishing = _publishing(status)
    text = _clean_content(content)
    overrides = clean_process_config(process_config) if process_config is not None else None
    with transaction.atomic():
        document = Document.objects.select_related("kb").select_for_update(of=("self",)).get(pk=document.pk, deleted_at__isnull=True)
        version = int((document.metadata or {}).get("version") or 1)
        if expected_version is not None and expected_version != version:
            raise Conflict(
                _("Someone saved another version in the meantime. Compare it with yours and save again."),
                code="revision_conflict",
                current_version=version,
                content=(document.metadata or {}).get("content", ""),
            )
        title = clean_title(title) or document.title
        _put_content(document, title, text, publishing, version=version + 1, overrides=overrides if publishing else None)
        document.description = ""
        document.summary_status = "none"
        document.processed_at = None
        document.enabled = False
        document.pending_subtasks_count = 0
        document.reason = document.error_message = ""
        if not publishing:
            Chunk.objects.filter(document=document).delete()  # the text they show is not what the draft says
            document.chunk_count = document.vector_count = 0
        document.index_rev += 1
        document.save()
        audit(
            actor,
            "knowledge.updated",
            document,
            target_type="knowledge",
            title=document.title,
            changed_fields=["content"],
            processing_status=document.parse_status,
        )
        publish(DocumentsRefiled(space_id=document.space_id, document_ids=(document.pk,)))
        if publishing:
            publish(DocumentStored(space_id=document.space_id, document_id=document.pk, trigger="user", options=overrides or {}))
    return document


def _put_content(document: Document, title: str, text: str, publishing: bool, *, version: int, overrides: dict[str, Any] | None) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    document.title = title
    document.file_name = f"{title[: 1024 - 3]}.md"
    document.file_size = len(raw)
    document.file_hash = hashlib.md5(raw, usedforsecurity=False).hexdigest()
    document.content_sha256 = hashlib.sha256(raw).hexdigest()
    document.parse_status = ParseStatus.PENDING if publishing else ParseStatus.DRAFT
    document.metadata = with_overrides(
        {
            "content": text,
            "format": "markdown",
            "status": "publish" if publishing else "draft",
            "version": version,
            "updated_at": timezone.now().isoformat(),
        },
        overrides,
    )


def _publishing(status: str) -> bool:
    known = {"": False, "draft": False, "publish": True}
    if (name := status.strip().lower()) not in known:
        raise InvalidInput(_("The status is either draft or publish."), field="status", known=["draft", "publish"])
    return known[name]


def _clean_content(content: str) -> str:
    if len(content) > MAX_MANUAL:
        raise InvalidInput(_("The text may have at most %(max)d characters.") % {"max": MAX_MANUAL}, field="content", max=MAX_MANUAL)
    text = clean_markdown(content.replace("\x00", ""))
    if not text.strip():
        raise InvalidInput(_("The text is empty. Write something first."), field="content", code="empty")
    return text


def _takes_documents(base: KnowledgeBase) -> None:
    if base.type == KnowledgeBase.Type.FAQ:
        raise InvalidInput(_("A FAQ base takes question pairs, not documents. Choose another base."), code="faq_base", api_code=1000)


def _with_original_name(metadata: dict[str, str] | None, raw: str, shown: str) -> dict[str, Any] | None:
    """Downloads give back the very name a file came under, where the name that is shown had to differ from it."""
    original = raw.replace("\\", "/").rpartition("/")[2]
    kept: dict[str, Any] = dict(metadata or {})
    if original and original != shown:
        kept["original_name"] = original[:1024]
    return kept or None


def _same_address(base: KnowledgeBase, document: Document) -> Document | None:
    rows = Document.objects.filter(kb=base, type=document.type, source=document.source, deleted_at__isnull=True)
    return first_alive(rows)


def _again(existing: Document) -> Stored:
    Document.objects.filter(pk=existing.pk).update(created_at=timezone.now())
    return Stored(existing, duplicate=True)


def _insert(actor: Actor, base: KnowledgeBase, document: Document, tags: list[Any], find: Callable[[], Document | None]) -> Stored:
    """Save a new document; when another request was faster with the same content, the winner's row. Files of a loser are removed."""
    try:
        with transaction.atomic():
            if not KnowledgeBase.objects.filter(pk=base.pk, deleted_at__isnull=True).exists():
                raise InvalidInput(_("This knowledge base was deleted in the meantime."), code="base_deleted", api_code=1000)
            if (winner := find()) is None:
                document.save(force_insert=True)
                DocumentTag.objects.bulk_create([DocumentTag(space_id=base.space_id, document=document, tag=tag) for tag in tags])
                _announce(actor, document)
    except IntegrityError:
        files.discard_files([document.storage_path])
        if (winner := find()) is None:
            raise Conflict(_("Someone changed the same thing at the same time. Try again.")) from None
        return _again(winner)
    except BaseException:
        files.discard_files([document.storage_path])
        raise
    if winner is not None:
        files.discard_files([document.storage_path])
        return _again(winner)
    return Stored(document)


def _announce(actor: Actor, document: Document) -> None:
    audit(
        actor,
        "knowledge.created",
        document,
        outcome="success" if document.parse_status == ParseStatus.DRAFT else "accepted",
        target_type="knowledge",
        title=document.title,
        type=document.type,
        file_type=document.file_type,
        processing_status=document.parse_status,
    )
    if document.parse_status == ParseStatus.PENDING:
        options = (document.metadata or {}).get("process_overrides") or {}
        publish(DocumentStored(space_id=document.space_id, document_id=document.pk, trigger="user", options=options))


class on_disk:
    """The path of an upload: Django's own temporary file, or one made for the block."""

    def __init__(self, upload: File[Any]) -> None:
        self.upload = upload
        self.made: Path | None = None

    def __enter__(self) -> Path:
        if hasattr(self.upload, "temporary_file_path"):
            return Path(self.upload.temporary_file_path())
        with tempfile.NamedTemporaryFile(prefix="kb-upload-", dir=storage.temp_folder(), delete=False) as target:
            self.made = Path(target.name)
            self.upload.seek(0)
            for block in self.upload.chunks():
                target.write(block)
        return self.made

    def __exit__(self, *_error: object) -> None:
        if self.made is not None:
            self.made.unlink(missing_ok=True)
