"""Question sets, runs of them against a base, and what came of each question."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from apps.common.jobs.models import Run
from apps.common.scope import SpaceOwned


class QuestionSet(SpaceOwned):
    """Questions with what is expected of them. They never change, so its runs can be compared; a corrected set is another set."""

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    name = models.CharField(max_length=120)
    file_name = models.CharField(max_length=255, blank=True)
    size = models.PositiveIntegerField(default=0)  # how many questions
    creator_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["space", "name"], name="evaluation_questionset_name_once")]

    def __str__(self) -> str:
        return self.name


class Question(SpaceOwned):
    """One question. `index` counts from 0. `documents`: names or ids of which each holds (part of) the answer; `passages`: texts that do.

    `answers`: ways of putting the right answer, any of them will do. With nothing expected at all the right answer is "not found".
    """

    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="questions")
    index = models.PositiveIntegerField()
    text = models.TextField()
    documents = models.JSONField(default=list)
    passages = models.JSONField(default=list)
    answers = models.JSONField(default=list)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["question_set", "index"], name="evaluation_question_once")]

    def __str__(self) -> str:
        return self.text[:80]

    @property
    def is_answerable(self) -> bool:
        return bool(self.documents or self.passages or self.answers)


class EvaluationRun(Run):
    """One pass of a question set over a base. `model_id`: who answers; "" measures the search alone. `metrics`: means over its questions.

    `kb_ref` is no foreign key: results outlive the base.
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    question_set = models.ForeignKey(QuestionSet, on_delete=models.CASCADE, related_name="runs")
    kb_ref = models.BigIntegerField(db_index=True)
    kb_uid = models.UUIDField()
    kb_name = models.CharField(max_length=200)
    model_id = models.CharField(max_length=64, blank=True)
    model_name = models.CharField(max_length=200, blank=True)
    note = models.CharField(max_length=200, blank=True)
    metrics = models.JSONField(default=dict)
    starter_id = models.UUIDField(null=True)


class EvaluationResult(SpaceOwned):
    """What came of one question in one run. `found`: the first hits as {document, title, chunk, score, right}; `metrics` as in
    `apps.evaluation.measures`, null where a figure means nothing for the question. `missing`: expected documents the base does not have.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="results")
    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="+")
    index = models.PositiveIntegerField()
    found = models.JSONField(default=list)
    missing = models.JSONField(default=list)
    answer = models.TextField(blank=True)
    cited = models.JSONField(default=list)
    metrics = models.JSONField(default=dict)
    error = models.CharField(max_length=64, blank=True)
    search_ms = models.FloatField(default=0)
    answer_ms = models.FloatField(null=True)
    is_bad = models.BooleanField(default=False)  # nothing expected was found, or the answer is wrong

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "index"], name="evaluation_result_once")]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.index}"
