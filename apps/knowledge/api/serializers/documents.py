"""Shapes of documents, folders and moves (contract knowledge 4, 5)."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from apps.common.api.views import ObjectField, PageQuery
from apps.common.text import folder_path
from apps.knowledge.api.serializers.fields import CommaList, Flag, LenientFlag, Moment, NullableTextList, TextList
from apps.knowledge.api.serializers.tags import TagOut
from apps.knowledge.models import Document, MoveRun
from apps.knowledge.reasons import message_of
from apps.knowledge.selectors import pair_import_result


class JsonObject(serializers.JSONField):
    """A JSON object in a part of a multipart form."""

    default_error_messages: ClassVar[dict[str, Any]] = {"not_json": _("This is not a JSON object.")}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str) and not data.strip():
            return None
        try:
            value = json.loads(data) if isinstance(data, (str, bytes)) else data
        except ValueError:
            self.fail("not_json")
        if not isinstance(value, dict):
            self.fail("not_json")
        return value


class TextMap(JsonObject):
    """A JSON object whose values are texts."""

    default_error_messages: ClassVar[dict[str, Any]] = {"not_texts": _("Every value must be a text.")}

    def to_internal_value(self, data: Any) -> Any:
        value = super().to_internal_value(data)
        if value is not None and not all(isinstance(item, str) for item in value.values()):
            self.fail("not_texts")
        return value


class UploadIn(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True, max_length=None, use_url=False)
    fileName = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, help_text="May carry a folder path: `manuals/pumps/a.pdf`."
    )
    metadata = TextMap(required=False, allow_null=True, help_text="JSON object of texts.")
    enable_multimodel = Flag(required=False, allow_null=True)
    on_same_name = serializers.ChoiceField(
        choices=("keep", "skip", "version"),
        required=False,
        help_text="When the folder has a file of this name: keep both, skip this one (409), or take it as a new version of that one.",
    )
    process_config = JsonObject(required=False, allow_null=True, help_text="JSON object, see the contract's 4.5.")
    tag_ids = CommaList(required=False, allow_blank=True, help_text="Comma-separated tag ids of this base.")
    channel = serializers.CharField(required=False, allow_blank=True, max_length=32)
    folder_path = serializers.CharField(required=False, allow_blank=True, help_text="Used when the name carries no folder.")


class UrlIn(serializers.Serializer[Any]):
    url = serializers.CharField(max_length=2048, help_text="http or https; private networks are refused.")
    title = serializers.CharField(required=False, allow_blank=True, default="")
    file_name = serializers.CharField(required=False, allow_blank=True, default="", help_text="Given: the address is a file to download.")
    file_type = serializers.CharField(required=False, allow_blank=True, default="")
    enable_multimodel = Flag(required=False, allow_null=True)
    tag_ids = NullableTextList(required=False)
    channel = serializers.CharField(required=False, allow_blank=True, max_length=32)
    process_config = ObjectField(required=False, allow_null=True)
    metadata = TextMap(required=False, allow_null=True)
    folder_path = serializers.CharField(required=False, allow_blank=True)


class ManualIn(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, default="")
    content = serializers.CharField(trim_whitespace=False, allow_blank=True, help_text="Markdown, at most 200,000 characters.")
    status = serializers.CharField(required=False, allow_blank=True, default="", help_text="draft (default) or publish.")
    tag_ids = NullableTextList(required=False)
    channel = serializers.CharField(required=False, allow_blank=True, max_length=32)
    process_config = ObjectField(required=False, allow_null=True)
    folder_path = serializers.CharField(required=False, allow_blank=True)


class ManualUpdateIn(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, default="")
    content = serializers.CharField(trim_whitespace=False, allow_blank=True)
    status = serializers.CharField(required=False, allow_blank=True, default="")
    process_config = ObjectField(required=False, allow_null=True)
    expected_version = serializers.IntegerField(
        required=False, allow_null=True, help_text="The version this text was based on; 409 otherwise."
    )


class DocumentUpdateIn(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    description = serializers.CharField(required=False, allow_blank=True, allow_null=True, trim_whitespace=False)
    custom_metadata = ObjectField(
        required=False, allow_null=True, help_text="Replaces all; at most 20 keys of text, number, truth value or null."
    )


class DocumentListQuery(PageQuery):
    tag_ids = CommaList(required=False, allow_blank=True, help_text="Comma-separated; documents with any of them.")
    keyword = serializers.CharField(required=False, allow_blank=True, help_text="Part of the file name or title, case ignored.")
    file_type = serializers.CharField(required=False, allow_blank=True)
    parse_status = serializers.CharField(required=False, allow_blank=True)
    source = serializers.CharField(required=False, allow_blank=True, help_text="A channel, or `manual`, or `url`.")  # type: ignore[assignment]
    start_time = Moment(required=False, allow_blank=True, help_text="Changed at or after.")
    end_time = Moment(required=False, allow_blank=True, day_end=True, help_text="Changed at or before.")
    folder_path = serializers.CharField(required=False, allow_blank=True, help_text="Left out: every folder; empty: the root.")
    folder_recursive = LenientFlag(required=False, allow_blank=True)
    sort_by = serializers.ChoiceField(choices=["created_at", "updated_at", "file_name"], required=False)
    sort_order = serializers.ChoiceField(choices=["desc", "asc"], required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        if "folder_path" in attrs:
            attrs["folder_path"] = folder_path(attrs["folder_path"])
        attrs["tag_ids"] = [tag for tag in attrs.get("tag_ids", []) if tag != "__untagged__"]
        return attrs


class BatchQuery(serializers.Serializer[Any]):
    ids = TextList(required=False, help_text="Repeated, or one comma-separated value; 1 to 200.")
    kb_id = serializers.CharField(required=False, allow_blank=True)


class SearchQuery(serializers.Serializer[Any]):
    keyword = serializers.CharField(required=False, allow_blank=True)
    query = serializers.CharField(required=False, allow_blank=True, help_text="The same as keyword.")
    recent = LenientFlag(required=False, allow_blank=True)
    offset = serializers.IntegerField(required=False, default=0, min_value=0, max_value=1_000_000)
    limit = serializers.IntegerField(required=False, default=20, min_value=1, max_value=100)
    file_types = CommaList(required=False, allow_blank=True)


class IdsIn(serializers.Serializer[Any]):
    kb_id = serializers.CharField()
    ids = TextList(help_text="1 to 200 document ids.")


class ReparseIn(serializers.Serializer[Any]):
    process_config = ObjectField(required=False, allow_null=True)
    password = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        max_length=1024,
        write_only=True,
        style={"input_type": "password"},
        help_text="Opens a locked PDF this once (reason `locked` or `wrong_password`); it is not kept.",
    )


class BatchReparseIn(IdsIn):
    process_config = ObjectField(required=False, allow_null=True)


class TagsReplaceIn(serializers.Serializer[Any]):
    updates = serializers.DictField(child=TextList(), allow_empty=True, help_text="{document id: [tag ids]}; each list replaces.")
    kb_id = serializers.CharField(required=False, allow_blank=True)


class IntoFolderIn(serializers.Serializer[Any]):
    kb_id = serializers.CharField()
    knowledge_ids = TextList()
    folder_path = serializers.CharField(required=False, allow_blank=True, allow_null=True, default="")


class FolderRenameIn(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.CharField(allow_blank=True), "to": serializers.CharField(allow_blank=True)}


class MoveIn(serializers.Serializer[Any]):
    knowledge_ids = serializers.ListField(child=serializers.CharField(), allow_empty=False)
    source_kb_id = serializers.CharField()
    target_kb_id = serializers.CharField()
    mode = serializers.ChoiceField(choices=MoveRun.Mode.values)


class ZipIn(serializers.Serializer[Any]):
    ids = serializers.ListField(
        child=serializers.CharField(max_length=128, allow_blank=True, trim_whitespace=True), min_length=1, max_length=200
    )


class DocumentOut(serializers.Serializer[Document]):
    """A document (contract knowledge 4.1)."""

    id = serializers.UUIDField(source="uid")
    tenant_id = serializers.IntegerField(source="space_id")
    knowledge_base_id = serializers.UUIDField(source="kb.uid")
    tags = serializers.SerializerMethodField()
    type = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField(help_text="The summary.")
    source = serializers.CharField()  # type: ignore[assignment]
    channel = serializers.CharField()
    parse_status = serializers.CharField(help_text="draft pending processing finalizing completed failed cancelled deleting")
    pending_subtasks_count = serializers.IntegerField()
    summary_status = serializers.CharField()
    enable_status = serializers.SerializerMethodField()
    embedding_model_id = serializers.CharField(source="kb.embedding_model_id")
    folder_path = serializers.CharField()
    file_name = serializers.CharField()
    file_type = serializers.CharField()
    file_size = serializers.IntegerField()
    storage_size = serializers.SerializerMethodField()
    file_hash = serializers.CharField()
    file_path = serializers.SerializerMethodField()
    metadata = serializers.JSONField(allow_null=True)
    custom_metadata = serializers.JSONField()
    last_faq_import_result = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    processed_at = serializers.DateTimeField(allow_null=True)
    deleted_at = serializers.DateTimeField(allow_null=True)
    error_message = serializers.SerializerMethodField(help_text="Why it failed or stopped and what to do next, in the reader's language.")
    reason = serializers.CharField(help_text="Stable code beside error_message.")
    warnings = serializers.JSONField()
    chunk_count = serializers.IntegerField(help_text="Passages.")
    vector_count = serializers.IntegerField(help_text="Passages with a vector.")
    encoding = serializers.CharField(help_text="What a text file was read as.")
    counts = serializers.JSONField(help_text="Pages, sheets, slides.")
    knowledge_base_name = serializers.SerializerMethodField()

    def get_tags(self, document: Document) -> list[dict[str, Any]] | None:
        if not self.context.get("with_tags", True):
            return None
        tags = sorted(document.tags.all(), key=lambda tag: (tag.sort_order, tag.pk))
        for tag in tags:
            tag.kb = document.kb
        return list(TagOut(tags, many=True).data) or None  # type: ignore[arg-type]

    def get_enable_status(self, document: Document) -> str:
        return "enabled" if document.enabled else "disabled"

    def get_error_message(self, document: Document) -> str:
        return message_of(document)

    def get_storage_size(self, document: Document) -> int:
        return document.file_size if document.storage_path else 0

    def get_file_path(self, document: Document) -> str:
        return f"local://{document.storage_path}" if document.storage_path else ""

    def get_last_faq_import_result(self, document: Document) -> dict[str, Any] | None:
        return pair_import_result(document)

    def get_knowledge_base_name(self, document: Document) -> str:
        return document.kb.name if self.context.get("with_base_name") else ""


class BatchDocumentOut(DocumentOut):
    """As the batch route gives it: tags are null; rows in flight may carry when anything last happened and whether they are stuck."""

    last_activity_at = serializers.DateTimeField(required=False)
    stall_state = serializers.CharField(required=False, help_text="queued or stalled")

    def get_tags(self, document: Document) -> list[dict[str, Any]] | None:
        return None

    def to_representation(self, document: Document) -> dict[str, Any]:
        stall = self.context.get("stall_states", {}).get(document.pk)
        if stall is not None:
            document.last_activity_at, document.stall_state = stall.last_activity_at, stall.state  # type: ignore[attr-defined]
        shown = super().to_representation(document)
        if not shown.get("stall_state"):
            shown.pop("stall_state", None)
        return shown


class FoundDocumentOut(DocumentOut):
    """As the name search gives it: with the name of its base."""

    def get_knowledge_base_name(self, document: Document) -> str:
        return document.kb.name


class FolderOut(serializers.Serializer[Any]):
    path = serializers.CharField()
    name = serializers.CharField()
    document_count = serializers.IntegerField(help_text="Directly inside.")
    total_count = serializers.IntegerField(help_text="With everything below.")
    children = serializers.ListField(child=serializers.DictField(), required=False)

    def to_representation(self, node: Any) -> dict[str, Any]:
        shown = {"path": node.path, "name": node.name, "document_count": node.document_count, "total_count": node.total_count}
        return {**shown, "children": [self.to_representation(child) for child in node.children]} if node.children else shown


class FolderTreeOut(serializers.Serializer[Any]):
    root_document_count = serializers.IntegerField()
    total_document_count = serializers.IntegerField()
    folders = FolderOut(many=True)


class RefiledOut(serializers.Serializer[Any]):
    moved_count = serializers.IntegerField()
    folder_path = serializers.CharField()


class DeletedOut(serializers.Serializer[Any]):
    task_id = serializers.CharField()


class BatchDeletedOut(DeletedOut):
    deleted_count = serializers.IntegerField(source="count")


class BatchReparsedOut(DeletedOut):
    reparse_count = serializers.IntegerField()


class MoveStartedOut(serializers.Serializer[MoveRun]):
    task_id = serializers.CharField()
    source_kb_id = serializers.UUIDField(source="source_uid")
    target_kb_id = serializers.UUIDField(source="target_uid")
    knowledge_count = serializers.IntegerField(source="progress_total")
