"""Rows every context shares: the append-only activity log and the heartbeat of workers."""

from __future__ import annotations

from django.db import models

from apps.common.scope import SpaceOwned


class Activity(SpaceOwned):
    """Who did what to which thing, with what outcome (contract knowledge 10). Append-only; newest first by `pk`."""

    class Outcome(models.TextChoices):
        SUCCESS = "success"
        ACCEPTED = "accepted"
        DENIED = "denied"
        FAILED = "failed"
        PARTIAL = "partial"
        CANCELED = "canceled"

    actor = models.CharField(max_length=80)  # Actor.who
    actor_user_id = models.UUIDField(null=True)
    actor_role = models.CharField(max_length=16, blank=True)
    action = models.CharField(max_length=64)
    scope_type = models.CharField(max_length=32, default="knowledge_base")
    scope_id = models.UUIDField(null=True)
    target_type = models.CharField(max_length=32, blank=True)
    target_id = models.CharField(max_length=64, blank=True)
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.SUCCESS)
    details = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True)
    request_method = models.CharField(max_length=8, blank=True, default="")
    request_path = models.CharField(max_length=255, blank=True, default="")  # without its query; "" for work in the background
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "activities"
        indexes = [models.Index(fields=["space", "scope_id", "-id"], name="common_activity_scope")]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"


class WorkerBeat(models.Model):
    """One row per living worker process; a queue nobody serves is known by its absence here."""

    name = models.CharField(max_length=120, primary_key=True)
    queues = models.JSONField(default=list)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.name
