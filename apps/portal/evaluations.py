"""Evaluations as pages show them: figures in words, runs and results as rows."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.actor import Actor
from apps.common.jobs.models import RunState
from apps.common.jobs.service import has_worker
from apps.evaluation.models import EvaluationResult, EvaluationRun
from apps.evaluation.selectors import ANSWER, NAMES, run_means_now
from apps.evaluation.services import EVALUATE

#: figure -> (its name, what it tells)
WORDS: dict[str, tuple[Any, Any]] = {
    "recall1": ("Recall@1", gettext_lazy("what is expected stands first")),
    "recall5": ("Recall@5", gettext_lazy("share of what is expected among the first five")),
    "recall": ("Recall@10", gettext_lazy("share of what is expected among the first ten")),
    "precision": ("Precision@10", gettext_lazy("share of the first ten that is expected")),
    "mrr": ("MRR@10", gettext_lazy("one over the place of the first that is right")),
    "map": ("MAP@10", gettext_lazy("precision at each place that is right")),
    "ndcg3": ("nDCG@3", gettext_lazy("order of the first three")),
    "ndcg10": ("nDCG@10", gettext_lazy("order of the first ten")),
    "decision": (gettext_lazy("Answered rightly or not"), gettext_lazy("answered what can be answered, and said “not found” to the rest")),
    "citation_precision": (gettext_lazy("Citation precision"), gettext_lazy("share of the cited passages that are expected")),
    "overlap": (gettext_lazy("Answer overlap"), gettext_lazy("share of the expected words that the answer says")),
    "bleu1": ("BLEU-1", ""),
    "bleu2": ("BLEU-2", ""),
    "bleu4": ("BLEU-4", ""),
    "rouge1": ("ROUGE-1", ""),
    "rouge2": ("ROUGE-2", ""),
    "rougel": ("ROUGE-L", ""),
}
#: What the lists of runs and results have room for
SHORT = ("recall", "mrr", "ndcg10", "decision", "citation_precision", "overlap")
STATES = {
    RunState.QUEUED: "pending",
    RunState.RUNNING: "processing",
    RunState.DONE: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "cancelled",
}
STATE_WORDS = {
    RunState.QUEUED: gettext_lazy("Waiting"),
    RunState.RUNNING: gettext_lazy("Running"),
    RunState.DONE: gettext_lazy("Done"),
    RunState.FAILED: gettext_lazy("Failed"),
    RunState.CANCELLED: gettext_lazy("Stopped"),
}


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def answered_by(run: EvaluationRun) -> str:
    if not run.model_id:
        return _("search alone")
    return run.model_name or _("built-in answerer")


def short_heads() -> list[Any]:
    return [WORDS[name][0] for name in SHORT]


def run_row(actor: Actor, run: EvaluationRun) -> dict[str, Any]:
    """A run in a list."""
    figures = run_means_now(actor=actor, run=run)
    return {
        "run": run,
        "href": reverse("evaluation-run", args=[run.space_id, run.uid]),
        "state": STATES[RunState(run.state)],
        "word": STATE_WORDS[RunState(run.state)],
        "why": why(run),
        "by": answered_by(run),
        "figures": [(WORDS[name][0], number(figures.get(name))) for name in SHORT],
    }


def why(run: EvaluationRun) -> str:
    """Why it did not end well, "" where it did or has not ended."""
    if run.state == RunState.QUEUED and not has_worker(EVALUATE):
        return _("No worker is running, so it waits. It starts by itself once one does.")
    if run.state != RunState.FAILED:
        return ""
    if run.reason == "deleted":
        return _("The knowledge base was deleted.")
    return _("Something failed that should not have. What was measured by then stays; try again.")


def figure_rows(figures: dict[str, float]) -> list[dict[str, Any]]:
    """Every figure that was measured, with what it tells."""
    return [
        {"name": WORDS[name][0], "note": WORDS[name][1], "value": number(figures[name]), "is_answer": name in ANSWER}
        for name in NAMES
        if name in figures
    ]


def result_row(result: EvaluationResult, space_id: int) -> dict[str, Any]:
    question = result.question
    return {
        "result": result,
        "number": result.index + 1,
        "expected": [*question.documents, *question.passages],
        "answers": question.answers,
        "is_unanswerable": not question.is_answerable,
        "figures": [(WORDS[name][0], number(result.metrics.get(name))) for name in SHORT],
        "found": [
            {**hit, "href": reverse("document-reader", args=[space_id, hit["document"]]), "place": at}
            for at, hit in enumerate(result.found, 1)
        ],
    }
