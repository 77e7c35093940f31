"""Background work of this context: finishing deletions, moving documents between bases."""

from __future__ import annotations

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
