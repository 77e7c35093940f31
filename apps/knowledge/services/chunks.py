"""Editing passages, with their history."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.events import publish
from apps.common.policy import authorize
from apps.knowledge import files
from apps.knowledge.events import ChunksChanged
from apps.knowledge.models import Chunk, ChunkRevision, Document, passage_hash
from apps.knowledge.picturing import hand_over, picture_passages
from apps.knowledge.selectors.versions import is_of_earlier_version
from apps.knowledge.services.summaries import summary_refresh

MAX_BYTES = 200_000
_IMAGE = re.compile(
    r"!\[[^\[\]]{0,2000}\]\(\s{0,9}<?([^)\s>]{1,4000})|<img\b[^<>]{0,2000}?src\s{0,9}=\s{0,9}[\"']?([^\"'\s<>]{1,4000})", re.I
)


def chunk_update(
    *, actor: Actor, chunk: Chunk, content: str | None = None, is_enabled: bool | None = None, expected_revision: int | None = None
) -> Chunk:
    """The passage with new text or enabled flag; a real change makes a new revision and keeps the old state (contract knowledge 7.3).

    No change leaves the revision alone; if indexing had failed, it is tried again. `index_status` says how the index took the change:
    the edit stays when it could not.

    Raises: Conflict with the current state when `expected_revision` is not the current one; InvalidInput on content that cannot be.
    """
    authorize(actor, "chunk.write", chunk)
    with transaction.atomic():
        chunk = locked_passage(chunk)
        _check_revision(chunk, expected_revision)
        text = chunk.content if content is None else _clean(content, chunk)
        enabled = chunk.is_enabled if is_enabled is None else is_enabled
        if text == chunk.content and enabled == chunk.is_enabled:
            if chunk.index_status != Chunk.IndexStatus.FAILED:
                return chunk
            reindex_passage(chunk)
        else:
            _revise(actor, chunk, text, enabled, "edited")
    return _as_indexed(chunk)


def chunk_revert(*, actor: Actor, chunk: Chunk, revision: int, expected_revision: int | None = None) -> Chunk:
    """The passage as it was in an earlier revision, as a new revision (contract knowledge 7.4).

    Raises: Conflict as `chunk_update`; InvalidInput when there is no such revision.
    """
    authorize(actor, "chunk.write", chunk)
    with transaction.atomic():
        chunk = locked_passage(chunk)
        _check_revision(chunk, expected_revision)
        if revision == chunk.content_revision:
            return chunk
        old = ChunkRevision.objects.filter(chunk=chunk, revision=revision).first()
        if old is None:
            raise InvalidInput(_("There is no such revision of this passage."), field="revision", api_code=1000)
        if old.content == chunk.content and old.is_enabled == chunk.is_enabled:
            return chunk
        _revise(actor, chunk, old.content, old.is_enabled, "reverted")
    return _as_indexed(chunk)


def chunks_delete(*, actor: Actor, document: Document, chunks: Sequence[Chunk] | None = None) -> int:
    """Remove passages of a document (all, when none are named); how many there were. They come back when it is parsed again.

    Pictures beside them go to the nearest passage that stays; when none does, they go too.
    """
    authorize(actor, "chunk.write", document)
    if document.type == Document.Type.PAIR:
        raise InvalidInput(_("This is an entry of an FAQ base. Change it there."), code="faq_entry", api_code=1000)
    if document.type == Document.Type.PAGE:
        raise InvalidInput(_("This is a page of the wiki. Change it there."), code="wiki_page", api_code=1000)
    with transaction.atomic():
        document = Document.objects.select_for_update(of=("self",)).get(pk=document.pk)
        rows = Chunk.objects.filter(document=document)
        before = rows.count()
        if chunks is not None:
            rows = rows.filter(pk__in=[chunk.pk for chunk in chunks])
        ids = tuple(rows.order_by("pk").values_list("pk", flat=True))
        if not ids:
            return 0
        unseen = hand_over(document, ids)
        Chunk.objects.filter(pk__in=ids).delete()
        files.delete_on_commit(key for key in unseen if not is_of_earlier_version(key))
        picture_passages(document)  # of pictures that stand beside another passage now
        count = Chunk.objects.filter(document=document).exclude(chunk_type=Chunk.Type.PARENT).count()
        Document.objects.filter(pk=document.pk).update(chunk_count=count, index_rev=F("index_rev") + 1, updated_at=timezone.now())
        audit(
            actor,
            "knowledge.updated",
            document,
            target_type="knowledge",
            title=document.title,
            changed_fields=["chunks"],
            changes={"chunks": {"before": before, "after": before - len(ids)}},
            count=len(ids),
        )
        publish(ChunksChanged(space_id=document.space_id, document_id=document.pk, chunk_ids=ids))
    return len(ids)


def document_indexed(*, actor: Actor, document: Document, rev: int, failed: bool = False) -> int:
    """Tell passages waiting for the index that it followed (or failed to): called by whoever writes the index, with the revision written.

    Changes made since `rev` keep waiting. How many passages changed their state.
    """
    authorize(actor, "chunk.write", document)
    with transaction.atomic():
        if not Document.objects.select_for_update(of=("self",)).filter(pk=document.pk, index_rev=rev).exists():
            return 0
        state = Chunk.IndexStatus.FAILED if failed else Chunk.IndexStatus.READY
        waiting = Chunk.objects.filter(document_id=document.pk, index_status=Chunk.IndexStatus.PROCESSING)
        return int(waiting.update(index_status=state))


def locked_passage(chunk: Chunk) -> Chunk:
    """The passage as it is now, held until the transaction ends."""
    return Chunk.objects.select_related("kb", "document", "parent").select_for_update(of=("self",)).get(pk=chunk.pk)  # type: ignore[no-any-return]


def _check_revision(chunk: Chunk, expected: int | None) -> None:
    if expected is not None and expected != chunk.content_revision:
        raise Conflict(
            _("Someone changed this passage in the meantime. Compare their text with yours and save again."),
            code="revision_conflict",
            current_revision=chunk.content_revision,
            content=chunk.content,
            is_enabled=chunk.is_enabled,
        )


def _clean(content: str, chunk: Chunk) -> str:
    if chunk.chunk_type != Chunk.Type.TEXT:
        raise InvalidInput(_("Only text passages can be edited."), field="content", api_code=1000)
    text = content.strip()
    if not text:
        raise InvalidInput(_("A passage cannot be empty. Turn it off instead."), field="content")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidInput(_("A passage may have at most %(max)d bytes.") % {"max": MAX_BYTES}, field="content", max=MAX_BYTES)
    first = ChunkRevision.objects.filter(chunk=chunk).order_by("revision").values_list("content", flat=True).first()
    if _images(text) - _images(chunk.content if first is None else first) - _images(chunk.content):
        raise InvalidInput(_("Pictures cannot be added to a passage; add them to the document."), field="content", code="new_image")
    return text


def _as_indexed(chunk: Chunk) -> Chunk:
    """The passage with how the index took it: it follows as soon as the edit is committed, and a failure there keeps the edit."""
    chunk.refresh_from_db(fields=["index_status"])
    return chunk


def _images(text: str) -> set[str]:
    return {found[1] or found[2] for found in _IMAGE.finditer(text)}


def _revise(actor: Actor, chunk: Chunk, content: str, is_enabled: bool, how: str) -> None:
    if chunk.chunk_type != Chunk.Type.TEXT:
        raise InvalidInput(_("Only text passages can be edited."), api_code=1000)
    ChunkRevision.objects.create(
        space_id=chunk.space_id,
        chunk=chunk,
        revision=chunk.content_revision,
        content=chunk.content,
        is_enabled=chunk.is_enabled,
        editor=chunk.last_editor,
        edited_at=chunk.updated_at if chunk.content_revision else chunk.created_at,
    )
    old = chunk.content
    both: dict[str, dict[str, str | bool]] = {
        "content": {"before": old, "after": content},
        "is_enabled": {"before": chunk.is_enabled, "after": is_enabled},
    }
    changes = {name: sides for name, sides in both.items() if sides["before"] != sides["after"]}
    chunk.content = content
    chunk.content_hash = passage_hash(content)
    chunk.is_enabled = is_enabled
    chunk.content_revision += 1
    chunk.last_editor_id = actor.user_id
    fields = ["content", "content_hash", "is_enabled", "content_revision", "last_editor"]
    chunk.save(update_fields=[*fields, "updated_at"])
    if chunk.parent is not None and old in chunk.parent.content:
        parent = chunk.parent  # what is read around the passage must say the same as the passage
        parent.content = parent.content.replace(old, content, 1)
        parent.content_hash = passage_hash(parent.content)
        parent.save(update_fields=["content", "content_hash", "updated_at"])
    if "is_enabled" in changes:
        picture_passages(chunk.document)
    summary_refresh(chunk.document)
    audit(
        actor,
        "knowledge.updated",
        chunk.document,
        target_type="chunk",
        target_id=str(chunk.uid),
        title=chunk.document.title,
        changed_fields=list(changes),
        changes=changes,
        mode=how,
        attempt=chunk.content_revision,
    )
    reindex_passage(chunk)


def reindex_passage(chunk: Chunk) -> None:
    """The index follows the passage after commit; until it has, the passage says `processing`. Runs in the caller's transaction."""
    chunk.index_status = Chunk.IndexStatus.PROCESSING
    chunk.save(update_fields=["index_status"])
    Document.objects.filter(pk=chunk.document_id).update(index_rev=F("index_rev") + 1)
    chunk.document.refresh_from_db(fields=["index_rev"])
    publish(ChunksChanged(space_id=chunk.space_id, document_id=chunk.document_id, chunk_ids=(chunk.pk,)))
