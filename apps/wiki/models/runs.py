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


class WikiImportItem(SpaceOwned):
    """One entry of an archive that is imported, and what became of it. `data`: a page as it was understood, `blob`: bytes of a picture.

    A picture that was taken over keeps `handle`, by which pages name it; its bytes go when the run has ended.
    """

    class Kind(models.TextChoices):
        FOLDER = "folder"
        PICTURE = "picture"
        PAGE = "page"

    class State(models.TextChoices):
        WAITING = "waiting"
        CREATED = "created"
        CHANGED = "changed"
        SAME = "same"
        FAILED = "failed"

    run = models.ForeignKey(WikiRun, on_delete=models.CASCADE, related_name="items")
    index = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=Kind)
    path = models.CharField(max_length=4096)
    data = models.JSONField(default=dict)
    blob = models.BinaryField(null=True)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "index"], name="wiki_wikiimportitem_once")]
        indexes: ClassVar = [models.Index(fields=["run", "state", "index"], name="wiki_wikiimportitem_pick")]

    def __str__(self) -> str:
        return self.path
