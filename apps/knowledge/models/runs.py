"""Background work of this context: finishing deletions, copying bases, moving documents between them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.common.jobs.models import Run


class CleanupRun(Run):
    """One deletion to finish. The ids are plain numbers: the rows they name end before this one does.

    `kb_ref`: a deleted base with everything in it; `document_refs`: deleted documents. Either may be empty.
    """

    kb_ref = models.BigIntegerField(null=True)
    document_refs = models.JSONField(default=list)

    class Meta(Run.Meta):
        pass


class CopyRun(Run):
    """A base on its way into another one (contract knowledge 3.9). `task_id` is what clients ask progress by.

    `is_new`: the target was made for this copy and is hidden until it is whole; otherwise it is mirrored. `removed`: documents of a
    mirrored target that the source does not have.
    """

    task_id = models.CharField(max_length=160, unique=True)
    source_ref = models.BigIntegerField()
    target_ref = models.BigIntegerField()
    source_uid = models.UUIDField()
    target_uid = models.UUIDField()
    name = models.CharField(max_length=200, blank=True)
    is_new = models.BooleanField()
    removed = models.PositiveIntegerField(default=0)
    starter_id = models.UUIDField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(Run.Meta):
        constraints: ClassVar = [
            *Run.Meta.constraints,
            models.UniqueConstraint(
                fields=["target_ref"], condition=models.Q(state__in=["queued", "running"]), name="knowledge_copyrun_one_live"
            ),
        ]


class MoveRun(Run):
    """Documents on their way to another base (contract knowledge 4.15). `task_id` is what clients ask progress by."""

    class Mode(models.TextChoices):
        REUSE = "reuse_vectors"
        REPARSE = "reparse"

    task_id = models.CharField(max_length=160, unique=True)
    source_ref = models.BigIntegerField()
    target_ref = models.BigIntegerField()
    source_uid = models.UUIDField()
    target_uid = models.UUIDField()
    document_refs = models.JSONField(default=list)
    mode = models.CharField(max_length=16, choices=Mode)
    starter_id = models.UUIDField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(Run.Meta):
        pass
