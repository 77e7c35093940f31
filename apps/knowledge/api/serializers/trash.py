"""Shapes of the trash."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.knowledge.models import Document
from apps.knowledge.selectors import TrashRow
from apps.knowledge.services import Restored


class TrashOut(serializers.Serializer[TrashRow]):
    id = serializers.UUIDField(source="base.uid", help_text="Of the knowledge base.")
    name = serializers.CharField(source="base.name")
    is_deleted = serializers.BooleanField(source="is_base", help_text="The base itself is in the trash, with its documents.")
    document_count = serializers.IntegerField(source="documents")
    size_bytes = serializers.IntegerField()
    deleted_at = serializers.DateTimeField(source="base.deleted_at", allow_null=True)
    purge_at = serializers.DateTimeField(source="base.purge_at", allow_null=True, help_text="When it is removed for good.")


class TrashDocumentOut(serializers.Serializer[Document]):
    id = serializers.UUIDField(source="uid")
    knowledge_base_id = serializers.UUIDField(source="kb.uid")
    title = serializers.CharField()
    file_name = serializers.CharField()
    file_type = serializers.CharField()
    file_size = serializers.IntegerField()
    folder_path = serializers.CharField()
    parse_status = serializers.CharField(source="trashed_status", help_text="What it was, and will be again.")
    deleted_at = serializers.DateTimeField()
    purge_at = serializers.DateTimeField(help_text="When it is removed for good.")


class TrashIdsIn(serializers.Serializer[Any]):
    ids = serializers.ListField(child=serializers.CharField(max_length=128, allow_blank=True), min_length=1, max_length=200)


class TrashFailedOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField()
    message = serializers.CharField()


class TrashRestoredOut(serializers.Serializer[Restored]):
    restored_count = serializers.IntegerField(source="count")
    failed = serializers.SerializerMethodField()

    def get_failed(self, restored: Restored) -> list[dict[str, Any]]:
        rows = [{"id": document.uid, "title": document.title, "message": why} for document, why in restored.failed]
        return [dict(row) for row in TrashFailedOut(rows, many=True).data]


class TrashPurgedOut(serializers.Serializer[Any]):
    purged_count = serializers.IntegerField()
