"""The work of copying a base: slice by slice, each in one transaction; stopped anywhere and begun again, it ends the same.

A copy's id is derived from its run and its source, and the files of a copy from its id: what a killed worker left is found again instead
of being made twice. Pictures go with their documents, under handles of their own. Vectors are kept by content, so a copy has those of its
source at once.
"""

from __future__ import annotations

import gzip
import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

from django.core.files import File
from django.core.files.base import ContentFile
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from apps.common import storage
from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.events import publish
from apps.common.jobs.claims import Claim
from apps.common.jobs.models import RunState
from apps.common.jobs.service import enqueue
from apps.knowledge import files, intake
from apps.knowledge.events import BaseDeleted, BaseFilled, DocumentsCopied, DocumentStored
from apps.knowledge.models import (
    SCHEME,
    UNREAD,
    Chunk,
    ChunkRevision,
    CleanupRun,
    CopyRun,
    Document,
    DocumentImage,
    DocumentTag,
    KnowledgeBase,
    ParseStatus,
    Tag,
    passage_hash,
)
from apps.knowledge.picturing import copied_pictures, picture_keys, renamed_mentions, renamed_references
from apps.knowledge.rules.documents import has_source
from apps.knowledge.selectors.copies import documents_marked, surplus_of
from apps.knowledge.services.bases import CLEANUP
from apps.knowledge.services.documents import documents_delete

SLICE = 50
DELETE_SLICE = 200
ROWS_AT_ONCE = 500
NAMESPACE = uuid.UUID("5a0d9c1e-7c5e-4b0f-9a37-0c1f5d8f3b52")

DOCUMENT_OWN = frozenset(
    "id uid kb storage_path parsed_path attempt index_rev version version_creator created_at updated_at deleted_at".split()
)
CHUNK_OWN = frozenset("id uid kb document parent created_at updated_at".split())
REVISION_OWN = frozenset(("id", "chunk"))


def _shared(model: Any, own: frozenset[str]) -> tuple[str, ...]:
    """Columns a copy takes over as they are."""
    return tuple(field.attname for field in model._meta.concrete_fields if field.name not in own)


@dataclass(slots=True)
class Work:
    """One copy under way. `tags`: {primary key of a tag of the source: that of the target}; `done`, `failed`: documents."""

    claim: Claim
    run: Any
    actor: Actor
    target: KnowledgeBase
    tags: dict[int, int]
    done: int
    failed: int = 0


def work_copy(claim: Claim) -> None:
    """Bring what is missing, remove what a mirrored target has too much, check the index, show the base: in this order."""
    run: Any = claim.run
    actor = Actor.system(run.space_id, f"copy {run.task_id}")
    source = KnowledgeBase.objects.filter(pk=run.source_ref, deleted_at__isnull=True).first()
    target = KnowledgeBase.objects.filter(pk=run.target_ref, deleted_at__isnull=True).first()
    if source is None or target is None:
        raise _gone("source" if source is None else "target")
    wanted, there = documents_marked(source.pk), documents_marked(target.pk)
    missing = surplus_of(there, wanted)
    work = Work(claim, run, actor, target, _copy_tags(claim, source, target), len(wanted) - len(missing))
    claim.progress(work.done, len(wanted), "documents")
    for start in range(0, len(missing), SLICE):
        claim.check()
        intake.check_space()
        part = missing[start : start + SLICE]
        _copy_slice(work, part)
        work.done += len(part)
        claim.progress(work.done, len(wanted), "documents", failed=work.failed)
    removed = _remove_surplus(work)
    with transaction.atomic():
        _hold(work)
        publish(BaseFilled(space_id=run.space_id, kb_id=target.pk))
    claim.check()
    with transaction.atomic():
        claim.rows().update(progress_done=work.done, progress_total=work.done, progress_failed=work.failed, removed=F("removed") + removed)
        if claim.finish(RunState.DONE):
            KnowledgeBase.objects.filter(pk=target.pk).update(is_hidden=False, updated_at=timezone.now())
            run.refresh_from_db()
            _record_end(run, "kb.clone_completed", "partial" if work.failed else "success", actor)


def _hold(work: Work) -> None:
    """Inside a transaction: the run is still ours and both bases are there, until commit. Raises: Stop, DomainError."""
    work.claim.hold()
    names = {work.run.source_ref: "source", work.run.target_ref: "target"}
    rows = KnowledgeBase.objects.filter(pk__in=names, deleted_at__isnull=True).order_by("pk").select_for_update(of=("self",))
    for pk in names.keys() - {row.pk for row in rows}:
        raise _gone(names[pk])


def _gone(which: str) -> DomainError:
    return DomainError(f"the {which} base was deleted while it was being copied", code=f"{which}_deleted")


def _copy_tags(claim: Claim, source: KnowledgeBase, target: KnowledgeBase) -> dict[int, int]:
    """{tag of the source: the tag of the same name in the target}; those that are not there are made."""
    with transaction.atomic():
        claim.hold()
        known = dict(Tag.objects.filter(kb=target).values_list("name", "pk"))
        tags = list(Tag.objects.filter(kb=source).order_by("pk"))
        for tag in tags:
            if tag.name not in known:
                made = Tag.objects.create(space_id=target.space_id, kb=target, name=tag.name, color=tag.color, sort_order=tag.sort_order)
                known[tag.name] = made.pk
    return {tag.pk: known[tag.name] for tag in tags}


def _copy_slice(work: Work, pks: list[int]) -> None:
    """Files first, then all rows in one transaction. A document that changed in between is looked at again."""
    left = list(pks)
    while left:
        work.claim.check()
        keys = {row.pk: _copy_files(work, row) for row in Document.objects.filter(pk__in=left, deleted_at__isnull=True)}
        try:
            with transaction.atomic():
                _hold(work)
                rows = Document.objects.filter(pk__in=left, kb_id=work.run.source_ref, deleted_at__isnull=True)
                locked = list(rows.order_by("pk").select_for_update(of=("self",)))
                same = [row for row in locked if row.pk in keys and keys[row.pk].of == (row.storage_path, row.parsed_path)]
                _copy_rows(work, same, keys)
        except IntegrityError:  # the same content came into the target by another way at this moment
            if len(left) == 1:
                return
            for pk in left:
                _copy_slice(work, [pk])
            return
        left = [row.pk for row in locked if row not in same]


@dataclass(frozen=True, slots=True)
class Copied:
    """Where the files of a copy are, and those they were made from. `is_whole`: the store had every file.

    `pictures`: {key of a picture of the source: key of the copy's}; a picture whose file was lost has none.
    """

    of: tuple[str, str]
    original: str
    parsed: str
    pictures: dict[str, str]
    is_whole: bool

    @property
    def unread(self) -> list[str]:
        """Keys that a document which is still to be read does not name."""
        return [key for key in (self.parsed, *self.pictures.values()) if key]


def _derived(work: Work, name: str) -> uuid.UUID:
    return uuid.uuid5(NAMESPACE, f"{work.run.task_id}/{name}")


def _uid(work: Work, pk: int) -> uuid.UUID:
    return _derived(work, str(pk))


def _copy_files(work: Work, document: Document) -> Copied:
    original = _copy_file(work, document.pk, document.storage_path)
    parsed = _copy_parsed(work, document)
    pictures = {key: _copy_file(work, document.pk, key) for key in picture_keys(document)}
    is_whole = bool(original) == bool(document.storage_path) and bool(parsed) == bool(document.parsed_path) and all(pictures.values())
    return Copied((document.storage_path, document.parsed_path), original, parsed, pictures, is_whole)


def _copy_parsed(work: Work, document: Document) -> str:
    """The key of the copied text, in which pictures have the handles of the copies; all handles are of one length, so nothing moves."""
    key = _copy_file(work, document.pk, document.parsed_path)
    handles = list(DocumentImage.objects.filter(document=document).values_list("uid", flat=True)) if key else []
    if handles:
        with storage.read(key) as opened:
            text = gzip.decompress(opened.read())
        for handle in handles:
            text = text.replace(f"{SCHEME}{handle}".encode(), f"{SCHEME}{_derived(work, f'image/{handle}')}".encode())
        storage.remove(key)
        storage.write(key, ContentFile(gzip.compress(text, 5)))
    return key


def _copy_file(work: Work, pk: int, key: str) -> str:
    """The key of the copy; "" when there is nothing to copy. What a killed worker left under it is replaced."""
    if not key:
        return ""
    folder = files.document_folder(work.run.space_id, work.target.uid, _uid(work, pk))
    own = f"{folder}/{hashlib.sha256(key.encode()).hexdigest()[:12]}/{key.rpartition('/')[2]}"
    try:
        with storage.read(key) as opened:
            storage.remove(own)
            return storage.write(own, File(opened))
    except FileNotFoundError:
        return ""


def _copy_rows(work: Work, documents: list[Document], keys: dict[int, Copied]) -> None:
    fields = _shared(Document, DOCUMENT_OWN)
    there = set(Document.objects.filter(uid__in=[_uid(work, row.pk) for row in documents]).values_list("uid", flat=True))
    documents = [row for row in documents if _uid(work, row.pk) not in there]
    copies = []
    for row in documents:
        values = {name: getattr(row, name) for name in fields}
        if row.parse_status in UNREAD:
            values |= {"parse_status": ParseStatus.PENDING, "enabled": False, "chunk_count": 0, "vector_count": 0}
        own = keys[row.pk]
        work.failed += 0 if own.is_whole else 1
        parsed = own.parsed
        if row.parse_status in UNREAD:
            files.delete_on_commit(own.unread)
            parsed = ""
        copies.append(
            Document(**values, uid=_uid(work, row.pk), kb=work.target, storage_path=own.original, parsed_path=parsed, index_rev=1)
        )
    Document.objects.bulk_create(copies, batch_size=ROWS_AT_ONCE)
    by_source = {row.pk: copy for row, copy in zip(documents, copies, strict=True)}
    links = DocumentTag.objects.filter(document_id__in=by_source).order_by("pk").values_list("document_id", "tag_id")
    DocumentTag.objects.bulk_create(
        [
            DocumentTag(space_id=work.run.space_id, document=by_source[document], tag_id=work.tags[tag])
            for document, tag in links
            if tag in work.tags
        ]
    )
    read = {pk: copy for pk, copy in by_source.items() if copy.parse_status != ParseStatus.PENDING}
    _copy_passages(work, read, keys)
    run = work.run
    pairs = tuple((pk, copy.pk) for pk, copy in read.items())
    publish(DocumentsCopied(space_id=run.space_id, source_kb_id=run.source_ref, target_kb_id=run.target_ref, pairs=pairs))
    for copy in by_source.values():
        if copy.parse_status == ParseStatus.PENDING and has_source(copy):
            options = (copy.metadata or {}).get("process_overrides") or {}
            publish(DocumentStored(space_id=run.space_id, document_id=copy.pk, trigger="system", options=options))


def _copy_passages(work: Work, read: dict[int, Document], keys: dict[int, Copied]) -> None:
    """Passages with the pictures beside them."""

    def key_of(image: DocumentImage) -> str:
        own = keys[image.document_id]
        return own.original if image.storage_path == own.of[0] else own.pictures.get(image.storage_path, "")

    pictures = copied_pictures(read, key_of, lambda handle: _derived(work, f"image/{handle}"))
    made = _copy_chunks(work, read, {image.url: copy.url for image, copy in pictures})
    for image, copy in pictures:
        copy.chunk = made[image.chunk_id]
    DocumentImage.objects.bulk_create([copy for _image, copy in pictures], batch_size=ROWS_AT_ONCE)


def _copy_chunks(work: Work, read: dict[int, Document], urls: dict[str, str]) -> dict[int, Chunk]:
    """{primary key: copy} of passages with their history; parents first, so that children can name them. `urls`: of pictures."""
    fields = _shared(Chunk, CHUNK_OWN)
    waiting = list(Chunk.objects.filter(document_id__in=read).order_by("pk"))
    made: dict[int, Chunk] = {}
    while waiting:
        ready = [row for row in waiting if row.parent_id is None or row.parent_id in made]
        if not ready:
            raise DomainError("passages name parents that are not there", code="internal")
        copies = []
        for row in ready:
            copy = Chunk(**{name: getattr(row, name) for name in fields}, kb=work.target, document=read[row.document_id])
            copy.parent = made[row.parent_id] if row.parent_id is not None else None
            copy.image_info = renamed_mentions(row.image_info, urls)
            copy.content = renamed_references(row.content, urls)
            if copy.content != row.content:
                copy.content_hash = passage_hash(copy.content)
            copies.append(copy)
        Chunk.objects.bulk_create(copies, batch_size=ROWS_AT_ONCE)
        made |= {row.pk: copy for row, copy in zip(ready, copies, strict=True)}
        waiting = [row for row in waiting if row.pk not in made]
    edited = [pk for pk, copy in made.items() if copy.content_revision]
    names = _shared(ChunkRevision, REVISION_OWN)
    for start in range(0, len(edited), ROWS_AT_ONCE):
        rows = ChunkRevision.objects.filter(chunk_id__in=edited[start : start + ROWS_AT_ONCE]).order_by("pk")
        earlier = [ChunkRevision(**{name: getattr(row, name) for name in names}, chunk=made[row.chunk_id]) for row in rows]
        for old in earlier:
            old.content = renamed_references(old.content, urls)
        ChunkRevision.objects.bulk_create(earlier)
    return made


def _remove_surplus(work: Work) -> int:
    """Delete what a mirrored target has and the source does not; how many. A new base has nothing of its own."""
    if work.run.is_new:
        return 0
    with transaction.atomic():
        _hold(work)  # a source that is gone has no documents, and is no reason to remove any
        surplus = surplus_of(documents_marked(work.run.source_ref), documents_marked(work.target.pk))
    removed = 0
    for start in range(0, len(surplus), DELETE_SLICE):
        work.claim.check()
        rows = list(Document.objects.filter(pk__in=surplus[start : start + DELETE_SLICE], deleted_at__isnull=True).select_related("kb"))
        if rows:
            with transaction.atomic():
                _hold(work)
                removed += documents_delete(actor=work.actor, base=work.target, documents=rows).count
    return removed


def end_copy(run: Any, actor: Actor | None = None) -> None:
    """A copy that ended without being whole: a base made for it goes, with a record of why."""
    if run.is_new:
        target = KnowledgeBase.objects.filter(pk=run.target_ref, is_hidden=True, deleted_at__isnull=True).first()
        if target is not None:
            _drop(target)
    is_cancelled = run.state == RunState.CANCELLED
    _record_end(
        run, "kb.clone_failed", "canceled" if is_cancelled else "failed", actor or Actor.system(run.space_id, f"copy {run.task_id}")
    )


def _drop(target: KnowledgeBase) -> None:
    now = timezone.now()
    KnowledgeBase.objects.filter(pk=target.pk).update(deleted_at=now, updated_at=now)
    Document.objects.filter(kb=target, deleted_at__isnull=True).update(
        deleted_at=now, parse_status=ParseStatus.DELETING, enabled=False, index_rev=F("index_rev") + 1, updated_at=now
    )
    publish(BaseDeleted(space_id=target.space_id, kb_id=target.pk))
    enqueue(CleanupRun.objects.create(space_id=target.space_id, kind=CLEANUP, kb_ref=target.pk))


def _record_end(run: CopyRun, action: str, outcome: str, actor: Actor) -> None:
    for uid in (run.source_uid, run.target_uid):
        audit(
            actor,
            action,
            base=uid,
            target_type="knowledge_base",
            target_id=str(uid),
            outcome=outcome,
            title=run.name,
            task_id=run.task_id,
            source_kb_id=str(run.source_uid),
            target_kb_id=str(run.target_uid),
            count=run.progress_done,
            failed=run.progress_failed,
            status=run.reason or None,
            trigger="user" if actor.user_id else "system",
        )
