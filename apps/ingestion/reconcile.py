"""Proof that database, index and file store agree, and the repair of what does not (`manage.py reconcile`)."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from django.core.files.storage import default_storage
from django.utils import timezone

from apps.common.jobs.models import LIVE
from apps.common.scope import space_scope, unscoped
from apps.ingestion import services
from apps.ingestion.models import IngestionRun
from apps.knowledge import files
from apps.knowledge.models import Document, ParseStatus
from apps.knowledge.models.document import IN_FLIGHT
from apps.retrieval.services import Drift, index_drift, reconcile_index
from apps.spaces.models import Space

log = logging.getLogger(__name__)

YOUNG_S = 3600.0  # a file younger than this may belong to an upload that has not committed yet


@dataclass(slots=True)
class Findings:
    """What disagrees: index per space, files no row names, rows whose file is gone, documents in flight that nothing works on."""

    index: dict[int, Drift] = field(default_factory=dict)
    orphan_files: list[str] = field(default_factory=list)
    missing_files: list[str] = field(default_factory=list)
    idle_documents: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        drift = sum(d.total for d in self.index.values())
        return drift + len(self.orphan_files) + len(self.missing_files) + len(self.idle_documents)


def reconcile(*, repair: bool = True, young_s: float = YOUNG_S) -> Findings:
    """Compare, and unless told otherwise repair: index entries put or dropped, orphan files removed, idle documents queued again.

    `young_s`: files changed more recently are left alone; 0 is right only while nothing else runs on this data folder.
    A missing file cannot be repaired; its document stays readable and searchable, and its download says what is missing.
    """
    found = Findings()
    for space_id in Space.objects.values_list("pk", flat=True):
        with space_scope(space_id, "reconcile"):
            drift = reconcile_index(space_id) if repair else index_drift(space_id)
        if drift.total:
            found.index[space_id] = drift
    _files(found, repair=repair, young_s=young_s)
    _idle(found, repair=repair)
    if found.total:
        log.info(
            "reconcile: %s index entries, %s orphan files, %s missing files, %s idle documents",
            sum(d.total for d in found.index.values()),
            len(found.orphan_files),
            len(found.missing_files),
            len(found.idle_documents),
        )
    return found


def _files(found: Findings, *, repair: bool, young_s: float) -> None:
    stored = {key: _changed_at(key) for key in files.stored_keys()}
    with unscoped("reconcile of the file store"):
        expected = set(files.expected_keys())
        live = {d for d in Document.objects.filter(deleted_at__isnull=True).values_list("storage_path", flat=True) if d}
    found.missing_files = sorted(live - stored.keys())
    limit = time.time() - young_s
    found.orphan_files = sorted(key for key, changed in stored.items() if key not in expected and changed <= limit)
    if repair:
        files.delete_files(found.orphan_files)


def _changed_at(key: str) -> float:
    try:
        return default_storage.get_modified_time(key).timestamp()
    except (FileNotFoundError, NotImplementedError):
        return timezone.now().timestamp()


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
