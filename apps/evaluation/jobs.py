"""The kind of background work of this context."""

from __future__ import annotations

from typing import Any

from apps.common.jobs.registry import JobKind, job_kinds
from apps.evaluation.models import EvaluationRun
from apps.evaluation.services import EVALUATE, run_cancel, run_retry
from apps.evaluation.working import end_evaluation, work_evaluation


def _again(actor: Any, run: Any) -> None:
    run_retry(actor=actor, run=run)


def _stop(actor: Any, run: Any) -> None:
    run_cancel(actor=actor, run=run)


job_kinds.add(
    EVALUATE,
    JobKind(
        EVALUATE, EvaluationRun, "maintenance", work_evaluation, lambda: 1, end_evaluation, max_takeovers=20, retry=_again, cancel=_stop
    ),
)
