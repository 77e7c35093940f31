"""Shapes of evaluations (contract content 10, and the product's own)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.common.api.views import PageQuery
from apps.common.jobs.models import RunState
from apps.evaluation.models import EvaluationRun
from apps.evaluation.selectors import Comparison, Difference, run_means_now

#: contract: 0 pending, 1 running, 2 success, 3 failed
STATUS = {RunState.QUEUED: 0, RunState.RUNNING: 1, RunState.DONE: 2, RunState.FAILED: 3, RunState.CANCELLED: 3}
RETRIEVAL = ("precision", "recall", "ndcg3", "ndcg10", "mrr", "map")
GENERATION = ("bleu1", "bleu2", "bleu4", "rouge1", "rouge2", "rougel")


class EvaluationIn(serializers.Serializer[Any]):
    dataset_id = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, help_text="A question set; `default`: questions drawn from the base itself."
    )
    knowledge_base_id = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, help_text="Without it: the base that was changed last."
    )
    chat_id = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, help_text="A chat model, or `extractive`; without it the first of the space."
    )
    rerank_id = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, help_text="Accepted; what the base is set to ranks."
    )


class TaskQuery(serializers.Serializer[Any]):
    task_id = serializers.CharField()


class EvaluationOut(serializers.Serializer[Any]):
    """Contract content 10, Detail."""

    task = serializers.DictField()
    params = serializers.DictField()
    metric = serializers.DictField(required=False)

    def to_representation(self, run: EvaluationRun) -> dict[str, Any]:
        figures = run_means_now(actor=self.context["actor"], run=run)
        answer: dict[str, Any] = {
            "task": {
                "id": str(run.uid),
                "tenant_id": run.space_id,
                "dataset_id": str(run.question_set.uid),
                "start_time": (run.started_at or run.created_at).isoformat(),
                "status": STATUS[RunState(run.state)],
                "total": run.progress_total,
                "finished": run.progress_done,
                **({"err_msg": run.error or run.reason} if run.state in (RunState.FAILED, RunState.CANCELLED) else {}),
            },
            "params": {"knowledge_base_ids": [str(run.kb_uid)], "chat_model_id": run.model_id, "rerank_model_id": ""},
        }
        if figures:
            answer["metric"] = {
                "retrieval_metrics": {name: figures.get(name, 0.0) for name in RETRIEVAL},
                "generation_metrics": {name: figures.get(name, 0.0) for name in GENERATION},
            }
        return answer


class TextsField(serializers.ListField):
    child = serializers.CharField()


class SetQuestionOut(serializers.Serializer[Any]):
    """As a line of a file: names and shapes are checked with the row's number."""

    question = serializers.CharField(required=False)
    expected_documents = TextsField(required=False)
    expected_passages = TextsField(required=False)
    expected_answer = TextsField(required=False)


class QuestionSetIn(serializers.Serializer[Any]):
    name = serializers.CharField()
    questions = serializers.ListField(child=serializers.JSONField(), help_text="Objects as the lines of a file.")


class SetFileIn(serializers.Serializer[Any]):
    file = serializers.FileField(help_text="JSON lines or CSV: question, expected_documents, expected_passages, expected_answer.")
    name = serializers.CharField(required=False, allow_blank=True, help_text="Without it: the name of the file.")


class SetDrawIn(serializers.Serializer[Any]):
    knowledge_base_id = serializers.CharField()
    name = serializers.CharField(required=False, allow_blank=True)
    size = serializers.IntegerField(required=False, default=100, min_value=1, max_value=500)


class QuestionSetOut(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="uid")
    name = serializers.CharField()
    file_name = serializers.CharField()
    questions = serializers.IntegerField(source="size")
    created_at = serializers.DateTimeField()


class QuestionSetDetailOut(QuestionSetOut):
    """With one page of its questions."""

    items = SetQuestionOut(many=True)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        rows = [
            {
                "question": row.text,
                "expected_documents": row.documents,
                "expected_passages": row.passages,
                "expected_answer": row.answers,
            }
            for row in self.context["questions"]
        ]
        return {**QuestionSetOut(instance).data, "items": rows}


class RunsQuery(PageQuery):
    set_id = serializers.CharField(required=False, allow_blank=True)


class EvaluationRunIn(serializers.Serializer[Any]):
    set_id = serializers.CharField()
    knowledge_base_id = serializers.CharField()
    model_id = serializers.CharField(
        required=False, allow_blank=True, help_text="Empty: the search alone; `extractive`; or a chat model of the space."
    )
    note = serializers.CharField(required=False, allow_blank=True, max_length=200)


class EvaluationRunOut(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="uid")
    set_id = serializers.UUIDField(source="question_set.uid")
    set_name = serializers.CharField(source="question_set.name")
    knowledge_base_id = serializers.UUIDField(source="kb_uid")
    knowledge_base_name = serializers.CharField(source="kb_name")
    model_id = serializers.CharField()
    note = serializers.CharField()
    state = serializers.CharField()
    reason = serializers.CharField()
    error = serializers.CharField()
    total = serializers.IntegerField(source="progress_total")
    done = serializers.IntegerField(source="progress_done")
    failed = serializers.IntegerField(source="progress_failed")
    metrics = serializers.DictField(child=serializers.FloatField())
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class EvaluationRunDetailOut(EvaluationRunOut):
    """With the figures by now."""

    def to_representation(self, instance: Any) -> dict[str, Any]:
        return {**super().to_representation(instance), "metrics": run_means_now(actor=self.context["actor"], run=instance)}


class ResultsQuery(PageQuery):
    only_bad = serializers.BooleanField(required=False, default=False)


class EvaluationResultOut(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    question = serializers.CharField(source="question.text")
    expected_documents = serializers.JSONField(source="question.documents")
    expected_passages = serializers.JSONField(source="question.passages")
    expected_answer = serializers.JSONField(source="question.answers")
    found = serializers.JSONField()
    missing = serializers.JSONField()
    answer = serializers.CharField()
    cited = serializers.JSONField()
    metrics = serializers.JSONField()
    error = serializers.CharField()
    search_ms = serializers.FloatField()
    answer_ms = serializers.FloatField(allow_null=True)
    is_bad = serializers.BooleanField()


class CompareQuery(serializers.Serializer[Any]):
    with_ = serializers.CharField()

    def get_fields(self) -> dict[str, Any]:
        return {"with": serializers.CharField(help_text="The earlier run.")}


class EvaluationComparisonOut(serializers.Serializer[Any]):
    asked = serializers.IntegerField(help_text="Questions both runs asked.")
    figures = serializers.DictField(help_text="{name: [before, after]}")
    better = serializers.ListField(child=serializers.DictField())
    worse = serializers.ListField(child=serializers.DictField())

    def to_representation(self, found: Comparison) -> dict[str, Any]:
        return {
            "asked": found.asked,
            "figures": {name: list(pair) for name, pair in found.figures.items()},
            "better": [difference_row(row) for row in found.better],
            "worse": [difference_row(row) for row in found.worse],
        }


def difference_row(row: Difference) -> dict[str, Any]:
    return {
        "index": row.after.index,
        "question": row.after.question.text,
        "figure": row.figure,
        "change": row.change,
        "before": row.before.metrics,
        "after": row.after.metrics,
    }
