"""Kinds of background work of this context."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import Conflict
from apps.common.jobs.registry import JobKind, job_kinds
from apps.common.jobs.service import requeue_run
from apps.faq.importing import end_import, work_import
from apps.faq.indexing import end_index, work_index
from apps.faq.models import FaqImportRun, FaqIndexRun
from apps.faq.selectors.entries import import_base
from apps.faq.services import import_cancel
from apps.faq.services.entries import FAQ_INDEX
from apps.faq.services.imports import FAQ_IMPORT


def _stop(actor: Any, run: Any) -> None:
    base = import_base(run)
    if base is None:
        raise Conflict(_("The base was deleted."), code="deleted")
    import_cancel(actor=actor, base=base, run=run)


def _again(_actor: Any, run: Any) -> None:
    if FaqImportRun.objects.filter(kb_ref=run.kb_ref, pk__gt=run.pk).exists():
        raise Conflict(_("Something else was imported there since. Import the file again."), code="import_superseded")
    requeue_run(run)


job_kinds.add(
    FAQ_IMPORT,
    JobKind(FAQ_IMPORT, FaqImportRun, "maintenance", work_import, lambda: 1, end_import, max_takeovers=20, retry=_again, cancel=_stop),
)
job_kinds.add(FAQ_INDEX, JobKind(FAQ_INDEX, FaqIndexRun, "maintenance", work_index, lambda: 1, end_index, max_takeovers=20))
