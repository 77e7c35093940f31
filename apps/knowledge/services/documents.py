"""Changing and removing documents that exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.events import publish
from apps.common.jobs.service import enqueue
from apps.common.policy import authorize
from apps.knowledge.events import DocumentsDeleted, DocumentsRefiled
from apps.knowledge.models import CleanupRun, Document, DocumentTag, KnowledgeBase
from apps.knowledge.rules.locks import check_not_moving
from apps.knowledge.rules.texts import clean_custom_metadata, clean_title
from apps.knowledge.rules.trash import purge_time, tombstone
from apps.knowledge.services.bases import CLEANUP
from apps.knowledge.services.summaries import summary_refresh

SLICE = 500


@dataclass(frozen=True, slots=True)
class Deleted:
    """`task_id` names the clean-up (there is no progress route for it), `count` the documents that were live until now."""

    task_id: str
    count: int


def document_update(
    *,
    actor: Actor,
    document: Document,
    title: str = "",
    description: str | None = None,
    custom_metadata: dict[str, Any] | None = None,
    seen: Mapping[str, Any] | None = None,
) -> Document:
    """The document with its new title, summary, custom metadata (contract knowledge 4.10); None, and an empty title, mean unchanged.

    `seen`: what the editor saw in the fields they change. Other metadata refreshes a summary that is there, if a model writes for the base.

    Raises: InvalidInput naming the key at fault in `details`; Conflict with the current values when a field is not what was seen.
    """
    authorize(actor, "document.update", document)
    if document.type in (Document.Type.FAQ, Document.Type.PAIR):
        raise InvalidInput(_("This is an entry of an FAQ base. Change it there."), code="faq_entry", api_code=1000)
    if document.type == Document.Type.PAGE:
        raise InvalidInput(_("This is a page of the wiki. Change it there."), code="wiki_page", api_code=1000)
    with transaction.atomic():
        document = locked_document(document)
        before = {"title": document.title, "description": document.description, "custom_metadata": document.custom_metadata}
        if theirs := {name: before[name] for name, value in (seen or {}).items() if before[name] != value}:
            raise Conflict(
                _("Someone changed this in the meantime. Compare theirs with yours and save again."), code="revision_conflict", **theirs
            )
        if title.strip():
            document.title = clean_title(title)
        if description is not None:
            document.description = description
            document.summary_status = "completed" if description else "none"
        if custom_metadata is not None:
            document.custom_metadata = clean_custom_metadata(custom_metadata)
        changed = [name for name, value in before.items() if getattr(document, name) != value]
        if changed:
            document.index_rev += 1
            document.save(update_fields=[*changed, "summary_status", "index_rev", "updated_at"])
            if "custom_metadata" in changed and description is None:
                summary_refresh(document)
            changes = {name: {"before": before[name], "after": getattr(document, name)} for name in changed}
            audit(
                actor, "knowledge.updated", document, target_type="knowledge", title=document.title, changed_fields=changed, changes=changes
            )
            publish(DocumentsRefiled(space_id=document.space_id, document_ids=(document.pk,)))
    return document


def documents_delete(*, actor: Actor, base: KnowledgeBase, documents: Sequence[Document]) -> Deleted:
    """Make documents of one base tombstones: invisible in the same transaction, and gone from the index.

    For as many days as the trash keeps them they can be brought back; without a trash, rows and files follow in the background.

    Raises: Conflict while one of them is being moved. A second call changes nothing.
    """
    authorize(actor, "document.delete", base)
    now = timezone.now()
    purge_at = purge_time(now)
    ids = [document.pk for document in documents]
    with transaction.atomic():
        check_not_moving(base, ids)
        live = list(Document.objects.filter(kb=base, pk__in=ids, deleted_at__isnull=True).order_by("pk").values_list("pk", flat=True))
        for start in range(0, len(live), SLICE):
            part = live[start : start + SLICE]
            if purge_at is not None:
                _keep_tags(part)
            Document.objects.filter(pk__in=part, deleted_at__isnull=True).update(**tombstone(now, purge_at))
            DocumentTag.objects.filter(document_id__in=part).delete()
        if not live:
            latest = CleanupRun.objects.filter(space_id=base.space_id).order_by("-pk").values_list("pk", flat=True).first()
            return Deleted(f"cleanup-{latest or 0}", 0)
        gone = [document for document in documents if document.pk in set(live)]
        titles = [document.title for document in gone]
        uids = [str(document.uid) for document in gone]
        if all(document.type == Document.Type.PAIR for document in gone):
            audit(actor, "faq.deleted", base, target_type="knowledge_base", title=base.name, titles=titles[:50], count=len(live))
        elif len(live) == 1:
            audit(actor, "knowledge.deleted", gone[0], target_type="knowledge", title=titles[0], type=documents[0].type)
        else:
            audit(
                actor, "knowledge.batch_deleted", base, target_type="knowledge_base", titles=titles[:50], count=len(live), document_ids=uids
            )
        publish(DocumentsDeleted(space_id=base.space_id, kb_id=base.pk, document_ids=tuple(live)))
        if purge_at is not None:
            return Deleted(f"trash-{int(now.timestamp() * 1000)}", len(live))
        run = CleanupRun.objects.create(space_id=base.space_id, kind=CLEANUP, document_refs=live, progress_total=len(live))
        enqueue(run)
    return Deleted(f"cleanup-{run.pk}", len(live))


def _keep_tags(pks: Sequence[int]) -> None:
    """Remember the tags of documents that go into the trash: there they count for nothing."""
    tags: dict[int, list[int]] = {}
    for document, tag in DocumentTag.objects.filter(document_id__in=pks).order_by("pk").values_list("document_id", "tag_id"):
        tags.setdefault(document, []).append(tag)
    rows = [Document(pk=pk, trashed_tags=found) for pk, found in tags.items()]
    if rows:
        Document.objects.bulk_update(rows, ["trashed_tags"], batch_size=SLICE)


def locked_document(document: Document) -> Document:
    """The row as it is, with its base, held until the transaction ends."""
    return Document.objects.select_related("kb").select_for_update(of=("self",)).get(pk=document.pk, deleted_at__isnull=True)
