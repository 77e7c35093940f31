"""Shapes of tags (contract knowledge 6)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.common.api.views import PageQuery
from apps.knowledge.models import KnowledgeBase, Tag


class TagIn(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="1 to 128 characters, once per base.")
    color = serializers.CharField(required=False, allow_blank=True, max_length=32)
    sort_order = serializers.IntegerField(required=False, min_value=-(2**31), max_value=2**31 - 1)


class TagUpdateIn(serializers.Serializer[Any]):
    name = serializers.CharField(required=False)
    color = serializers.CharField(required=False, allow_blank=True, max_length=32)
    sort_order = serializers.IntegerField(required=False, min_value=-(2**31), max_value=2**31 - 1)


class TagDeleteIn(serializers.Serializer[Any]):
    exclude_ids = serializers.ListField(child=serializers.IntegerField(), required=False, allow_null=True)


class TagListQuery(PageQuery):
    keyword = serializers.CharField(required=False, allow_blank=True)


class TagOut(serializers.Serializer[Tag]):
    id = serializers.UUIDField(source="uid")
    seq_id = serializers.IntegerField(source="pk")
    tenant_id = serializers.IntegerField(source="space_id")
    knowledge_base_id = serializers.UUIDField(source="kb.uid")
    name = serializers.CharField()
    color = serializers.CharField()
    sort_order = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class TagRowOut(TagOut):
    knowledge_count = serializers.SerializerMethodField(help_text="Live documents that carry it.")
    chunk_count = serializers.SerializerMethodField(help_text="Entries of an FAQ base that carry it.")

    def get_knowledge_count(self, tag: Tag) -> int:
        return 0 if tag.kb.type == KnowledgeBase.Type.FAQ else tag.knowledge_count  # type: ignore[attr-defined]

    def get_chunk_count(self, tag: Tag) -> int:
        return tag.knowledge_count if tag.kb.type == KnowledgeBase.Type.FAQ else 0  # type: ignore[attr-defined]
