"""The kinds of background work of this context."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings

from apps.common.jobs.claims import Claim
from apps.common.jobs.registry import JobKind, job_kinds
from apps.ingestion import services
from apps.ingestion.embedding import embed_work
from apps.ingestion.models import IngestionRun
from apps.ingestion.moderating import cancel_pass, retry_pass
from apps.ingestion.pipeline import ocr_work, parse_work


def _add(name: str, work: Callable[[Claim], None], concurrency: Callable[[], int]) -> None:
    kind = JobKind(name, IngestionRun, name, work, concurrency, services.run_ended, retry=retry_pass, cancel=cancel_pass)
    job_kinds.add(name, kind)


_add(services.PARSE, parse_work, lambda: settings.PARSE_CONCURRENCY)
_add(services.OCR, ocr_work, lambda: 1)
_add(services.EMBED, embed_work, lambda: 1)
