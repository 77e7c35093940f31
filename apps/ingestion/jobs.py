"""The kinds of background work of this context."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from apps.common.jobs.claims import Claim
from apps.common.jobs.registry import JobKind, job_kinds
from apps.ingestion import services
from apps.ingestion.embedding import embed_work
from apps.ingestion.enriching import cancel_enrich, enrich_ended, enrich_work, retry_enrich
from apps.ingestion.models import IngestionRun, ReindexRun
from apps.ingestion.moderating import cancel_pass, cancel_reindex, retry_pass, retry_reindex
from apps.ingestion.pipeline import ocr_work, parse_work
from apps.ingestion.reindexing import reindex_work


def _add(name: str, queue: str, work: Callable[[Claim], None], concurrency: Callable[[], int]) -> None:
    kind = JobKind(name, IngestionRun, queue, work, concurrency, services.run_ended, retry=retry_pass, cancel=cancel_pass)
    job_kinds.add(name, kind)


_add(services.PARSE, "parse", parse_work, lambda: settings.PARSE_CONCURRENCY)
_add(services.OCR, "ocr", ocr_work, lambda: 1)
_add(services.EMBED, "embed", embed_work, lambda: 1)
_add(services.EMBED_REMOTE, "embed", embed_work, lambda: settings.EMBED_REMOTE_CONCURRENCY)
job_kinds.add(
    services.ENRICH,
    JobKind(
        services.ENRICH,
        IngestionRun,
        "embed",
        enrich_work,
        lambda: settings.EMBED_REMOTE_CONCURRENCY,
        enrich_ended,
        retry=retry_enrich,
        cancel=cancel_enrich,
    ),
)
job_kinds.add(
    services.REINDEX,
    JobKind(
        services.REINDEX, ReindexRun, "embed", reindex_work, lambda: 2, services.reindex_ended, retry=retry_reindex, cancel=cancel_reindex
    ),
)
