"""Data sources of a base, what is known of each thing they hold, and their runs."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any, ClassVar

from django.conf import settings as deployment
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.jobs.models import LIVE, Run, RunState
from apps.common.scope import SpaceOwned, SpaceQuerySet, scoped_manager
from apps.knowledge.models import Document, KnowledgeBase


class SyncMode(models.TextChoices):
    INCREMENTAL = "incremental", _("Only what changed")
    FULL = "full", _("Everything, every time")


class ConflictStrategy(models.TextChoices):
    """What happens to a document that was changed here when it changes at the source as well."""

    OVERWRITE = "overwrite", _("Take over the source's version; the one changed here is kept as an earlier version")
    SKIP = "skip", _("Keep what was changed here")


class DeletionPolicy(models.TextChoices):
    APPLY = "apply", _("Delete it here too")
    HOLD = "hold", _("Keep it and ask an admin")
    IGNORE = "ignore", _("Keep it")


class DataSourceQuerySet(SpaceQuerySet):
    def visible_to(self, actor: Actor) -> DataSourceQuerySet:
        """Live sources of live bases of the actor's space; for a limited API key only those of its bases."""
        rows: Any = super().visible_to(actor).filter(deleted_at__isnull=True, kb__deleted_at__isnull=True, kb__is_hidden=False)
        return rows if actor.kb_uids is None else rows.filter(kb__uid__in=actor.kb_uids)


class DataSource(SpaceOwned):
    """Contract content 7.2. `sealed` holds the credentials (`apps/common/crypto`), which nothing ever shows again.

    `cursor` is what the connector remembers between runs. `selection` names what was selected when it was made: with another selection it
    says nothing any more. `next_run_at` None: it only runs when somebody asks.
    """

    class Status(models.TextChoices):
        ACTIVE = "active", _("Active")
        PAUSED = "paused", _("Paused")
        ERROR = "error", _("Error")

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    type = models.CharField(max_length=32)
    name = models.CharField(max_length=200)
    sealed = models.TextField(blank=True)
    settings = models.JSONField(default=dict)
    resource_ids = models.JSONField(default=list)
    schedule = models.CharField(max_length=120, blank=True)
    time_zone = models.CharField(max_length=64, blank=True)
    sync_mode = models.CharField(max_length=12, choices=SyncMode, default=SyncMode.INCREMENTAL)
    status = models.CharField(max_length=8, choices=Status, default=Status.ACTIVE)
    is_draft = models.BooleanField(default=False)  # being set up in the portal: connected, its schedule not chosen yet
    conflict_strategy = models.CharField(max_length=12, choices=ConflictStrategy, default=ConflictStrategy.OVERWRITE)
    deletion_policy = models.CharField(max_length=8, choices=DeletionPolicy, default=DeletionPolicy.IGNORE)
    log_retention_days = models.PositiveIntegerField(default=30)
    cursor = models.JSONField(null=True)
    selection = models.CharField(max_length=64, blank=True)
    error_code = models.CharField(max_length=32, blank=True)
    error_message = models.TextField(blank=True)
    next_run_at = models.DateTimeField(null=True)
    creator = models.ForeignKey(deployment.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True)

    objects: ClassVar[Any] = scoped_manager(DataSourceQuerySet)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["kb", "deleted_at", "-created_at", "-id"], name="sources_source_list"),
            models.Index(fields=["next_run_at"], condition=models.Q(next_run_at__isnull=False), name="sources_source_due"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid


def item_key(external_id: str) -> str:
    """What an item is found by: ids of sources may be longer than a database index takes."""
    return hashlib.sha256(external_id.encode("utf-8", "surrogatepass")).hexdigest()


class SourceItem(SpaceOwned):
    """What is known of one thing at the source, and the document it became.

    `fingerprint`, `title`, `file_name`, `folder`, `url` are those of the source as last taken over: a document that differs from them was
    changed here. `content_sha256` is of the bytes taken over. `twin`: another document of the base has the same bytes, so this item has
    none of its own. `retry`: the item as it was named when it could not be taken over, to be tried again although no delta names it.
    """

    class State(models.TextChoices):
        LIVE = "live", _("In the base")
        TWIN = "twin", _("Same content as another document")
        SKIPPED = "skipped", _("Nothing to take over")
        REFUSED = "refused", _("Refused")
        FAILED = "failed", _("Could not be read")
        HELD = "held", _("Gone at the source, waits for a decision")
        KEPT = "kept", _("Gone at the source, kept here")
        DELETED = "deleted", _("Gone at the source, deleted here")
        REMOVED = "removed", _("Deleted here")

    source = models.ForeignKey(DataSource, on_delete=models.CASCADE, related_name="items")
    key = models.CharField(max_length=64)
    external_id = models.TextField()
    document = models.ForeignKey(Document, null=True, on_delete=models.SET_NULL, related_name="+")
    twin = models.ForeignKey(Document, null=True, on_delete=models.SET_NULL, related_name="+")
    state = models.CharField(max_length=8, choices=State, default=State.LIVE)
    fingerprint = models.CharField(max_length=256, blank=True)
    content_sha256 = models.CharField(max_length=64, blank=True)
    title = models.CharField(max_length=1024, blank=True)
    file_name = models.CharField(max_length=1024, blank=True)
    folder = models.CharField(max_length=1024, blank=True)
    url = models.CharField(max_length=2048, blank=True)
    resource_id = models.CharField(max_length=512, blank=True)
    reason = models.CharField(max_length=32, blank=True)
    retry = models.JSONField(null=True)
    vanished_at = models.DateTimeField(null=True)
    synced_at = models.DateTimeField(null=True)  # when its content was last taken over
    run_ref = models.BigIntegerField(default=0)  # the run that wrote it last: taken up again after an interruption, it counts once

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["source", "key"], name="sources_sourceitem_once")]
        indexes: ClassVar = [
            models.Index(fields=["source", "state", "id"], name="sources_item_state"),
            models.Index(fields=["source"], condition=models.Q(retry__isnull=False), name="sources_item_retry"),
        ]

    def __str__(self) -> str:
        return self.title or self.external_id


#: States of items that the base holds something of because of the source.
PRESENT = (SourceItem.State.LIVE, SourceItem.State.TWIN)


class SyncRun(Run):
    """One look at a source (contract: SyncLog). Counts are exact: each is raised in the transaction that makes it true.

    `checkpoint` says where to go on after an interruption: the cursor of the last page taken over, what the source said is gone, and
    whether a part could not be listed. `seen` holds, as 8 bytes each, the keys named before it. `listed` is what the source named.
    """

    class Trigger(models.TextChoices):
        MANUAL = "manual", _("by hand")
        SCHEDULE = "schedule", _("on schedule")

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    source = models.ForeignKey(DataSource, on_delete=models.CASCADE, related_name="runs")
    trigger = models.CharField(max_length=8, choices=Trigger, default=Trigger.MANUAL)
    mode = models.CharField(max_length=12, choices=SyncMode, default=SyncMode.INCREMENTAL)
    starter_id = models.UUIDField(null=True)
    listed = models.PositiveIntegerField(default=0)
    created = models.PositiveIntegerField(default=0)
    updated = models.PositiveIntegerField(default=0)
    renamed = models.PositiveIntegerField(default=0)
    deleted = models.PositiveIntegerField(default=0)
    held = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    deletion_failed = models.PositiveIntegerField(default=0)
    errors = models.JSONField(default=list)  # at most 100: {title, code, params, message}
    warnings = models.JSONField(default=list)  # {code, params}
    checkpoint = models.JSONField(null=True)
    seen = models.BinaryField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(Run.Meta):
        indexes: ClassVar = [*Run.Meta.indexes, models.Index(fields=["source", "-id"], name="sources_syncrun_log")]
        constraints: ClassVar = [
            *Run.Meta.constraints,
            models.UniqueConstraint(fields=["source"], condition=models.Q(state__in=LIVE), name="sources_syncrun_one_live"),
        ]

    @property
    def outcome(self) -> str:
        """The contract's word: running, success, partial, failed or canceled."""
        if self.is_live:
            return "running"
        if self.state == RunState.DONE:
            return "partial" if self.failed or self.deletion_failed or self.warnings else "success"
        return "failed" if self.state == RunState.FAILED else "canceled"
