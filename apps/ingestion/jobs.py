"""The kinds of background work of this context."""

from __future__ import annotations

from django.conf import settings

from apps.common.jobs.registry import JobKind, job_kinds
from apps.ingestion import services
from apps.ingestion.embedding import embed_work
from apps.ingestion.models import IngestionRun, ReindexRun
from apps.ingestion.pipeline import ocr_work, parse_work
from apps.ingestion.reindexing import reindex_work

job_kinds.add(
    services.PARSE,
    JobKind(services.PARSE, IngestionRun, "parse", parse_work, lambda: settings.PARSE_CONCURRENCY, services.run_ended),
)
job_kinds.add(services.OCR, JobKind(services.OCR, IngestionRun, "ocr", ocr_work, lambda: 1, services.run_ended))
job_kinds.add(services.EMBED, JobKind(services.EMBED, IngestionRun, "embed", embed_work, lambda: 1, services.run_ended))
job_kinds.add(
    services.EMBED_REMOTE,
    JobKind(services.EMBED_REMOTE, IngestionRun, "embed", embed_work, lambda: settings.EMBED_REMOTE_CONCURRENCY, services.run_ended),
)
job_kinds.add(services.REINDEX, JobKind(services.REINDEX, ReindexRun, "embed", reindex_work, lambda: 2, services.reindex_ended))
