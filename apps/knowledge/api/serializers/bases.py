"""Shapes of knowledge bases (contract knowledge 3)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.common.api.views import ObjectField
from apps.knowledge.api.serializers.fields import Flag, TextList
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.rules.configs import FLAGS, OPTION_MEMBERS
from apps.knowledge.selectors import BaseRow

MAX_SIZE = 100_000

EMPTY_OPTIONS: dict[str, Any] = {
    "image_processing_config": {"model_id": ""},
    "vlm_config": {"enabled": False, "model_id": "", "model_name": "", "base_url": "", "api_key": "", "interface_type": ""},
    "asr_config": {"enabled": False, "model_id": "", "language": ""},
}


class ChunkingIn(serializers.Serializer[Any]):
    chunk_size = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_SIZE, help_text="Characters per passage; 0: the default, 512."
    )
    chunk_overlap = serializers.IntegerField(required=False, min_value=0, max_value=MAX_SIZE, help_text="Characters shared by neighbours.")
    separators = TextList(required=False, allow_null=True)
    parser_engine_rules = serializers.ListField(child=ObjectField(), required=False, allow_null=True)
    enable_parent_child = Flag(required=False)
    parent_chunk_size = serializers.IntegerField(required=False, min_value=0, max_value=MAX_SIZE)
    child_chunk_size = serializers.IntegerField(required=False, min_value=0, max_value=MAX_SIZE)
    strategy = serializers.CharField(required=False, allow_blank=True, help_text="auto, heading, heuristic, recursive, legacy or empty.")
    token_limit = serializers.IntegerField(required=False, min_value=0, max_value=MAX_SIZE, help_text="0: count characters.")
    languages = TextList(required=False, allow_null=True)
    table_metadata_instructions = serializers.CharField(required=False, allow_blank=True)


class StrategyIn(serializers.Serializer[Any]):
    vector_enabled = Flag(required=False)
    keyword_enabled = Flag(required=False)
    wiki_enabled = Flag(required=False)
    graph_enabled = Flag(required=False)


class BaseIn(serializers.Serializer[Any]):
    id = serializers.CharField(required=False, allow_blank=True, help_text="A UUID of your own; left out, one is made.")
    name = serializers.CharField(max_length=400, help_text="1 to 200 UTF-16 units.")
    description = serializers.CharField(required=False, allow_blank=True, default="", help_text="At most 4000 UTF-16 units.")
    type = serializers.ChoiceField(choices=KnowledgeBase.Type.values, required=False, allow_blank=True)
    is_temporary = Flag(required=False)
    chunking_config = ChunkingIn(required=False, allow_null=True)
    indexing_strategy = StrategyIn(required=False, allow_null=True)
    embedding_model_id = serializers.CharField(
        required=False, allow_blank=True, help_text="Id of an embedding model of the space, or empty for the portal's own."
    )
    summary_model_id = serializers.CharField(required=False, allow_blank=True)
    image_processing_config = ObjectField(required=False, allow_null=True)
    vlm_config = ObjectField(required=False, allow_null=True)
    asr_config = ObjectField(required=False, allow_null=True)
    extract_config = ObjectField(required=False, allow_null=True)
    faq_config = ObjectField(required=False, allow_null=True)
    question_generation_config = ObjectField(required=False, allow_null=True)
    auto_tag_config = ObjectField(required=False, allow_null=True)
    wiki_config = ObjectField(required=False, allow_null=True)
    profile_config = ObjectField(required=False, allow_null=True)
    storage_provider_config = ObjectField(required=False, allow_null=True)


class BaseConfigIn(serializers.Serializer[Any]):
    chunking_config = ChunkingIn(required=False, allow_null=True)
    image_processing_config = ObjectField(required=False, allow_null=True)
    faq_config = ObjectField(required=False, allow_null=True)
    wiki_config = ObjectField(required=False, allow_null=True)
    auto_tag_config = ObjectField(required=False, allow_null=True)
    profile_config = ObjectField(required=False, allow_null=True)
    indexing_strategy = StrategyIn(required=False, allow_null=True)


class BaseUpdateIn(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=400)
    description = serializers.CharField(required=False, allow_blank=True, allow_null=True, default="", help_text="Left out: becomes empty.")
    config = BaseConfigIn(required=False, allow_null=True)


class BaseListQuery(serializers.Serializer[Any]):
    creator = serializers.ChoiceField(choices=["mine", "others"], required=False, allow_blank=True)


class BaseOut(serializers.Serializer[BaseRow]):
    """A knowledge base (contract knowledge 3.1)."""

    id = serializers.UUIDField(source="base.uid")
    name = serializers.CharField(source="base.name")
    description = serializers.CharField(source="base.description")
    type = serializers.CharField(source="base.type")
    is_temporary = serializers.BooleanField(source="base.is_temporary")
    is_example = serializers.BooleanField(source="base.is_example")
    tenant_id = serializers.IntegerField(source="base.space_id")
    creator_id = serializers.SerializerMethodField()
    creator_name = serializers.SerializerMethodField()
    chunking_config = serializers.SerializerMethodField()
    indexing_strategy = serializers.SerializerMethodField()
    embedding_model_id = serializers.CharField(source="base.embedding_model_id")
    summary_model_id = serializers.CharField(source="base.summary_model_id")
    storage_config = serializers.SerializerMethodField()
    is_pinned = serializers.BooleanField()
    pinned_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField(source="base.created_at")
    updated_at = serializers.DateTimeField(source="base.updated_at")
    deleted_at = serializers.DateTimeField(source="base.deleted_at", allow_null=True)
    knowledge_count = serializers.IntegerField(source="counts.documents", help_text="Live documents.")
    chunk_count = serializers.SerializerMethodField(help_text="Entries of an FAQ base; 0 otherwise.")
    is_processing = serializers.SerializerMethodField()
    processing_count = serializers.IntegerField(source="counts.processing", help_text="Documents waiting or being parsed.")
    failed_count = serializers.IntegerField(source="counts.failed")
    share_count = serializers.SerializerMethodField()
    capabilities = serializers.SerializerMethodField()

    def get_creator_id(self, row: BaseRow) -> str:
        return str(row.base.creator_id or "")

    def get_creator_name(self, row: BaseRow) -> str:
        return row.base.creator.username if row.base.creator else ""

    def get_chunking_config(self, row: BaseRow) -> dict[str, Any]:
        return {"chunk_size": 0, "chunk_overlap": 0, "separators": [], **row.base.chunking_config}

    def get_indexing_strategy(self, row: BaseRow) -> dict[str, bool]:
        return {flag: bool(row.base.indexing_strategy.get(flag)) for flag in FLAGS}

    def get_storage_config(self, row: BaseRow) -> dict[str, Any]:
        return {}

    def get_chunk_count(self, row: BaseRow) -> int:
        return row.counts.entries

    def get_is_processing(self, row: BaseRow) -> bool:
        return row.counts.processing > 0

    def get_share_count(self, row: BaseRow) -> int:
        return 0

    def get_capabilities(self, row: BaseRow) -> dict[str, bool]:
        flags = row.base.indexing_strategy
        found = {name: bool(flags.get(f"{name}_enabled")) for name in ("vector", "keyword", "wiki", "graph")}
        return {**found, "faq": row.base.type == KnowledgeBase.Type.FAQ}

    def to_representation(self, row: BaseRow) -> dict[str, Any]:
        shown = super().to_representation(row)
        for name in OPTION_MEMBERS:
            shown[name] = {**EMPTY_OPTIONS.get(name, {}), **row.base.options[name]} if name in row.base.options else EMPTY_OPTIONS.get(name)
        return shown


class SplittingIn(serializers.Serializer[Any]):
    chunkSize = serializers.IntegerField(source="chunk_size", required=False, min_value=0, max_value=MAX_SIZE)
    chunkOverlap = serializers.IntegerField(source="chunk_overlap", required=False, min_value=0, max_value=MAX_SIZE)
    separators = TextList(required=False)
    parserEngineRules = serializers.ListField(source="parser_engine_rules", child=ObjectField(), required=False, allow_null=True)
    enableParentChild = Flag(source="enable_parent_child", required=False)
    parentChunkSize = serializers.IntegerField(source="parent_chunk_size", required=False, min_value=0, max_value=MAX_SIZE)
    childChunkSize = serializers.IntegerField(source="child_chunk_size", required=False, min_value=0, max_value=MAX_SIZE)
    strategy = serializers.CharField(required=False, allow_blank=True)
    tokenLimit = serializers.IntegerField(source="token_limit", required=False, min_value=0, max_value=MAX_SIZE)
    languages = TextList(required=False, allow_null=True)
    tableMetadataInstructions = serializers.CharField(source="table_metadata_instructions", required=False, allow_blank=True)


class SettingsIn(serializers.Serializer[Any]):
    llmModelId = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, help_text="Id of a chat model of the space; empty: none; left out: unchanged."
    )
    embeddingModelId = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    documentSplitting = SplittingIn(required=False)
    vlm_config = ObjectField(required=False)
    asr_config = ObjectField(required=False)
    multimodal = ObjectField(required=False)
    nodeExtract = ObjectField(required=False)
    questionGeneration = ObjectField(required=False)
    retrieval = ObjectField(required=False, help_text="{fusion: minmax | rrf, weights: [words, meaning]}; an addition of this portal.")
    storageProvider = serializers.ChoiceField(choices=["local"], required=False, allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {name: attrs[name] for name in ("vlm_config", "asr_config") if name in attrs}
        if attrs.get("multimodal") is not None and not attrs.get("multimodal", {}).get("enabled") and "multimodal" in attrs:
            options["vlm_config"] = {"enabled": False, "model_id": ""}
        if "nodeExtract" in attrs:
            options["extract_config"] = _snake(attrs["nodeExtract"], {"customInstructions": "custom_instructions"})
        if "questionGeneration" in attrs:
            names = {"questionCount": "question_count", "customInstructions": "custom_instructions"}
            options["question_generation_config"] = _snake(attrs["questionGeneration"], names)
        return {**attrs, "options": options}


def _snake(value: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): item for key, item in value.items()}


def _multimodal(vlm: dict[str, Any], vision: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"enabled": bool(vlm.get("enabled")), "storageType": "local"}
    if vision:
        shown["vlm"] = {**vision, "interfaceType": "openai"}
    if vlm.get("description_language"):
        shown["descriptionLanguage"] = vlm["description_language"]
    if vlm.get("custom_instructions"):
        shown["customInstructions"] = vlm["custom_instructions"]
    return shown


def settings_out(
    row: BaseRow, *, has_files: bool, embedding: dict[str, Any], chat: dict[str, Any], vision: dict[str, Any]
) -> dict[str, Any]:
    """The settings of a base in the shape of the initialization routes (contract knowledge 3.10)."""
    base = row.base
    chunking = {"chunk_size": 0, "chunk_overlap": 0, "separators": [], **base.chunking_config}
    extract, questions, vlm = (base.options.get(name, {}) for name in ("extract_config", "question_generation_config", "vlm_config"))
    names = {field.source: name for name, field in SplittingIn().fields.items()}
    shown: dict[str, Any] = {
        "hasFiles": has_files,
        "rerank": {"enabled": False, "modelName": "", "baseUrl": "", "credentials": {"apiKey": False}},
        "multimodal": _multimodal(vlm, vision),
        "retrieval": {
            "fusion": base.retrieval_config.get("fusion") or "minmax",
            "weights": base.retrieval_config.get("weights") or [0.5, 0.5],
        },
        "documentSplitting": {names[key]: value for key, value in chunking.items() if key in names},
        "nodeExtract": _camel_extract(extract) if extract.get("enabled") else {"enabled": False},
        "questionGeneration": {
            "enabled": bool(questions.get("enabled")),
            "questionCount": questions.get("question_count", 3),
            "customInstructions": questions.get("custom_instructions", ""),
        }
        if questions
        else {"enabled": False},
    }
    if embedding:
        shown["embedding"] = embedding
    if chat:
        shown["llm"] = chat
    return shown


def _camel_extract(extract: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in extract.items() if key != "custom_instructions"}
    return {**shown, "customInstructions": extract.get("custom_instructions", "")}
