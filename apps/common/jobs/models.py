"""The abstract row every kind of background work has."""

from __future__ import annotations

from django.db import models

from apps.common.scope import SpaceOwned


class RunState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


#: state -> states it may turn into; QUEUED again is a retry or a worker that gave the row back
TRANSITIONS: dict[str, frozenset[str]] = {
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.CANCELLED, RunState.FAILED}),
    RunState.RUNNING: frozenset({RunState.DONE, RunState.FAILED, RunState.CANCELLED, RunState.QUEUED}),
    RunState.DONE: frozenset(),
    RunState.FAILED: frozenset({RunState.QUEUED}),
    RunState.CANCELLED: frozenset(),
}
LIVE = (RunState.QUEUED, RunState.RUNNING)


class Run(SpaceOwned):
    """One unit of work. `claim_token` names the worker's hold on it, `lease_until` how long that hold is believed without a heartbeat.

    `attempt` counts tries after transient errors, `takeovers` the times a hold expired; `not_before` delays a retry.
    """

    kind = models.CharField(max_length=16)
    state = models.CharField(max_length=16, choices=RunState, default=RunState.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    takeovers = models.PositiveIntegerField(default=0)
    claim_token = models.UUIDField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    lease_until = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    progress_done = models.PositiveIntegerField(default=0)
    progress_total = models.PositiveIntegerField(default=0)
    progress_failed = models.PositiveIntegerField(default=0)
    progress_unit = models.CharField(max_length=16, blank=True)
    reason = models.CharField(max_length=32, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    rung_at = models.DateTimeField(null=True)  # when a bell was last sent for it

    class Meta:
        abstract = True
        indexes = [models.Index(fields=["kind", "state", "space", "id"], name="%(app_label)s_%(class)s_pick")]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(state=RunState.RUNNING) | models.Q(claim_token__isnull=False),
                name="%(app_label)s_%(class)s_running_is_claimed",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} run {self.pk} ({self.state})"

    @property
    def is_live(self) -> bool:
        return self.state in LIVE
