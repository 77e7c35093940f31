"""Background work on a wiki, and files it begins with."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.common.jobs.models import Run
from apps.common.scope import SpaceOwned


class WikiRun(Run):
    """One piece of work on the wiki of a base; `kind` says which (`wiki_make`, `wiki_upkeep`, `wiki_import`), one live of each.

    `options` are what it was asked for, `cursor` where it stands (a killed run goes on from it), `counts` what it did so far (created,
    changed, proposed, unchanged, failed), `model_name` the model that writes, empty without one.
    """

    kb_ref = models.BigIntegerField(db_index=True)
    kb_uid = models.UUIDField()
    trigger = models.CharField(max_length=16, default="user")  # user | document | setting | schedule
    options = models.JSONField(default=dict)
    cursor = models.JSONField(default=dict)
    counts = models.JSONField(default=dict)
    warnings = models.JSONField(default=list)
    model_name = models.CharField(max_length=128, blank=True)
    starter_id = models.UUIDField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(Run.Meta):
        constraints: ClassVar = [
            *Run.Meta.constraints,
            models.UniqueConstraint(
                fields=["kb_ref", "kind"], condition=models.Q(state__in=["queued", "running"]), name="wiki_wikirun_one_live"
            ),
        ]


class WikiImportFile(SpaceOwned):
    """The archive an import reads, kept in the file store until the run has ended."""

    run = models.OneToOneField(WikiRun, on_delete=models.CASCADE, related_name="archive")
    storage_path = models.CharField(max_length=512)
    file_name = models.CharField(max_length=255)

    def __str__(self) -> str:
        return self.file_name
