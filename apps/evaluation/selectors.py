"""Reading question sets, runs, results, and what differs between two runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import authorize
from apps.evaluation.measures import ANSWER, NAMES, RETRIEVAL, means
from apps.evaluation.models import EvaluationResult, EvaluationRun, Question, QuestionSet
from apps.knowledge.selectors import as_uuid

__all__ = [
    "ANSWER",
    "NAMES",
    "RETRIEVAL",
    "Comparison",
    "Difference",
    "compare",
    "comparable_runs",
    "question_list",
    "result_list",
    "run_get",
    "run_list",
    "run_means_now",
    "set_get",
    "set_list",
]

#: What decides whether a question went better or worse, first what says most
DECIDING = ("decision", "overlap", "ndcg10", "recall", "citation_precision", "mrr")
SAME = 0.005


def set_list(*, actor: Actor) -> Any:
    """The sets of the space, newest first, with `run_count` and `last_run_at`."""
    authorize(actor, "evaluation.manage")
    rows = QuestionSet.objects.visible_to(actor)
    return rows.annotate(run_count=Count("runs"), last_run_at=Max("runs__created_at")).order_by("-created_at", "-pk")


def set_get(*, actor: Actor, set_id: Any) -> QuestionSet:
    """Raises: NotFound."""
    authorize(actor, "evaluation.manage")
    uid = as_uuid(set_id)
    found = QuestionSet.objects.visible_to(actor).filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("Question set not found."))
    return found  # type: ignore[no-any-return]


def question_list(*, actor: Actor, question_set: QuestionSet) -> Any:
    """The questions of a set in their order."""
    authorize(actor, "evaluation.manage", question_set)
    return Question.objects.filter(question_set=question_set).order_by("index")


def run_list(*, actor: Actor, question_set: QuestionSet | None = None) -> Any:
    """Runs, newest first."""
    authorize(actor, "evaluation.manage")
    rows = EvaluationRun.objects.visible_to(actor).select_related("question_set")
    rows = rows if actor.kb_uids is None else rows.filter(kb_uid__in=actor.kb_uids)
    rows = rows.filter(question_set=question_set) if question_set is not None else rows
    return rows.order_by("-created_at", "-pk")


def run_get(*, actor: Actor, run_id: Any) -> EvaluationRun:
    """Raises: NotFound, the same for a foreign id as for one that never was; also for a run against a base the actor's key may not read."""
    authorize(actor, "evaluation.read")
    uid = as_uuid(run_id)
    found = EvaluationRun.objects.visible_to(actor).select_related("question_set").filter(uid=uid).first() if uid else None
    if found is None or (actor.kb_uids is not None and found.kb_uid not in actor.kb_uids):
        raise NotFound(_("Evaluation not found."))
    return found  # type: ignore[no-any-return]


def result_list(*, actor: Actor, run: EvaluationRun, only_bad: bool = False) -> Any:
    """Results in the order of the questions. `only_bad`: where nothing expected was found or the answer is wrong."""
    authorize(actor, "evaluation.manage", run)
    rows = EvaluationResult.objects.filter(run=run).select_related("question")
    return (rows.filter(is_bad=True) if only_bad else rows).order_by("index")


def run_means_now(*, actor: Actor, run: EvaluationRun) -> dict[str, float]:
    """The figures of a run; of one that is going on, over what it has asked by now."""
    authorize(actor, "evaluation.read", run)
    if not run.is_live:
        return dict(run.metrics)
    return means(EvaluationResult.objects.filter(run=run).values_list("metrics", flat=True))


def comparable_runs(*, actor: Actor, run: EvaluationRun) -> list[EvaluationRun]:
    """Other runs of the same set that have results, newest first."""
    rows = run_list(actor=actor, question_set=run.question_set).exclude(pk=run.pk)
    return list(rows.filter(results__isnull=False).distinct()[:50])


@dataclass(frozen=True, slots=True)
class Difference:
    """One question in both runs; `change`: by how much the deciding figure rose."""

    before: EvaluationResult
    after: EvaluationResult
    figure: str
    change: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """`figures`: {name: (before, after)} over the questions both runs asked; `better` and `worse`: those that changed, most first."""

    asked: int
    figures: dict[str, tuple[float, float]]
    better: list[Difference]
    worse: list[Difference]


def compare(*, actor: Actor, before: EvaluationRun, after: EvaluationRun) -> Comparison:
    """What changed between two runs of one set. Raises: InvalidInput when they are of different sets."""
    authorize(actor, "evaluation.manage", before)
    if before.question_set_id != after.question_set_id:
        raise InvalidInput(_("Only runs of the same question set can be compared."), field="with")
    old = {row.index: row for row in result_list(actor=actor, run=before)}
    pairs = [(old[row.index], row) for row in result_list(actor=actor, run=after) if row.index in old]
    both: dict[str, list[tuple[float, float]]] = {}
    for one, other in pairs:
        for name in NAMES:
            if (was := one.metrics.get(name)) is not None and (now := other.metrics.get(name)) is not None:
                both.setdefault(name, []).append((was, now))
    figures = {
        name: (round(sum(was for was, _now in rows) / len(rows), 4), round(sum(now for _was, now in rows) / len(rows), 4))
        for name, rows in sorted(both.items(), key=lambda item: NAMES.index(item[0]))
    }
    changed = [found for one, other in pairs if (found := _difference(one, other)) is not None]
    better = sorted((row for row in changed if row.change > 0), key=lambda row: (-row.change, row.after.index))
    worse = sorted((row for row in changed if row.change < 0), key=lambda row: (row.change, row.after.index))
    return Comparison(len(pairs), figures, better, worse)


def _difference(before: EvaluationResult, after: EvaluationResult) -> Difference | None:
    for name in DECIDING:
        was, now = before.metrics.get(name), after.metrics.get(name)
        if was is not None and now is not None and abs(now - was) > SAME:
            return Difference(before, after, name, round(now - was, 4))
    return None
