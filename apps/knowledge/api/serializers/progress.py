"""Where a long task is, in the shape the contract gives every one of them (contract knowledge 1.8)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from apps.knowledge.models import CopyRun, MoveRun
from apps.knowledge.reasons import copy_error, move_problems


class TaskProgressOut(serializers.Serializer[Any]):
    """Unix seconds, as the contract has them on task rows."""

    STATES: ClassVar[dict[str, str]] = {
        "queued": "pending", "running": "processing", "done": "completed", "failed": "failed", "cancelled": "failed",
    }  # fmt: skip

    task_id = serializers.CharField()
    status = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField(help_text="0 to 100")
    total = serializers.IntegerField(source="progress_total")
    processed = serializers.IntegerField(source="progress_done")
    failed = serializers.IntegerField(source="progress_failed")
    message = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    created_at = serializers.SerializerMethodField()
    updated_at = serializers.SerializerMethodField()

    def get_status(self, run: Any) -> str:
        return self.STATES[run.state]

    def get_progress(self, run: Any) -> int:
        return 100 if run.state == "done" else min(99, run.progress_done * 100 // max(1, run.progress_total))

    def get_message(self, run: Any) -> str:
        raise NotImplementedError

    def get_error(self, run: Any) -> str:
        return str(run.error)

    def get_created_at(self, run: Any) -> int:
        return int(run.created_at.timestamp())

    def get_updated_at(self, run: Any) -> int:
        return int((run.finished_at or run.updated_at).timestamp())


class MoveProgressOut(TaskProgressOut):
    source_kb_id = serializers.UUIDField(source="source_uid")
    target_kb_id = serializers.UUIDField(source="target_uid")

    def get_error(self, run: MoveRun) -> str:
        return " ".join(move_problems(run.error))

    def get_message(self, run: MoveRun) -> str:
        return str(
            _("%(done)d of %(total)d documents moved.") % {"done": run.progress_done - run.progress_failed, "total": run.progress_total}
        )


class CopyProgressOut(TaskProgressOut):
    MESSAGES: ClassVar[dict[str, Any]] = {
        "queued": _("Waiting for its turn."),
        "running": _("Being copied."),
        "done": _("Copied."),
        "failed": _("The copy failed."),
        "cancelled": _("The copy was stopped."),
    }

    source_id = serializers.UUIDField(source="source_uid")
    target_id = serializers.UUIDField(source="target_uid")
    failed = serializers.IntegerField(source="progress_failed", help_text="Copied without their original, which the store had lost.")
    removed = serializers.IntegerField(help_text="Documents deleted from a mirrored target.")

    def get_message(self, run: CopyRun) -> str:
        return str(self.MESSAGES[run.state])

    def get_error(self, run: CopyRun) -> str:
        return copy_error(run.state, run.reason)
