"""Runs that turn files into passages, and the stages they went through."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.common.jobs.models import Run
from apps.common.scope import SpaceOwned
from apps.knowledge.models import Document, KnowledgeBase


class IngestionRun(Run):
    """One pass over one document: `kind` is parse, ocr or embed; `document_attempt` the attempt of the trace it belongs to."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="runs")
    document_attempt = models.PositiveIntegerField()
    options = models.JSONField(default=dict)

    class Meta(Run.Meta):
        constraints: ClassVar = [
            *Run.Meta.constraints,
            # At most one live run of a kind per document: a double click or a race cannot start two.
            models.UniqueConstraint(
                fields=["document", "kind"], condition=models.Q(state__in=["queued", "running"]), name="ingestion_run_one_live"
            ),
        ]


class FilePassword(SpaceOwned):
    """The sealed one-off password a run opens its file with; see `apps.ingestion.passwords`."""

    run = models.OneToOneField(IngestionRun, on_delete=models.CASCADE, related_name="+")
    sealed = models.TextField()
    created_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"password for run {self.run_id}"


class Span(SpaceOwned):
    """A stage or part of one in an attempt's trace (contract knowledge 4.18)."""

    class Status(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        SKIPPED = "skipped"
        CANCELLED = "cancelled"

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="spans")
    attempt = models.PositiveIntegerField()
    name = models.CharField(max_length=64)
    kind = models.CharField(max_length=16, default="stage")  # root stage subspan generation
    parent_name = models.CharField(max_length=64, blank=True)
    status = models.CharField(max_length=12, choices=Status, default=Status.RUNNING)
    input = models.JSONField(null=True)
    output = models.JSONField(null=True)
    error_code = models.CharField(max_length=40, blank=True)
    error_message = models.TextField(blank=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "attempt", "name"], name="ingestion_span_once")]

    def __str__(self) -> str:
        return f"{self.name} of {self.document_id}/{self.attempt}"


class ReindexRun(Run):
    """A base on its way to the vectors of another model. The old ones serve until `switched_at`, when the new ones took over.

    `target_model_id` is the base's choice ("" follows the deployment); `target_space` is known once the model has been asked.
    """

    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="reindex_runs")
    target_model_id = models.CharField(max_length=128, blank=True)
    target_space = models.CharField(max_length=160, blank=True)
    from_space = models.CharField(max_length=160, blank=True)
    starter_id = models.UUIDField(null=True)
    switched_at = models.DateTimeField(null=True)

    class Meta(Run.Meta):
        constraints: ClassVar = [
            *Run.Meta.constraints,
            models.UniqueConstraint(
                fields=["kb"], condition=models.Q(state__in=["queued", "running"]), name="ingestion_reindexrun_one_live"
            ),
        ]
