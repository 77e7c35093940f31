"""`/metrics`: the state of the whole portal from the database's rows, the same from every web process, and what this one measured itself.

A constant number of queries, at most one set every few seconds however often it is asked for. No name, no text, no id of anybody's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Count, Min, Sum
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from apps.common import storage
from apps.common.jobs.models import LIVE, RunState
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.schedule import SCHEDULE
from apps.common.jobs.service import living_workers
from apps.common.measures import REGISTRY
from apps.common.scope import unscoped
from apps.knowledge.models import Document, ParseStatus
from apps.knowledge.reasons import REASONS
from apps.retrieval.services import index_lag
from apps.sources.models import DataSource, SourceItem

log = logging.getLogger(__name__)

ROWS_FOR_S = 5.0
INDEX_FOR_S = 60.0  # reads the revision of every document
OTHER = "other"


def _gauge(name: str, text: str, labels: Iterable[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=list(labels))


class Kept:
    """What a part said last, asked again when it is too old; a part that fails says nothing and is named in `kb_scrape_ok`."""

    def __init__(self, name: str, collect: Callable[[], list[Metric]], keep_s: float) -> None:
        self.name, self._collect, self._keep_s = name, collect, keep_s
        self._lock = threading.Lock()
        self._at = -keep_s
        self._found: list[Metric] = []
        self.well = True

    def metrics(self) -> list[Metric]:
        with self._lock:
            if time.monotonic() - self._at >= self._keep_s:
                try:
                    self._found, self.well = self._collect(), True
                except Exception:
                    log.warning("metrics of %s could not be read", self.name, exc_info=True)
                    self._found, self.well = [], False
                self._at = time.monotonic()
            return self._found

    def forget(self) -> None:
        self._at = -self._keep_s


def _rows() -> list[Metric]:
    with unscoped("metrics of every space"):
        return [*_jobs(), *_workers(), *_documents(), *_sources()]


def _jobs() -> Iterator[Metric]:
    now = timezone.now()
    jobs = _gauge("kb_jobs", "Rows of work that have not ended, by kind and state (queued, running).", ["kind", "state"])
    oldest = _gauge(
        "kb_jobs_oldest_waiting_seconds", "How long the oldest queued row of a kind has been waiting; 0 when none is.", ["kind"]
    )
    failed = _gauge("kb_jobs_failed_last_hour", "Rows that failed within the last hour, by kind and reason.", ["kind", "reason"])
    live: dict[tuple[str, str], tuple[int, timedelta]] = {}
    failures: dict[tuple[str, str], int] = {}
    for model in {kind.model for _name, kind in job_kinds}:
        counted = model.objects.filter(state__in=LIVE).order_by().values_list("kind", "state").annotate(Count("id"), Min("created_at"))
        live |= {(kind, state): (rows, now - since) for kind, state, rows, since in counted}
        names = [name for name, kind in job_kinds if kind.model is model]
        ended = model.objects.filter(kind__in=names, state=RunState.FAILED, finished_at__gte=now - timedelta(hours=1))
        for kind, reason, rows in ended.order_by().values_list("kind", "reason").annotate(Count("id")):
            key = (kind, reason if reason in REASONS else OTHER)
            failures[key] = failures.get(key, 0) + rows
    for name, _kind in job_kinds:
        for state in LIVE:
            jobs.add_metric([name, state], live.get((name, state), (0, timedelta()))[0])
        oldest.add_metric([name], max(0.0, live.get((name, RunState.QUEUED), (0, timedelta()))[1].total_seconds()))
    for (kind, reason), rows in sorted(failures.items()):
        failed.add_metric([kind, reason], rows)
    yield from (jobs, oldest, failed)


def _workers() -> Iterator[Metric]:
    workers = _gauge("kb_workers", "Living workers that serve a queue.", ["queue"])
    alive = _gauge("kb_schedule_alive", "1 while the schedule gives signs of life.")
    beats = living_workers()
    for queue in sorted({kind.queue for _name, kind in job_kinds}):
        workers.add_metric([queue], sum(queue in beat.queues for beat in beats))
    alive.add_metric([], int(any(SCHEDULE in beat.queues for beat in beats)))
    yield from (workers, alive)


def _documents() -> Iterator[Metric]:
    documents = _gauge("kb_documents", "Documents by parse_status.", ["status"])
    stored = _gauge("kb_storage_bytes", "Size of the originals of all documents.")
    rows = Document.objects.filter(deleted_at__isnull=True).order_by().values_list("parse_status").annotate(Count("id"), Sum("file_size"))
    found = {status: (count, size or 0) for status, count, size in rows}
    for status in ParseStatus.values:
        documents.add_metric([status], found.get(status, (0, 0))[0])
    stored.add_metric([], sum(size for _count, size in found.values()))
    yield from (documents, stored)


def _sources() -> Iterator[Metric]:
    sources = _gauge("kb_sources", "Data sources by status (active, paused, error).", ["status"])
    held = _gauge("kb_sources_held_items", "Documents gone at their source that wait for a decision.")
    overdue = _gauge("kb_sources_overdue", "Data sources that were due more than ten minutes ago and have not been started.")
    live = DataSource.objects.filter(deleted_at__isnull=True, kb__deleted_at__isnull=True)
    found = dict(live.order_by().values_list("status").annotate(Count("id")))
    for status in DataSource.Status.values:
        sources.add_metric([status], found.get(status, 0))
    held.add_metric([], SourceItem.objects.filter(state=SourceItem.State.HELD, source__in=live).count())
    overdue.add_metric([], live.filter(next_run_at__lt=timezone.now() - timedelta(minutes=10)).count())
    yield from (sources, held, overdue)


def _index() -> list[Metric]:
    lag = _gauge("kb_index_lag_documents", "Documents on which index and database disagree: missing, stale or orphaned.", ["how"])
    found = index_lag()
    for how, count in (("missing", len(found.missing)), ("stale", len(found.stale)), ("orphaned", len(found.orphaned))):
        lag.add_metric([how], count)
    return [lag]


def _disk() -> list[Metric]:
    free = _gauge("kb_disk_free_bytes", "Free space on the disk of the data folder.")
    refuse = _gauge("kb_disk_refuse_bytes", "Free space below which uploads are refused.")
    free.add_metric([], storage.free_bytes())
    refuse.add_metric([], settings.DISK_REFUSE_BYTES)
    return [free, refuse]


class PortalCollector(Collector):
    """Everything that is the same whichever web process is asked."""

    def __init__(self) -> None:
        self.parts = [Kept("rows", _rows, ROWS_FOR_S), Kept("index", _index, INDEX_FOR_S), Kept("disk", _disk, ROWS_FOR_S)]

    def describe(self) -> list[Metric]:
        return []  # asked when registered, long before there is a database

    def collect(self) -> Iterator[Metric]:
        build = _gauge("kb_build_info", "Always 1; the version of the portal.", ["version"])
        build.add_metric([settings.VERSION], 1)
        yield build
        well = _gauge("kb_scrape_ok", "1 when a part of these metrics could be read, 0 when its metrics are left out.", ["part"])
        for part in self.parts:
            yield from part.metrics()
            well.add_metric([part.name], int(part.well))
        yield well


collector = PortalCollector()
PORTAL = CollectorRegistry()
PORTAL.register(collector)


def exposition() -> bytes:
    """All metrics in Prometheus' text format."""
    return generate_latest(PORTAL) + generate_latest(REGISTRY)
