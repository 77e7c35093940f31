"""Reading the models a space may use: its own, and those of the deployment."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.policy import authorize
from apps.llm.models import Model
from apps.llm.services.embedders import ENDPOINT, PACKAGED, deployment_model_id, embedding_model_ids, known_space, row_of


@dataclass(frozen=True, slots=True)
class Entry:
    """A model as lists show it. `row` is None for those of the deployment, which nobody changes here."""

    id: str
    name: str
    title: str
    dimension: int
    is_local: bool
    is_default: bool
    row: Model | None = None

    @property
    def type(self) -> str:
        """The contract's name of its type; those of the deployment make vectors."""
        return str(self.row.type if self.row is not None else Model.Type.EMBEDDING)

    @property
    def is_builtin(self) -> bool:
        return self.row is None

    @property
    def has_key(self) -> bool:
        return bool(self.row.api_key) if self.row is not None else self.id == ENDPOINT and bool(settings.EMBEDDING_ENDPOINT["api_key"])


def model_list(*, actor: Actor, kind: str = "") -> list[Entry]:
    """Those of the deployment first, then the space's own by age; with `kind` only those of that type."""
    authorize(actor, "model.list")
    found = [*(_builtin(name) for name in embedding_model_ids()), *map(_own, Model.objects.visible_to(actor).order_by("created_at", "pk"))]
    return [entry for entry in found if not kind or entry.type == kind]


def model_get(*, actor: Actor, model_id: str) -> Entry:
    """Raises: NotFound for ids of no model of the space or the deployment."""
    authorize(actor, "model.list")
    if model_id in embedding_model_ids():
        return _builtin(model_id)
    row = model_row(model_id)
    if row is None or row.space_id != actor.space_id:
        raise NotFound(_("Model not found."))
    return _own(row)


def model_row(model_id: str, kind: str = "") -> Model | None:
    """The model of the open space with this id (and of that type, if one is named)."""
    try:
        uid = uuid.UUID(model_id)
    except ValueError:
        return None
    rows = Model.objects.filter(uid=uid)
    return (rows.filter(type=kind) if kind else rows).first()


def entry_of(model_id: str) -> Entry | None:
    """The entry of a base's choice ("" is the deployment's own) within the open scope; None when there is none (words only, or deleted)."""
    model_id = model_id or deployment_model_id()
    if model_id in embedding_model_ids():
        return _builtin(model_id)
    row = row_of(model_id)
    return _own(row) if row is not None else None


def _own(row: Model) -> Entry:
    return Entry(str(row.uid), row.name, row.title, row.dimension, is_local=False, is_default=False, row=row)


def _builtin(model_id: str) -> Entry:
    default = model_id == deployment_model_id()
    dimension = int(known_space(model_id).rpartition(":")[2] or 0)
    if model_id == PACKAGED:
        return Entry(PACKAGED, PACKAGED, _("Packaged model (multilingual-e5-small)"), dimension, is_local=True, is_default=default)
    name = str(settings.EMBEDDING_ENDPOINT["model"])
    return Entry(ENDPOINT, name, name, dimension, is_local=False, is_default=default)


_ALL = ("chat", "embedding", "rerank", "vllm")
PROVIDERS: list[dict[str, Any]] = [
    {"value": "generic", "label": "OpenAI-compatible", "url": "", "about": "Any server that speaks OpenAI's API.", "types": _ALL},
    {
        "value": "openai",
        "label": "OpenAI",
        "url": "https://api.openai.com/v1",
        "about": "Chat, vision, text-embedding-3-small, text-embedding-3-large",
        "types": ("chat", "embedding", "vllm"),
    },
    {
        "value": "siliconflow",
        "label": "SiliconFlow",
        "url": "https://api.siliconflow.cn/v1",
        "about": "BAAI/bge-m3, BAAI/bge-reranker-v2-m3 and others",
        "types": _ALL,
    },
    {
        "value": "aliyun",
        "label": "Alibaba Cloud Model Studio",
        "url": "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "about": "Qwen, text-embedding-v4",
        "types": ("chat", "embedding", "vllm"),
    },
    {"value": "deepseek", "label": "DeepSeek", "url": "https://api.deepseek.com/v1", "about": "deepseek-chat", "types": ("chat",)},
    {
        "value": "jina",
        "label": "Jina AI",
        "url": "https://api.jina.ai/v1",
        "about": "jina-embeddings-v3, jina-reranker-v2",
        "types": ("embedding", "rerank"),
    },
    {
        "value": "ollama",
        "label": "Ollama",
        "url": "http://127.0.0.1:11434/v1",
        "about": "A local server; the operator must allow its address (KB_MODEL_ALLOW).",
        "types": ("chat", "embedding", "vllm"),
    },
]
