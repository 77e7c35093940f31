"""The work of a run, question by question: each result is stored as it comes, so a worker that takes over asks none of them twice."""

from __future__ import annotations

import time
from typing import Any

from django.db import transaction

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.jobs.claims import Claim, Stop, others_wait
from apps.common.jobs.models import RunState
from apps.evaluation.asking import measure
from apps.evaluation.measures import means
from apps.evaluation.models import EvaluationResult, EvaluationRun, Question
from apps.knowledge.models import KnowledgeBase

SLICE_S = 30.0  # after this long other spaces that wait are let by


def work_evaluation(claim: Claim) -> None:
    """Raises: DomainError when the base is gone; Stop."""
    run = EvaluationRun.objects.select_related("question_set").get(pk=claim.run.pk)
    actor = Actor.system(run.space_id, f"evaluation {run.uid}")
    asked = set(EvaluationResult.objects.filter(run=run).values_list("index", flat=True))
    total, until = run.question_set.size, time.monotonic() + SLICE_S
    for question in Question.objects.filter(question_set=run.question_set).order_by("index"):
        if question.index in asked:
            continue
        claim.check()
        if time.monotonic() > until and others_wait(claim):
            claim.give_way()
            return
        result = measure(actor=actor, run=run, base=_base(run), question=question)
        with transaction.atomic():
            claim.hold()
            result.save()
        asked.add(question.index)
        claim.progress(min(len(asked), max(0, total - 1)), total, "questions")
    _finish(claim, run)


def _base(run: EvaluationRun) -> KnowledgeBase:
    """Looked up before each question: a base that is deleted meanwhile ends the run instead of counting as not found."""
    base = KnowledgeBase.objects.filter(pk=run.kb_ref, deleted_at__isnull=True).first()
    if base is None:
        raise DomainError("the base was deleted", code="deleted")
    return base  # type: ignore[no-any-return]


def run_means(run: EvaluationRun) -> dict[str, float]:
    """Means over the results there are."""
    return means(EvaluationResult.objects.filter(run=run).order_by("index").values_list("metrics", flat=True))


def _finish(claim: Claim, run: EvaluationRun) -> None:
    failed = EvaluationResult.objects.filter(run=run).exclude(error="").count()
    with transaction.atomic():
        claim.hold()
        claim.rows().update(metrics=run_means(run), progress_done=run.question_set.size, progress_failed=failed)
        if not claim.finish(RunState.DONE):
            raise Stop("lost")


def end_evaluation(run: Any) -> None:
    """A run that ended early keeps what it has measured."""
    run.metrics = run_means(run)
    run.progress_done = EvaluationResult.objects.filter(run=run).count()
    run.save(update_fields=["metrics", "progress_done"])
