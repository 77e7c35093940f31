"""Proof that database, index and file store agree, and the repair of what does not (`manage.py reconcile`)."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.common import storage
from apps.common.actor import Actor
from apps.common.jobs.models import LIVE
from apps.common.jobs.service import enqueue
from apps.common.scope import space_scope, unscoped
from apps.ingestion import services
from apps.ingestion.models import IngestionRun
from apps.knowledge import files
from apps.knowledge.models import CleanupRun, Document, DocumentImage, KnowledgeBase, ParseStatus
from apps.knowledge.models.document import IN_FLIGHT
from apps.knowledge.services import trash_expire
from apps.retrieval.services import Drift, index_drift, reconcile_index
from apps.spaces.models import Space

log = logging.getLogger(__name__)

YOUNG_S = 3600.0  # a file younger than this may belong to an upload that has not committed yet


@dataclass(slots=True)
class Findings:
    """What disagrees: index per space, files no row names, rows whose file is gone, documents in flight that nothing works on,
    and documents that were deleted while nobody finishes it."""

    index: dict[int, Drift] = field(default_factory=dict)
    orphan_files: list[str] = field(default_factory=list)
    missing_files: list[str] = field(default_factory=list)
    idle_documents: list[int] = field(default_factory=list)
    unfinished_deletions: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        drift = sum(d.total for d in self.index.values())
        rows = len(self.idle_documents) + len(self.unfinished_deletions)
        return drift + len(self.orphan_files) + len(self.missing_files) + rows


def reconcile(*, repair: bool = True, young_s: float = YOUNG_S) -> Findings:
    """Compare, and unless told otherwise repair: index entries put or dropped, orphan files removed, idle work queued again.

    `young_s`: files changed more recently are left alone; 0 is right only while nothing else runs on this data folder.
    A missing file cannot be repaired; its document stays readable and searchable, and its download says what is missing.

    Raises: StoreUnavailable, before anything is called missing or removed, when the file store cannot be listed.
    """
    found = Findings()
    for space_id in Space.objects.values_list("pk", flat=True):
        with space_scope(space_id, "reconcile"):
            drift = reconcile_index(space_id) if repair else index_drift(space_id)
        if drift.total:
            found.index[space_id] = drift
    _files(found, repair=repair, young_s=young_s)
    _idle(found, repair=repair)
    _expired(found, repair=repair)
    _unfinished(found, repair=repair)
    if found.total:
        log.info(
            "reconcile: %s index entries, %s orphan files, %s missing files, %s idle documents, %s unfinished deletions",
            sum(d.total for d in found.index.values()),
            len(found.orphan_files),
            len(found.missing_files),
            len(found.idle_documents),
            len(found.unfinished_deletions),
        )
    return found


def _files(found: Findings, *, repair: bool, young_s: float) -> None:
    stored = {entry.key: entry.changed_at for entry in files.stored_entries()}
    with unscoped("reconcile of the file store"):
        expected = set(files.expected_keys())
        live = {d for d in Document.objects.filter(deleted_at__isnull=True).values_list("storage_path", flat=True) if d}
        live |= set(DocumentImage.objects.filter(document__deleted_at__isnull=True).values_list("storage_path", flat=True))
    found.missing_files = sorted(live - stored.keys())
    limit = time.time() - young_s
    found.orphan_files = sorted(key for key, changed in stored.items() if key not in expected and changed <= limit)
    if repair:
        files.delete_files(found.orphan_files)
        storage.sweep()


def _idle(found: Findings, *, repair: bool) -> None:
    """Documents that say they are being worked on although no run is alive; the design leaves none, a restored backup may."""
    with unscoped("reconcile of documents in flight"):
        busy = IngestionRun.objects.filter(state__in=LIVE).values("document_id")
        idle = Document.objects.filter(parse_status__in=IN_FLIGHT, deleted_at__isnull=True).exclude(pk__in=busy)
        for document in idle.select_related("kb"):
            found.idle_documents.append(document.pk)
            if repair:
                if document.parse_status == ParseStatus.FINALIZING:
                    services.embed_start(document, {"trigger": "system"})
                else:
                    services.run_start(document, services.PARSE, {"trigger": "system"})


def _expired(found: Findings, *, repair: bool) -> None:
    """What should have left the trash a day ago, had the schedule run."""
    late = timezone.now() - timedelta(days=1)
    for space_id in Space.objects.values_list("pk", flat=True):
        with space_scope(space_id, "reconcile of the trash"):
            alone = Q(kb__deleted_at__isnull=True) | Q(kb__purge_at__lte=late)  # what was in a deleted base goes with it
            overdue = Document.objects.filter(alone, deleted_at__isnull=False, purge_at__lte=late).order_by("pk")
            found.unfinished_deletions.extend(overdue.values_list("pk", flat=True))
            if repair:
                trash_expire(actor=Actor.system(space_id, "the term of the trash is over"))


def _unfinished(found: Findings, *, repair: bool) -> None:
    """Tombstones whose clean-up ended before it was done, because the file store was away for hours: they get another one."""
    with unscoped("reconcile of deletions"), transaction.atomic():
        live = list(CleanupRun.objects.filter(state__in=LIVE).values_list("kb_ref", "document_refs"))
        bases = [kb for kb, _documents in live if kb]
        busy = {pk for _kb, documents in live for pk in documents}
        left = (
            Document.objects.filter(deleted_at__isnull=False, purge_at__isnull=True)
            .exclude(kb__in=bases)
            .order_by("pk")
            .values_list("space_id", "pk")
        )
        spaces: dict[int, list[int]] = {}
        for space_id, pk in left:
            if pk not in busy:
                spaces.setdefault(space_id, []).append(pk)
                found.unfinished_deletions.append(pk)
        if repair:
            for space_id, refs in spaces.items():
                enqueue(CleanupRun.objects.create(space_id=space_id, kind="cleanup", document_refs=refs, progress_total=len(refs)))
            gone = KnowledgeBase.objects.filter(deleted_at__isnull=False, purge_at__isnull=True).exclude(pk__in=bases)
            for base in gone:
                enqueue(CleanupRun.objects.create(space_id=base.space_id, kind="cleanup", kb_ref=base.pk))
