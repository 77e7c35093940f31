"""Kinds of background work of this context."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import Conflict
from apps.common.jobs.registry import JobKind, job_kinds
from apps.common.jobs.service import requeue_run
from apps.knowledge.copying import end_copy, work_copy
from apps.knowledge.models import CleanupRun, CopyRun, MoveRun
from apps.knowledge.pipeline import end_move, work_cleanup, work_move
from apps.knowledge.services.bases import CLEANUP
from apps.knowledge.services.copies import COPY, stop_run
from apps.knowledge.services.moves import MOVE

CLEANUP_ATTEMPTS = 60  # four hours in which the file store may be away


def _nothing(_run: Any) -> None:
    """A clean-up that ended early leaves tombstones, which `reconcile` finds."""


def _goes_on(_actor: Any, _run: Any) -> None:
    raise Conflict(_("A deletion cannot be stopped: what it removes is gone for everybody already."), code="deletion")


def _over(_actor: Any, run: Any) -> None:
    """What a failed copy into a new base had made is gone with it; onto an existing one it goes on where it stopped."""
    if run.is_new:
        raise Conflict(_("The base made for this copy is gone. Copy again."), code="copy_gone")
    requeue_run(run)


job_kinds.add(
    CLEANUP,
    JobKind(CLEANUP, CleanupRun, "maintenance", work_cleanup, lambda: 1, _nothing, max_attempts=CLEANUP_ATTEMPTS, cancel=_goes_on),
)
job_kinds.add(COPY, JobKind(COPY, CopyRun, "copy", work_copy, lambda: 1, end_copy, max_takeovers=20, retry=_over, cancel=stop_run))
job_kinds.add(MOVE, JobKind(MOVE, MoveRun, "copy", work_move, lambda: 1, end_move))
