"""The kinds of background work of this context."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from apps.common.jobs.claims import Claim
from apps.common.jobs.registry import JobKind, job_kinds
from apps.ingestion import services
from apps.ingestion.embedding import embed_work
from apps.ingestion.enriching import cancel_enrich, enrich_ended, enrich_work, retry_enrich
from apps.ingestion.lookers import cancel_looking, describe_work, looking_ended, read_pictures_work, retry_looking
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
for _kind, _queue, _work, _concurrency in (
    (services.PICTURES, "ocr", read_pictures_work, lambda: 1),
    (services.DESCRIBE, "embed", describe_work, lambda: settings.EMBED_REMOTE_CONCURRENCY),
):
    _looking = JobKind(_kind, IngestionRun, _queue, _work, _concurrency, looking_ended, retry=retry_looking, cancel=cancel_looking)
    job_kinds.add(_kind, _looking)
job_kinds.add(
    services.REINDEX,
    JobKind(
        services.REINDEX, ReindexRun, "embed", reindex_work, lambda: 2, services.reindex_ended, retry=retry_reindex, cancel=cancel_reindex
    ),
)
