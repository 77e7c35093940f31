"""Shapes of copies of bases (contract knowledge 3.8, 3.9)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.knowledge.api.serializers.bases import BaseOut
from apps.knowledge.models import CopyRun

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


class DuplicatedOut(serializers.Serializer[Any]):
    source_id = serializers.UUIDField()
    target_id = serializers.UUIDField()
    message = serializers.CharField()
    knowledge_base = BaseOut()
