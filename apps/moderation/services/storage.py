"""Measuring what the portal holds: files by base, the index, the database, and what disagrees."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from apps.common import storage
from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.common.scope import unscoped
from apps.ingestion.reconcile import reconcile
from apps.knowledge.selectors.figures import stored_files
from apps.moderation.models import StorageFigure, StorageReport
from apps.moderation.selectors.disk import database_bytes, index_bytes
from apps.spaces.models import Space

REPORTS_KEPT = 200


@dataclass(slots=True)
class _Sum:
    originals: int = 0
    derived: int = 0
    files: int = 0


def storage_measure(*, actor: Actor) -> StorageReport:
    """The report of a walk over the whole store; repairs nothing (`manage.py reconcile` does). Figures per base are replaced."""
    authorize(actor, "figures.read")
    started = time.perf_counter()
    found = reconcile(repair=False)
    with unscoped("figures of the whole store"):
        owners = {key: (space_id, kb_id, is_original) for key, space_id, kb_id, is_original in stored_files()}
        known = set(Space.objects.values_list("pk", flat=True))
        sums: dict[tuple[int, int], _Sum] = defaultdict(_Sum)
        files = total = 0
        for key in storage.keys():
            try:
                size = storage.size(key)
            except FileNotFoundError:
                continue  # deleted while we walked
            files, total = files + 1, total + size
            space_id, kb_id, is_original = owners.get(key) or (_space_of(key), 0, False)
            if space_id in known:
                line = sums[space_id, kb_id]
                line.files += 1
                line.originals += size if is_original else 0
                line.derived += 0 if is_original else size
        with transaction.atomic():
            StorageFigure.objects.all().delete()
            StorageFigure.objects.bulk_create(
                StorageFigure(space_id=space_id, kb_ref=kb_id, originals_bytes=line.originals, derived_bytes=line.derived, files=line.files)
                for (space_id, kb_id), line in sums.items()
            )
            report = StorageReport.objects.create(
                measured_at=timezone.now(),
                took_ms=(time.perf_counter() - started) * 1000,
                files=files,
                files_bytes=total,
                index_bytes=index_bytes(),
                database_bytes=database_bytes(),
                orphan_files=len(found.orphan_files),
                missing_files=len(found.missing_files),
                stale_documents=sum(drift.total for drift in found.index.values()),
                idle_documents=len(found.idle_documents),
            )
            old = StorageReport.objects.order_by("-pk").values_list("pk", flat=True)[REPORTS_KEPT:]
            StorageReport.objects.filter(pk__in=list(old)).delete()
    return report


def _space_of(key: str) -> int:
    head = key.partition("/")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) < 19 else 0
