"""Kinds of background work of this context."""

from __future__ import annotations

from apps.common.jobs.registry import JobKind, job_kinds
from apps.wiki.importing import end_import, work_import
from apps.wiki.models import WikiRun
from apps.wiki.services.imports import WIKI_IMPORT

job_kinds.add(WIKI_IMPORT, JobKind(WIKI_IMPORT, WikiRun, "maintenance", work_import, lambda: 1, end_import, max_takeovers=20))
