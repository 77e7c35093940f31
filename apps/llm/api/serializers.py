"""Shapes of models (contract content 8)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.common.api.views import ObjectField
from apps.common.policy import allowed
from apps.llm.models import Model
from apps.llm.selectors import Entry

#: the contract's name inside `parameters` -> ours
PARAMETERS = {
    "base_url": "base_url",
    "api_key": "api_key",
    "provider": "provider",
    "max_concurrency": "concurrency",
    "query_prefix": "query_prefix",
    "passage_prefix": "passage_prefix",
    "batch_size": "batch_size",
    "connect_timeout_s": "connect_timeout_s",
    "read_timeout_s": "read_timeout_s",
    "context_window": "context_window",
}


class EmbeddingParametersIn(serializers.Serializer[Any]):
    dimension = serializers.IntegerField(
        required=False, allow_null=True, help_text="Read only with supports_dimension_override; otherwise found by the first call."
    )
    supports_dimension_override = serializers.BooleanField(required=False, help_text="Ask the endpoint for vectors of `dimension`.")


class ParametersIn(serializers.Serializer[Any]):
    """Members that are not listed are ignored."""

    base_url = serializers.CharField(required=False, allow_blank=True, help_text="Address of the API, such as https://api.example.com/v1.")
    api_key = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False, help_text="Kept encrypted, never answered.")
    provider = serializers.CharField(required=False, allow_blank=True)
    embedding_parameters = EmbeddingParametersIn(required=False, allow_null=True)
    max_concurrency = serializers.IntegerField(required=False, allow_null=True, help_text="Calls at a time, 1 to 16.")
    batch_size = serializers.IntegerField(required=False, help_text="Texts a call.")
    query_prefix = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, help_text='Before a question, like "query: ".'
    )
    passage_prefix = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    connect_timeout_s = serializers.FloatField(required=False)
    read_timeout_s = serializers.FloatField(required=False)
    context_window = serializers.IntegerField(
        required=False, allow_null=True, help_text="Tokens a chat model reads at once; a fifth of it holds what is found. 0: not known."
    )


class ModelIn(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="As the server spells it.")
    display_name = serializers.CharField(required=False, allow_blank=True)
    type = serializers.CharField(help_text="KnowledgeQA (chat), Embedding, Rerank or VLLM (vision).")
    source = serializers.CharField(required=False, allow_blank=True, help_text="remote.")  # type: ignore[assignment]  # a word of the contract
    description = serializers.CharField(required=False, allow_blank=True)
    parameters = ParametersIn(required=False)


class ModelUpdateIn(ModelIn):
    """What is left out stays as it is; a key in the body is ignored, it has a route of its own."""

    name = serializers.CharField(required=False)
    type = serializers.CharField(required=False, allow_blank=True)


def values_of(body: dict[str, Any], *, with_key: bool) -> dict[str, Any]:
    """The service's values of a body."""
    values: dict[str, Any] = {name: body[name] for name in ("name", "display_name", "description", "type", "source") if name in body}
    given = body.get("parameters") or {}
    values |= {ours: given[name] for name, ours in PARAMETERS.items() if name in given}
    embedding = given.get("embedding_parameters") or {}
    if "supports_dimension_override" in embedding:
        values["send_dimension"] = embedding["supports_dimension_override"]
    if embedding.get("dimension") is not None:
        values["dimension"] = embedding["dimension"]
    if not with_key:
        values.pop("api_key", None)
    return values


class ModelOut(serializers.Serializer[Entry]):
    """A model (contract content 8). `base_url` is blank for those of the deployment and for readers who may not change models."""

    id = serializers.CharField()
    tenant_id = serializers.SerializerMethodField()
    name = serializers.CharField()
    display_name = serializers.CharField(source="title")
    type = serializers.SerializerMethodField()
    source = serializers.SerializerMethodField()  # type: ignore[assignment]  # a word of the contract
    description = serializers.SerializerMethodField()
    parameters = serializers.SerializerMethodField()
    is_default = serializers.BooleanField(help_text="Bases that choose none use it.")
    is_builtin = serializers.BooleanField(help_text="Of the deployment; nobody changes it here.")
    status = serializers.SerializerMethodField()
    created_at = serializers.SerializerMethodField()
    updated_at = serializers.SerializerMethodField()

    def _may_see(self) -> bool:
        return allowed(self.context["actor"], "model.write")

    def get_tenant_id(self, entry: Entry) -> int:
        return entry.row.space_id if entry.row is not None else 0

    def get_type(self, entry: Entry) -> str:
        return entry.type

    def get_source(self, entry: Entry) -> str:
        return "local" if entry.is_local else "remote"

    def get_description(self, entry: Entry) -> str:
        return entry.row.description if entry.row is not None else ""

    def get_status(self, entry: Entry) -> str:
        return "active"

    def get_created_at(self, entry: Entry) -> str | None:
        return entry.row.created_at.isoformat() if entry.row is not None else None

    def get_updated_at(self, entry: Entry) -> str | None:
        return entry.row.updated_at.isoformat() if entry.row is not None else None

    def get_parameters(self, entry: Entry) -> dict[str, Any]:
        row = entry.row
        shown: dict[str, Any] = {
            "base_url": row.base_url if row is not None and self._may_see() else "",
            "interface_type": "" if entry.is_local else "openai",
            "embedding_parameters": {
                "dimension": entry.dimension,
                "truncate_prompt_tokens": 0,
                "supports_dimension_override": bool(row and row.send_dimension),
            },
            "parameter_size": "",
            "provider": row.provider if row is not None else "",
            "supports_vision": entry.type == Model.Type.VISION,
        }
        if row is not None:
            names = ("batch_size", "query_prefix", "passage_prefix", "connect_timeout_s", "read_timeout_s", "context_window")
            shown |= {"max_concurrency": row.concurrency, **{name: getattr(row, name) for name in names}}
        return shown

    def to_representation(self, entry: Entry) -> dict[str, Any]:
        shown = super().to_representation(entry)
        if not entry.is_builtin:
            shown["credentials"] = credentials_of(entry)["fields"]
        return shown


def credentials_of(entry: Entry) -> dict[str, Any]:
    return {"fields": {"api_key": {"configured": entry.has_key}, "app_secret": {"configured": False}}}


class ProviderQuery(serializers.Serializer[Any]):
    model_type = serializers.ChoiceField(choices=["chat", "embedding", "rerank", "vllm", "asr"], required=False, allow_blank=True)


class CredentialsIn(serializers.Serializer[Any]):
    api_key = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)


class DebugIn(serializers.Serializer[Any]):
    input = serializers.CharField(required=False, allow_blank=True, max_length=65536, help_text="A text to embed; empty: one of our own.")
    documents = serializers.JSONField(required=False, help_text="JSON array of at most 100 more texts, embedded in the same call.")


class ModelCheckIn(serializers.Serializer[Any]):
    """Values of a form that may not be saved yet; `modelId` lends what is left out, its key above all."""

    source = serializers.CharField()  # type: ignore[assignment]  # a word of the contract
    modelName = serializers.CharField()
    baseUrl = serializers.CharField(required=False, allow_blank=True)
    apiKey = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    provider = serializers.CharField(required=False, allow_blank=True)
    modelId = serializers.CharField(required=False, allow_blank=True)
    extraConfig = ObjectField(required=False, allow_null=True)


class EmbeddingTestIn(ModelCheckIn):
    dimension = serializers.IntegerField(required=False, allow_null=True)
    supportsDimensionOverride = serializers.BooleanField(required=False)
