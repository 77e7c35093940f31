"""Shapes of pictures and the gallery (contract knowledge 4.19, 9)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.common.api.views import PageQuery
from apps.knowledge.models import Chunk, DocumentImage
from apps.knowledge.rules.gallery import Attribute
from apps.knowledge.selectors.images import presigned_path, public_path


def _text(help_text: str) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, default="", max_length=20_000, help_text=help_text)


class ImageListQuery(PageQuery):
    """What a filter may not use is ignored, malformed JSON as well."""

    keyword = _text("Substring, upper and lower case alike.")
    search_in = _text("Comma list of attribute ids with `usage.in_searchfield`.")
    sort_by = _text("An attribute id with `usage.in_sortfield`; else builtin:created_at.")
    sort_order = _text("desc (default) or asc")
    is_enabled = _text("true: enabled only; any other text: disabled only.")
    attr_filters = _text('{"system:contain.text": ["block"]}')
    resource_urls = serializers.ChoiceField(
        choices=["handle", "public"], required=False, default="handle", help_text="public: links that need no sign-in for an hour."
    )
    attr_rules = _text('{"system:contain.text": {"none": "off", "block": "on"}}')


class ImageOut(serializers.Serializer[DocumentImage]):
    """`attrs` is there only when something was observed."""

    id = serializers.SerializerMethodField(help_text="<passage>#<number of the image in it>")
    chunk_id = serializers.UUIDField(source="chunk.uid")
    knowledge_id = serializers.UUIDField(source="document.uid")
    source_name = serializers.CharField(source="document.title")
    chunk_type = serializers.CharField(source="chunk.chunk_type")
    url = serializers.CharField()
    original_url = serializers.CharField(source="url")
    caption = serializers.CharField()
    ocr_text = serializers.CharField()
    attrs = serializers.DictField(required=False)
    is_enabled = serializers.BooleanField(source="chunk.is_enabled")
    status = serializers.SerializerMethodField()
    width = serializers.IntegerField()
    height = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_id(self, image: DocumentImage) -> str:
        return f"{image.chunk.uid}#{image.number}"

    def get_status(self, image: DocumentImage) -> int:
        return 2 if image.chunk.index_status == Chunk.IndexStatus.READY else 0

    def to_representation(self, instance: DocumentImage) -> dict[str, Any]:
        row = super().to_representation(instance)
        if instance.attrs is None:
            row.pop("attrs", None)
        if root := self.context.get("root"):
            row["url"] = f"{root}{public_path(instance)}"
            row["original_url"] = f"{root}{presigned_path(instance.space_id, instance.url)}"
        return row


class ValueOut(serializers.Serializer[Any]):
    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]


class UsageOut(serializers.Serializer[Any]):
    in_filter = serializers.BooleanField()
    in_searchfield = serializers.BooleanField(source="in_search")
    in_sortfield = serializers.BooleanField(source="in_sort")


class AttributeOut(serializers.Serializer[Attribute]):
    id = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    name = serializers.CharField()
    type = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    values = serializers.ListField(child=ValueOut(), required=False)
    usage = UsageOut(source="*")
    usage_from = serializers.CharField()

    def to_representation(self, instance: Attribute) -> dict[str, Any]:
        row: dict[str, Any] = {
            "id": instance.id,
            "source": instance.source,
            "name": instance.name,
            "type": instance.type,
            "label": str(instance.label),
            "usage": UsageOut(instance).data,
            "usage_from": "system",
        }
        if instance.values:
            row["values"] = [{"value": value, "label": str(label)} for value, label in instance.values]
        return row


class GalleryOut(serializers.Serializer[Any]):
    attribute_sources = serializers.ListField(child=serializers.CharField())
    attributes = AttributeOut(many=True)
    mode = serializers.CharField()
    status = serializers.DictField(child=serializers.CharField())


class ImageInfoIn(serializers.Serializer[Any]):
    image_info = serializers.CharField(allow_blank=True, trim_whitespace=False, help_text="JSON text: a list of images (contract 7.1).")


class FileQuery(serializers.Serializer[Any]):
    file_path = serializers.CharField(required=False, allow_blank=True, help_text="resource://<handle>, or a path as documents name it.")
