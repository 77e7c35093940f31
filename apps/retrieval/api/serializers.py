"""Shapes of search (contract knowledge 8, platform 2.5)."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from apps.knowledge.models import Chunk, Document
from apps.knowledge.selectors import with_links
from apps.retrieval.context import ContextPassage
from apps.retrieval.search import Passage


def ids(child: serializers.Field[Any, Any, Any, Any] | None = None) -> serializers.ListField:
    """A list that may be missing, null or empty (clients send all three)."""
    return serializers.ListField(child=child or serializers.CharField(), required=False, allow_null=True, allow_empty=True)


class HybridSearchIn(serializers.Serializer[Any]):
    """`match_count` <= 0 means 50. Thresholds are raw scores of each leg."""

    query_text = serializers.CharField(required=False, allow_blank=True, default="", max_length=4000)
    query_embedding = serializers.ListField(child=serializers.FloatField(), required=False, allow_null=True, max_length=4096)
    match_count = serializers.IntegerField(required=False, default=50, max_value=500)
    vector_threshold = serializers.FloatField(required=False, default=0)
    keyword_threshold = serializers.FloatField(required=False, default=0)
    disable_keywords_match = serializers.BooleanField(required=False, default=False)
    disable_vector_match = serializers.BooleanField(required=False, default=False)
    knowledge_ids = ids()
    tag_ids = ids()
    scope_tag_ids = ids()
    knowledge_base_ids = ids()
    folder_path = serializers.CharField(required=False, allow_blank=True, allow_null=True, default=None)
    skip_context_enrichment = serializers.BooleanField(required=False, default=False)


class KnowledgeSearchIn(serializers.Serializer[Any]):
    """Search across bases; at least one base, document or tag must be named."""

    query = serializers.CharField(max_length=4000, error_messages={"required": _("Say what to look for in `query`.")})
    knowledge_base_id = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    knowledge_base_ids = ids()
    knowledge_ids = ids()
    tag_ids = ids()
    mentioned_items = ids(serializers.DictField())


class SearchQuery(serializers.Serializer[Any]):
    """How references to pictures are answered: as handles, or as signed links that need no sign-in and end after an hour."""

    resource_urls = serializers.ChoiceField(choices=("handle", "public"), required=False, default="handle")


class ResultOut(serializers.Serializer[Any]):
    """One hit. `match_type`: 0 vector, 1 keyword, 2 neighbour, 4 parent. `metadata` is string to string and says why it is there."""

    id = serializers.UUIDField()
    content = serializers.CharField()
    knowledge_id = serializers.UUIDField()
    knowledge_base_id = serializers.UUIDField()
    chunk_index = serializers.IntegerField()
    knowledge_title = serializers.CharField()
    start_at = serializers.IntegerField()
    end_at = serializers.IntegerField()
    seq = serializers.IntegerField()
    score = serializers.FloatField()
    match_type = serializers.IntegerField()
    sub_chunk_id = serializers.ListField(child=serializers.CharField(), allow_null=True)
    metadata = serializers.DictField(child=serializers.CharField())
    chunk_type = serializers.CharField()
    parent_chunk_id = serializers.CharField()
    image_info = serializers.CharField()
    knowledge_filename = serializers.CharField()
    knowledge_source = serializers.CharField()
    knowledge_channel = serializers.CharField()
    matched_content = serializers.CharField(required=False)
    knowledge_description = serializers.CharField(required=False)
    knowledge_custom_metadata = serializers.CharField(required=False)
    source_locators = serializers.ListField(child=serializers.DictField(), required=False)

    def to_representation(self, instance: Passage | ContextPassage) -> dict[str, Any]:
        row = _row(instance.chunk, instance.chunk.document) | {"score": round(instance.score, 6), "match_type": instance.match_type}
        if isinstance(instance, Passage):
            row["metadata"] = _why(instance)
            row["matched_content"] = instance.question or instance.snippet.text
        if links := self.context.get("links"):
            for name in ("content", "image_info", "matched_content"):
                if row.get(name):
                    row[name] = with_links(row[name], links, self.context["root"])
        return row


def _row(chunk: Chunk, document: Document) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": str(chunk.uid),
        "content": chunk.content,
        "knowledge_id": str(document.uid),
        "knowledge_base_id": str(document.kb.uid),
        "chunk_index": chunk.chunk_index,
        "knowledge_title": document.title,
        "start_at": chunk.start_at,
        "end_at": chunk.end_at,
        "seq": chunk.chunk_index,
        "sub_chunk_id": None,
        "metadata": {},
        "chunk_type": chunk.chunk_type,
        "parent_chunk_id": str(chunk.parent.uid) if chunk.parent else "",
        "image_info": chunk.image_info,
        "knowledge_filename": document.file_name,
        "knowledge_source": document.source,
        "knowledge_channel": document.channel,
    }
    if document.description:
        row["knowledge_description"] = document.description
    if document.custom_metadata:
        row["knowledge_custom_metadata"] = "\n".join(f"{k}: {v}" for k, v in document.custom_metadata.items())
    if chunk.positions:
        row["source_locators"] = chunk.positions
    return row


def _why(passage: Passage) -> dict[str, str]:
    why = {"matched_terms": " ".join(term.text for term in passage.matched_terms)} if passage.matched_terms else {}
    if passage.question:
        why["question"] = passage.question
    if passage.exact:
        why["exact"] = "true"
    for name, leg in (("keyword", passage.text_leg), ("vector", passage.vector_leg)):
        if leg is not None:
            why |= {f"{name}_rank": str(leg.rank), f"{name}_score": f"{leg.score:.4f}"}
    if passage.chunk.heading_path:
        why["heading_path"] = " > ".join(passage.chunk.heading_path)
    return why
