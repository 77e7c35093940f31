"""Shapes of passages, their revisions, and activity (contract knowledge 7, 10)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from rest_framework import serializers

from apps.common.activity import redacted
from apps.common.api.views import PageQuery
from apps.common.models import Activity
from apps.knowledge.api.serializers.fields import Flag, Moment, TextList
from apps.knowledge.models import Chunk, ChunkRevision
from apps.knowledge.selectors import changes_of


class ChunkListQuery(PageQuery):
    """`page_size` above 100 is clamped (contract knowledge 1.6)."""

    default_page_size: ClassVar[int] = 10
    page_size = serializers.IntegerField(required=False, default=10, min_value=0, max_value=1000)
    chunk_type = TextList(required=False, help_text="Repeat for several; default text.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        attrs["page_size"] = min(attrs["page_size"], 100)
        return attrs


class ChunkUpdateIn(serializers.Serializer[Any]):
    content = serializers.CharField(required=False, allow_blank=True, allow_null=True, trim_whitespace=False)
    is_enabled = Flag(required=False, allow_null=True)
    expected_revision = serializers.IntegerField(required=False, allow_null=True, help_text="`content_revision` you edited; 409 otherwise.")


class RevertIn(serializers.Serializer[Any]):
    revision = serializers.IntegerField(min_value=0)
    expected_revision = serializers.IntegerField(required=False, allow_null=True)


class QuestionIn(serializers.Serializer[Any]):
    question = serializers.CharField(allow_blank=True, trim_whitespace=False, max_length=20_000)
    question_id = serializers.CharField(required=False, allow_blank=True, allow_null=True, help_text="Left out: a new question is added.")


class QuestionDeleteIn(serializers.Serializer[Any]):
    question_id = serializers.CharField()


class QuestionOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    question = serializers.CharField()
    content_revision = serializers.IntegerField(help_text="Of the text it was written for; another than the passage's: possibly stale.")


class ChunkOut(serializers.Serializer[Chunk]):
    id = serializers.UUIDField(source="uid")
    seq_id = serializers.IntegerField(source="pk")
    tenant_id = serializers.IntegerField(source="space_id")
    knowledge_id = serializers.UUIDField(source="document.uid")
    knowledge_base_id = serializers.UUIDField(source="kb.uid")
    tag_id = serializers.SerializerMethodField()
    content = serializers.CharField()
    content_revision = serializers.IntegerField()
    index_status = serializers.CharField()
    last_editor_id = serializers.SerializerMethodField()
    chunk_index = serializers.IntegerField()
    is_enabled = serializers.BooleanField()
    flags = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()
    start_at = serializers.IntegerField()
    end_at = serializers.IntegerField()
    pre_chunk_id = serializers.SerializerMethodField()
    next_chunk_id = serializers.SerializerMethodField()
    parent_chunk_id = serializers.SerializerMethodField()
    chunk_type = serializers.CharField()
    relation_chunks = serializers.SerializerMethodField()
    indirect_relation_chunks = serializers.SerializerMethodField()
    metadata = serializers.JSONField(allow_null=True)
    content_hash = serializers.CharField()
    image_info = serializers.CharField()
    source_locators = serializers.JSONField(source="positions", help_text="Page, sheet and cells, slide or line in the original.")
    heading_path = serializers.JSONField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.SerializerMethodField()

    def get_tag_id(self, chunk: Chunk) -> str:
        return ""

    def get_last_editor_id(self, chunk: Chunk) -> str:
        return str(chunk.last_editor_id or "")

    def get_flags(self, chunk: Chunk) -> int:
        return 1

    def get_status(self, chunk: Chunk) -> int:
        return 2 if chunk.index_status == Chunk.IndexStatus.READY else 0

    def get_pre_chunk_id(self, chunk: Chunk) -> str:
        return self.context.get("neighbours", {}).get(chunk.pk, ("", ""))[0]

    def get_next_chunk_id(self, chunk: Chunk) -> str:
        return self.context.get("neighbours", {}).get(chunk.pk, ("", ""))[1]

    def get_parent_chunk_id(self, chunk: Chunk) -> str:
        return str(chunk.parent.uid) if chunk.parent else ""

    def get_relation_chunks(self, chunk: Chunk) -> list[Any] | None:
        return None

    def get_indirect_relation_chunks(self, chunk: Chunk) -> list[Any] | None:
        return None

    def get_deleted_at(self, chunk: Chunk) -> datetime | None:
        return None


class RevisionOut(serializers.Serializer[ChunkRevision]):
    id = serializers.IntegerField(source="pk")
    tenant_id = serializers.IntegerField(source="space_id")
    knowledge_base_id = serializers.UUIDField(source="chunk.kb.uid")
    knowledge_id = serializers.UUIDField(source="chunk.document.uid")
    chunk_id = serializers.UUIDField(source="chunk.uid")
    revision = serializers.IntegerField()
    content = serializers.CharField()
    is_enabled = serializers.BooleanField()
    editor_id = serializers.SerializerMethodField()
    edit_source = serializers.SerializerMethodField()
    edited_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    editorMember = serializers.SerializerMethodField(help_text="{id, name} of who wrote that text; null when nobody did.")
    editorSourceType = serializers.SerializerMethodField(help_text="user, system (it came from parsing) or unknown.")

    def get_editor_id(self, revision: ChunkRevision) -> str:
        return str(revision.editor_id or "")

    def get_edit_source(self, revision: ChunkRevision) -> str:
        return "user"

    def get_editorMember(self, revision: ChunkRevision) -> dict[str, str] | None:
        return {"id": str(revision.editor.pk), "name": revision.editor.username} if revision.editor else None

    def get_editorSourceType(self, revision: ChunkRevision) -> str:
        if revision.editor_id:
            return "user"
        return "unknown" if revision.revision else "system"


class ActivityQuery(serializers.Serializer[Any]):
    after_id = serializers.CharField(required=False, allow_blank=True, help_text="`next_cursor` of the page before.")
    limit = serializers.CharField(required=False, allow_blank=True, help_text="1 to 100, default 50.")
    action = serializers.CharField(required=False, allow_blank=True)
    outcome = serializers.CharField(required=False, allow_blank=True)
    actor = serializers.CharField(required=False, allow_blank=True)

    def get_fields(self) -> dict[str, Any]:
        return {
            **super().get_fields(),
            "from": Moment(required=False, allow_blank=True, help_text="At or after."),
            "to": Moment(required=False, allow_blank=True, day_end=True, help_text="At or before."),
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        limit = _whole(attrs.get("limit"))
        attrs["limit"] = min(limit, 100) if limit else 50
        attrs["after_id"] = _whole(attrs.get("after_id"))
        return attrs


def _whole(raw: Any) -> int | None:
    text = str(raw or "")
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < 2**63 else None


class ActivityOut(serializers.Serializer[Activity]):
    id = serializers.IntegerField(source="pk")
    tenant_id = serializers.IntegerField(source="space_id")
    actor_user_id = serializers.SerializerMethodField()
    actor_role = serializers.CharField()
    action = serializers.CharField()
    scope_type = serializers.CharField()
    scope_id = serializers.SerializerMethodField()
    target_type = serializers.CharField()
    target_id = serializers.CharField()
    target_user_id = serializers.SerializerMethodField()
    request_path = serializers.CharField()
    request_method = serializers.CharField()
    outcome = serializers.CharField()
    details = serializers.JSONField()
    created_at = serializers.DateTimeField()
    actor = serializers.CharField(help_text="user:<id>, key:<id> or system")
    changes = serializers.SerializerMethodField(help_text="{field: {before, after, redacted}} where the change has them.")
    actorMember = serializers.SerializerMethodField(help_text="{id, name} of the person or key; null when it is gone, or was the system.")
    sourceType = serializers.SerializerMethodField(help_text="user, api_key or system.")

    def get_actor_user_id(self, row: Activity) -> str:
        return str(row.actor_user_id or "")

    def get_scope_id(self, row: Activity) -> str:
        return str(row.scope_id or "")

    def get_target_user_id(self, row: Activity) -> str:
        return ""

    def get_changes(self, row: Activity) -> Any:
        changes = changes_of(row)
        return {each.field: {"before": each.before, "after": each.after, "redacted": each.redacted} for each in changes} or None

    def get_actorMember(self, row: Activity) -> dict[str, str] | None:
        name = self.context.get("actor_names", {}).get(row.actor)
        return {"id": row.actor.partition(":")[2], "name": name} if name else None

    def get_sourceType(self, row: Activity) -> str:
        return {"user": "user", "key": "api_key"}.get(row.actor.partition(":")[0], "system")

    def to_representation(self, row: Activity) -> dict[str, Any]:
        shown = super().to_representation(row)
        shown["details"], _hid = redacted(row.details)
        if shown["changes"] is not None:
            shown["details"]["changes"] = shown["changes"]
        return shown
