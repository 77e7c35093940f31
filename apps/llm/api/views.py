"""The models of a space (contract content 8)."""

from __future__ import annotations

import json
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.response import Response

from apps.common.actor import Actor
from apps.common.api.views import ApiView, Op
from apps.common.errors import Forbidden, InvalidInput
from apps.llm.api.serializers import (
    CredentialsIn,
    DebugIn,
    EmbeddingTestIn,
    ModelCheckIn,
    ModelIn,
    ModelOut,
    ModelUpdateIn,
    ProviderQuery,
    credentials_of,
    values_of,
)
from apps.llm.failures import failure_of
from apps.llm.models import Model
from apps.llm.selectors import PROVIDERS, Entry, model_get, model_list
from apps.llm.services import Tested, model_create, model_delete, model_key_set, model_probe, model_test, model_update

TAGS = ("models",)
EXAMPLE = {
    "name": "BAAI/bge-m3",
    "type": "Embedding",
    "source": "remote",
    "parameters": {"base_url": "https://api.siliconflow.cn/v1", "api_key": "sk-...", "provider": "siliconflow"},
}


class ModelListView(ApiView):
    operations = {
        "GET": Op(
            "model.list",
            "List the models of the space",
            reply=ModelOut,
            shape="list",
            description="Those of the deployment first (`is_builtin`), then the space's own.",
            tags=TAGS,
        ),
        "POST": Op(
            "model.write",
            "Add a model",
            body=ModelIn,
            reply=ModelOut,
            status=201,
            invalid_code=1000,
            examples={"embedding": EXAMPLE},
            description="An OpenAI-compatible endpoint: `KnowledgeQA` (chat), `Embedding`, `Rerank` or `VLLM` (vision).",
            tags=TAGS,
        ),
    }

    def get(self, request: Any) -> Response:
        return self.render(model_list(actor=self.actor))

    def post(self, request: Any) -> Response:
        row = model_create(actor=self.actor, values=values_of(self.read(), with_key=True))
        return self.render(model_get(actor=self.actor, model_id=str(row.uid)))


class ProviderListView(ApiView):
    operations = {"GET": Op("model.list", "List well-known providers of models", query=ProviderQuery, tags=TAGS)}

    def get(self, request: Any) -> Response:
        wanted = self.asked().get("model_type") or ""
        return self.render([_provider(each) for each in PROVIDERS if not wanted or wanted in each["types"]])


def _provider(each: dict[str, Any]) -> dict[str, Any]:
    urls = dict.fromkeys(each["types"], each["url"]) if each["url"] else {}
    return {
        "value": each["value"],
        "label": each["label"],
        "description": each["about"],
        "defaultUrls": urls,
        "modelTypes": list(each["types"]),
    }


class ModelView(ApiView):
    operations = {
        "GET": Op("model.list", "Get a model", reply=ModelOut, tags=TAGS),
        "PUT": Op(
            "model.write",
            "Change a model",
            body=ModelUpdateIn,
            reply=ModelOut,
            examples={"timeout": {"parameters": {"read_timeout_s": 30}}},
            description="What is left out stays. After a change of address the endpoint is asked whether it still gives the same vectors.",
            tags=TAGS,
        ),
        "DELETE": Op("model.write", "Delete a model that no base uses", shape="message", tags=TAGS),
    }

    def get(self, request: Any, model_id: str) -> Response:
        return self.render(model_get(actor=self.actor, model_id=model_id))

    def put(self, request: Any, model_id: str) -> Response:
        body = self.read()
        row = _own(model_get(actor=self.actor, model_id=model_id))
        model_update(actor=self.actor, model=row, values=values_of(body, with_key=False))
        return self.render(model_get(actor=self.actor, model_id=model_id))

    def delete(self, request: Any, model_id: str) -> Response:
        entry = model_get(actor=self.actor, model_id=model_id)
        if entry.row is None:
            raise InvalidInput(_("This model belongs to the deployment; the operator removes it."), code="builtin_model")
        model_delete(actor=self.actor, model=entry.row)
        return self.render(None, message="Model deleted")


class CredentialsView(ApiView):
    operations = {
        "PUT": Op("model.write", "Replace the API key of a model", body=CredentialsIn, examples={"key": {"api_key": "sk-..."}}, tags=TAGS)
    }

    def put(self, request: Any, model_id: str) -> Response:
        body = self.read()
        row = _own(model_get(actor=self.actor, model_id=model_id))
        if "api_key" in body:
            model_key_set(actor=self.actor, model=row, api_key=body["api_key"])
        return self.render(credentials_of(model_get(actor=self.actor, model_id=model_id)))


class CredentialView(ApiView):
    operations = {"DELETE": Op("model.write", "Remove the API key of a model", status=204, shape="bare", tags=TAGS)}

    def delete(self, request: Any, model_id: str, field: str) -> Response:
        row = _own(model_get(actor=self.actor, model_id=model_id))
        if field != "api_key":
            raise InvalidInput(_("Only api_key can be removed."), field="field", known=["api_key"])
        model_key_set(actor=self.actor, model=row, api_key="")
        return Response(status=204)


class DebugView(ApiView):
    operations = {
        "POST": Op(
            "model.write",
            "Test a model with a real call",
            body=DebugIn,
            multipart=True,
            description="Also 200 when the endpoint fails: then `ok` is false and `error` says what is wrong and what to do.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, model_id: str) -> Response:
        body = self.read()
        row = _own(model_get(actor=self.actor, model_id=model_id))
        texts = _texts(body)
        return self.render(_debugged(row, texts, model_test(actor=self.actor, model=row, texts=texts)))


class EmbeddingTestView(ApiView):
    operations = {
        "POST": Op(
            "model.write",
            "Test an embedding endpoint before it is saved",
            body=EmbeddingTestIn,
            description="Always 200; `available` says whether it answered.",
            examples={"endpoint": {"source": "remote", "modelName": "BAAI/bge-m3", "baseUrl": "https://api.siliconflow.cn/v1"}},
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        row = _own(model_get(actor=self.actor, model_id=body["modelId"])) if body.get("modelId") else None
        names = {"modelName": "name", "baseUrl": "base_url", "apiKey": "api_key", "provider": "provider", "source": "source"}
        values = {ours: body[name] for name, ours in names.items() if body.get(name)}
        if body.get("supportsDimensionOverride"):
            values |= {"send_dimension": True, "dimension": body.get("dimension")}
        done = model_probe(actor=self.actor, values=values, model=row)
        message = "" if done.ok else f"{failure_of(done.code).why}{_(': ')}{failure_of(done.code).next}"
        return self.render({"available": done.ok, "message": message, "dimension": done.dimension})


class ChatCheckView(ApiView):
    operations = {
        "POST": Op(
            "model.write",
            "Test a chat endpoint before it is saved",
            body=ModelCheckIn,
            description="Always 200; `available` says whether it answered, `message` what it said or what is wrong.",
            examples={"endpoint": {"source": "remote", "modelName": "deepseek-chat", "baseUrl": "https://api.deepseek.com/v1"}},
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        return self.render(_checked(self.actor, self.read(), Model.Type.CHAT))


class RerankCheckView(ApiView):
    operations = {
        "POST": Op(
            "model.write",
            "Test a rerank endpoint before it is saved",
            body=ModelCheckIn,
            description="Always 200; `available` says whether it answered, `message` what it said or what is wrong.",
            examples={"endpoint": {"source": "remote", "modelName": "BAAI/bge-reranker-v2-m3", "baseUrl": "https://api.siliconflow.cn/v1"}},
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        return self.render(_checked(self.actor, self.read(), Model.Type.RERANK))


class CatalogueView(ApiView):
    operations = {
        "GET": Op(
            "model.list",
            "List the models of the space by what they are for",
            description="Lists for conversation, summary, vision, wiki and embedding; names only.",
            tags=TAGS,
        )
    }

    def get(self, request: Any) -> Response:
        found: dict[str, list[dict[str, str]]] = {}
        for entry in model_list(actor=self.actor):
            found.setdefault(entry.type, []).append({"id": entry.id, "name": entry.name, "displayName": entry.title})
        chat = found.get(Model.Type.CHAT, [])
        shown = {"conversation": chat, "summary": chat, "wiki": chat, "vision": found.get(Model.Type.VISION, [])}
        return self.render({**shown, "embedding": found.get(Model.Type.EMBEDDING, [])})


def _checked(actor: Actor, body: dict[str, Any], kind: str) -> dict[str, Any]:
    row = _own(model_get(actor=actor, model_id=body["modelId"])) if body.get("modelId") else None
    names = {"modelName": "name", "baseUrl": "base_url", "apiKey": "api_key", "provider": "provider", "source": "source"}
    values = {ours: body[name] for name, ours in names.items() if body.get(name)}
    done = model_probe(actor=actor, values={**values, "type": kind}, model=row)
    words = failure_of(done.code)
    return {"available": done.ok, "message": done.said if done.ok else f"{words.why}{_(': ')}{words.next}"}


def _own(entry: Entry) -> Model:
    if entry.row is None:
        raise Forbidden(_("This model belongs to the deployment; only its operator changes it."), code="builtin_model")
    return entry.row


def _texts(body: dict[str, Any]) -> tuple[str, ...]:
    documents = body.get("documents") or []
    if isinstance(documents, str):
        try:
            documents = json.loads(documents)
        except ValueError:
            raise InvalidInput(_("Send a JSON array of texts."), field="documents") from None
    if (
        not isinstance(documents, list)
        or len(documents) > 100
        or not all(isinstance(text, str) and len(text) <= 65536 for text in documents)
    ):
        raise InvalidInput(_("Send a JSON array of at most 100 texts."), field="documents")
    return tuple(filter(None, (body.get("input", ""), *documents)))


PATHS = {Model.Type.EMBEDDING: "embeddings", Model.Type.RERANK: "rerank"}


def _debugged(row: Model, texts: tuple[str, ...], done: Tested) -> dict[str, Any]:
    makes_vectors = row.type == Model.Type.EMBEDDING
    raw = {"dimension": done.dimension, "first_values": list(done.sample)} if makes_vectors else {"answer": done.said}
    asked = {"texts": 1 + len(texts)} if makes_vectors else {}
    shown: dict[str, Any] = {
        "ok": done.ok,
        "elapsed_ms": round(done.took_ms, 1),
        "request": {"url": f"{row.base_url}/{PATHS.get(Model.Type(row.type), 'chat/completions')}", "model": row.name, **asked},
        "raw_response": raw if done.ok else {},
        "observations": [_("It gives other vectors than before: re-index the knowledge bases that use it.")] if done.changed else [],
    }
    if not done.ok:
        words = failure_of(done.code)
        shown["error"] = {"code": done.code, "message": str(words.why), "next": str(words.next), "details": done.error}
    return shown
