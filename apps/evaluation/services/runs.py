"""Starting, stopping and deleting runs; the work itself is `apps.evaluation.working`."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from apps.chat.services.once import BUILT_IN
from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.jobs.models import LIVE, RunState
from apps.common.jobs.service import cancel_run, enqueue, requeue_run
from apps.common.policy import authorize
from apps.evaluation.models import EvaluationRun, QuestionSet
from apps.knowledge.models import KnowledgeBase
from apps.llm.services.chat import chat_models

EVALUATE = "evaluate"
MAX_LIVE = 5


def run_start(*, actor: Actor, question_set: QuestionSet, base: KnowledgeBase, model_id: str = "", note: str = "") -> EvaluationRun:
    """Queue a run. `model_id`: "" measures the search alone, `extractive` the built-in answerer, else a chat model of the space.

    Raises: InvalidInput for a model that is not there; Conflict when too many runs of the space are going on.
    """
    authorize(actor, "evaluation.manage", question_set)
    authorize(actor, "evaluation.manage", base)
    model_name = _model_name(model_id)
    with transaction.atomic():
        if EvaluationRun.objects.filter(state__in=LIVE).count() >= MAX_LIVE:
            raise Conflict(_("Five runs of this space are going on already. Wait, or stop one."), code="too_many_runs")
        run = EvaluationRun.objects.create(
            space_id=base.space_id,
            kind=EVALUATE,
            question_set=question_set,
            kb_ref=base.pk,
            kb_uid=base.uid,
            kb_name=base.name,
            model_id=model_id,
            model_name=model_name,
            note=" ".join(note.replace("\0", "").split())[:200],
            starter_id=actor.user_id,
            progress_total=question_set.size,
            progress_unit="questions",
        )
        audit(
            actor,
            "evaluation.started",
            base,
            outcome="accepted",
            target_type="evaluation_run",
            target_id=str(run.uid),
            title=question_set.name,
            count=question_set.size,
        )
        enqueue(run)
    return run


def _model_name(model_id: str) -> str:
    if model_id in ("", BUILT_IN):
        return ""
    row = next((row for row in chat_models() if str(row.uid) == model_id), None)
    if row is None:
        raise InvalidInput(_("There is no chat model of this id. Leave it out, or choose one of the space."), field="chat_id")
    return str(row.title)[:200]


def run_cancel(*, actor: Actor, run: EvaluationRun) -> bool:
    """Stop a run; what was measured by then stays. False when it had ended already."""
    authorize(actor, "evaluation.manage", run)
    from apps.evaluation.working import end_evaluation

    with transaction.atomic():
        run.refresh_from_db()
        if not run.is_live:
            return False
        was_queued = run.state == RunState.QUEUED
        cancel_run(run)
        if was_queued and run.state == RunState.CANCELLED:
            end_evaluation(run)
    return True


def run_retry(*, actor: Actor, run: EvaluationRun) -> None:
    """Have a failed run go on with the questions it has not asked yet. Raises: Conflict when its base is gone."""
    authorize(actor, "evaluation.manage", run)
    if not KnowledgeBase.objects.filter(pk=run.kb_ref, deleted_at__isnull=True).exists():
        raise Conflict(_("The base was deleted."), code="deleted")
    requeue_run(run)


def run_delete(*, actor: Actor, run: EvaluationRun) -> None:
    """Delete a run with its results. Raises: Conflict while it is going on."""
    authorize(actor, "evaluation.manage", run)
    with transaction.atomic():
        run.refresh_from_db()
        if run.is_live:
            raise Conflict(_("This run is going on. Stop it first."), code="run_live")
        audit(actor, "evaluation.deleted", run, target_type="evaluation_run", target_id=str(run.uid), title=run.question_set.name)
        run.delete()
