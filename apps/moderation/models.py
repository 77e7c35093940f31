"""What the admin keeps itself: who opened contents of which space and why, and what was last measured of the store."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.scope import SpaceOwned


class ContentGrant(SpaceOwned):
    """A moderator may read contents of a space they are not in, until `expires_at`, for the reason they gave."""

    moderator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    reason = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["moderator", "expires_at"], name="moderation_grant_live")]

    def __str__(self) -> str:
        return f"{self.moderator_id} may read space {self.space_id}"


class StorageFigure(SpaceOwned):
    """What a base's files take in the store, as last measured. `kb_ref` 0: files under the space's prefix that belong to no base known now.

    Units: bytes.
    """

    kb_ref = models.BigIntegerField()
    originals_bytes = models.BigIntegerField(default=0)
    derived_bytes = models.BigIntegerField(default=0)
    files = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["space", "kb_ref"], name="moderation_figure_once")]

    def __str__(self) -> str:
        return f"files of base {self.kb_ref}"


class StorageReport(models.Model):
    """One measurement of the whole store; the newest is shown, older ones are the history. Units: bytes, milliseconds."""

    measured_at = models.DateTimeField(db_index=True)
    took_ms = models.FloatField()
    files = models.PositiveIntegerField()
    files_bytes = models.BigIntegerField()
    index_bytes = models.BigIntegerField()
    database_bytes = models.BigIntegerField()
    orphan_files = models.PositiveIntegerField()
    missing_files = models.PositiveIntegerField()
    stale_documents = models.PositiveIntegerField()  # index and database disagree
    idle_documents = models.PositiveIntegerField()  # in flight, with nothing working on them

    class Meta:
        verbose_name = _("storage report")

    def __str__(self) -> str:
        return f"storage at {self.measured_at}"
