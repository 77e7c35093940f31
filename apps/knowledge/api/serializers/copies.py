"""Shapes of copies of bases (contract knowledge 3.8, 3.9)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from apps.knowledge.api.serializers.bases import BaseOut
from apps.knowledge.models import CopyRun
from apps.knowledge.reasons import copy_error

CLIENT_NAMES = {"sourceId": "source_id", "targetId": "target_id", "taskId": "task_id"}


class CopyIn(serializers.Serializer[Any]):
    source_id = serializers.CharField()
    target_id = serializers.CharField(required=False, allow_blank=True, allow_null=True, default="", help_text="Empty: a new base.")
    task_id = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, default="", max_length=160, help_text="Leave it out, and one is made."
    )

    def to_internal_value(self, data: Any) -> Any:
        named = {CLIENT_NAMES.get(name, name): value for name, value in data.items()}
        values = super().to_internal_value(named)
        return {name: value or "" for name, value in values.items()}


class CopyStartedOut(serializers.Serializer[CopyRun]):
    """`target_id` is empty for a new base: it is not there for anybody yet."""

    task_id = serializers.CharField()
    source_id = serializers.UUIDField(source="source_uid")
    target_id = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()

    def get_target_id(self, run: CopyRun) -> str:
        return "" if run.is_new else str(run.target_uid)

    def get_message(self, run: CopyRun) -> str:
        return "Copy started"


class CopyProgressOut(serializers.Serializer[CopyRun]):
    """Unix seconds, as the contract has them on task rows."""

    STATES: ClassVar[dict[str, str]] = {
        "queued": "pending", "running": "processing", "done": "completed", "failed": "failed", "cancelled": "failed",
    }  # fmt: skip
    MESSAGES: ClassVar[dict[str, Any]] = {
        "queued": _("Waiting for its turn."),
        "running": _("Being copied."),
        "done": _("Copied."),
        "failed": _("The copy failed."),
        "cancelled": _("The copy was stopped."),
    }

    task_id = serializers.CharField()
    source_id = serializers.UUIDField(source="source_uid")
    target_id = serializers.UUIDField(source="target_uid")
    status = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField(help_text="0 to 100")
    total = serializers.IntegerField(source="progress_total")
    processed = serializers.IntegerField(source="progress_done")
    failed = serializers.IntegerField(source="progress_failed", help_text="Copied without their original, which the store had lost.")
    removed = serializers.IntegerField(help_text="Documents deleted from a mirrored target.")
    message = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    created_at = serializers.SerializerMethodField()
    updated_at = serializers.SerializerMethodField()

    def get_status(self, run: CopyRun) -> str:
        return self.STATES[run.state]

    def get_progress(self, run: CopyRun) -> int:
        return 100 if run.state == "done" else min(99, run.progress_done * 100 // max(1, run.progress_total))

    def get_message(self, run: CopyRun) -> str:
        return str(self.MESSAGES[run.state])

    def get_error(self, run: CopyRun) -> str:
        return copy_error(run.state, run.reason)

    def get_created_at(self, run: CopyRun) -> int:
        return int(run.created_at.timestamp())

    def get_updated_at(self, run: CopyRun) -> int:
        return int((run.finished_at or run.updated_at).timestamp())


class DuplicatedOut(serializers.Serializer[Any]):
    source_id = serializers.UUIDField()
    target_id = serializers.UUIDField()
    message = serializers.CharField()
    knowledge_base = BaseOut()
