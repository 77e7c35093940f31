"""What was deleted, for a while: brought back as it was, or removed for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.events import publish
from apps.common.jobs.service import enqueue
from apps.common.policy import authorize
from apps.knowledge.events import DocumentsRestored, DocumentStored
from apps.knowledge.models import UNREAD, CleanupRun, Document, DocumentTag, KnowledgeBase, ParseStatus, Tag
from apps.knowledge.services.bases import CLEANUP

SLICE = 500


@dataclass(frozen=True, slots=True)
class Restored:
    """`failed`: (document, why it stays in the trash)."""

    count: int
    failed: list[tuple[Document, str]] = field(default_factory=list)


def documents_restore(*, actor: Actor, base: KnowledgeBase, documents: Sequence[Document]) -> Restored:
    """Bring documents of one base back as they were: same ids, folder, those of their tags that are still there, passages and vectors.

    One whose content was added again in the meantime stays in the trash; the others come back. Twice changes nothing.
    """
    authorize(actor, "trash.restore", base)
    back: list[Document] = []
    failed: list[tuple[Document, str]] = []
    with transaction.atomic():
        kept = {tag.pk for tag in Tag.objects.filter(kb=base)}
        rows = Document.objects.filter(kb=base, pk__in=[each.pk for each in documents], deleted_at__isnull=False, purge_at__isnull=False)
        for row in rows.order_by("pk").select_for_update(of=("self",)):
            try:
                with transaction.atomic():
                    _put_back(row, kept)
            except IntegrityError:
                failed.append((row, _("The same content was added again in the meantime. Delete that document first.")))
            else:
                back.append(row)
        if back:
            titles = [row.title for row in back][:50]
            ids = [str(row.uid) for row in back]
            audit(actor, "knowledge.restored", base, target_type="knowledge_base", titles=titles, count=len(back), document_ids=ids)
            _announce(base.space_id, [row.pk for row in back])
    return Restored(len(back), failed)


def _put_back(row: Document, kept_tags: set[int]) -> None:
    tags = [pk for pk in row.trashed_tags if pk in kept_tags]
    Document.objects.filter(pk=row.pk).update(
        deleted_at=None,
        purge_at=None,
        parse_status=row.trashed_status,
        trashed_status="",
        trashed_tags=[],
        index_rev=F("index_rev") + 1,
        updated_at=timezone.now(),
    )
    DocumentTag.objects.bulk_create([DocumentTag(space_id=row.space_id, document=row, tag_id=pk) for pk in tags], ignore_conflicts=True)


def _announce(space_id: int, pks: Sequence[int]) -> None:
    """Documents that were being read are read from the beginning; the others only have to get back into the index."""
    unread = set(Document.objects.filter(pk__in=pks, parse_status__in=UNREAD).values_list("pk", flat=True))
    Document.objects.filter(pk__in=unread).update(parse_status=ParseStatus.PENDING, enabled=False)
    for pk in sorted(unread):
        publish(DocumentStored(space_id=space_id, document_id=pk, trigger="system"))
    if rest := tuple(pk for pk in pks if pk not in unread):
        publish(DocumentsRestored(space_id=space_id, document_ids=rest))


def base_restore(*, actor: Actor, base: KnowledgeBase) -> KnowledgeBase:
    """Bring a deleted base back with every document that was deleted with it; those deleted before stay in its trash.

    Raises: Conflict when it is not in the trash any more.
    """
    authorize(actor, "trash.restore", base)
    with transaction.atomic():
        rows = KnowledgeBase.objects.filter(pk=base.pk, deleted_at__isnull=False, purge_at__isnull=False)
        held = rows.select_for_update(of=("self",)).first()
        if held is None:
            raise Conflict(_("It is not in the trash any more."), code="not_in_trash")
        with_it = Document.objects.filter(kb=base, deleted_at=held.deleted_at, purge_at__isnull=False)
        pks = list(with_it.order_by("pk").values_list("pk", flat=True))
        KnowledgeBase.objects.filter(pk=base.pk).update(deleted_at=None, purge_at=None, updated_at=timezone.now())
        for start in range(0, len(pks), SLICE):
            part = pks[start : start + SLICE]
            Document.objects.filter(pk__in=part).update(
                deleted_at=None, purge_at=None, parse_status=F("trashed_status"), index_rev=F("index_rev") + 1, updated_at=timezone.now()
            )
            Document.objects.filter(pk__in=part).update(trashed_status="")
            _announce(base.space_id, part)
        audit(actor, "kb.restored", base, target_type="knowledge_base", title=base.name, count=len(pks))
    base.refresh_from_db()
    return base


def documents_purge(*, actor: Actor, base: KnowledgeBase, documents: Sequence[Document]) -> int:
    """Remove documents of the trash for good: from now on they cannot come back; rows and files follow in the background. How many."""
    authorize(actor, "trash.purge", base)
    with transaction.atomic():
        pks = _give_up([each.pk for each in documents if each.kb_id == base.pk])
        if pks:
            titles = [each.title for each in documents if each.pk in set(pks)][:50]
            audit(actor, "knowledge.purged", base, target_type="knowledge_base", titles=titles, count=len(pks))
            _clean_up(base.space_id, pks)
    return len(pks)


def base_purge(*, actor: Actor, base: KnowledgeBase) -> None:
    """Remove a deleted base for good, with everything that was in it. Raises: Conflict when it is not in the trash any more."""
    authorize(actor, "trash.purge", base)
    with transaction.atomic():
        if not KnowledgeBase.objects.filter(pk=base.pk, deleted_at__isnull=False, purge_at__isnull=False).update(purge_at=None):
            raise Conflict(_("It is not in the trash any more."), code="not_in_trash")
        Document.objects.filter(kb=base, deleted_at__isnull=False).update(purge_at=None)
        audit(actor, "kb.purged", base, target_type="knowledge_base", title=base.name)
        enqueue(CleanupRun.objects.create(space_id=base.space_id, kind=CLEANUP, kb_ref=base.pk))


def trash_expire(*, actor: Actor, now: datetime | None = None) -> int:
    """Remove for good whatever of a space has been in the trash for its whole term; how many bases and documents. Inside its scope."""
    authorize(actor, "trash.purge")
    due = now or timezone.now()
    bases = list(KnowledgeBase.objects.filter(deleted_at__isnull=False, purge_at__lte=due).order_by("pk"))
    for base in bases:
        base_purge(actor=actor, base=base)
    old = Document.objects.filter(deleted_at__isnull=False, purge_at__lte=due, kb__deleted_at__isnull=True)
    count = len(bases)
    for kb_id in sorted(set(old.values_list("kb_id", flat=True))):
        base = KnowledgeBase.objects.get(pk=kb_id)
        while documents := list(old.filter(kb_id=kb_id).order_by("pk")[:SLICE]):
            count += documents_purge(actor=actor, base=base, documents=documents)
    return count


def _give_up(pks: Sequence[int]) -> list[int]:
    rows = Document.objects.filter(pk__in=pks, deleted_at__isnull=False, purge_at__isnull=False)
    held = list(rows.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True))
    Document.objects.filter(pk__in=held).update(purge_at=None)
    return held


def _clean_up(space_id: int, pks: list[int]) -> None:
    enqueue(CleanupRun.objects.create(space_id=space_id, kind=CLEANUP, document_refs=pks, progress_total=len(pks)))
