"""Data sources over REST, in the shapes of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.common.scope import unscoped
from apps.sources.models import DataSource
from tests.sources.conftest import Desk
from tests.support import scripted


def _body(desk: Desk, **values: Any) -> dict[str, Any]:
    config = {"credentials": {"api_key": desk.shelf.key}, "settings": {"shelf": desk.name}}
    return {"knowledge_base_id": str(desk.world.base.uid), "name": "Notes", "type": scripted.TYPE, "config": config, **values}


def _made(desk: Desk, **values: Any) -> dict[str, Any]:
    answer = desk.world.admin.post("datasource", _body(desk, **values))
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def test_kinds_of_sources(desk: Desk) -> None:
    kinds = desk.world.member.get("datasource/types").json()
    assert [each["type"] for each in kinds] == [each["type"] for each in sorted(kinds, key=lambda each: (each["priority"], each["type"]))]
    mine = next(each for each in kinds if each["type"] == scripted.TYPE)
    assert (mine["auth_type"], mine["capabilities"]) == ("api_key", ["incremental", "deletion_sync"])
    assert mine["inputs"][0] == {
        "name": "api_key", "label": "Key", "kind": "secret", "where": "credentials", "required": True, "hint": "", "choices": [], "default": "",
    }  # fmt: skip


def test_a_new_source_is_answered_without_its_credentials(desk: Desk) -> None:
    made = _made(desk, sync_schedule="0 0 2 * * *", sync_deletions=True)
    assert made["credentials"] == {"credentials": {"configured": True}}
    assert made["config"] == {"type": "scripted", "settings": {"shelf": desk.name}}
    wanted = {
        "knowledge_base_id": str(desk.world.base.uid), "tenant_id": desk.world.space.pk, "sync_schedule": "0 0 2 * * *",
        "sync_mode": "incremental", "status": "active", "conflict_strategy": "overwrite", "sync_deletions": True,
        "deletion_policy": "apply", "sync_log_retention_days": 30, "last_sync_at": None, "retainedKnowledgeCount": 0,
    }  # fmt: skip
    assert {name: made[name] for name in wanted} == wanted
    assert made["next_sync_at"] is not None
    shown = desk.world.member.get(f"datasource/{made['id']}")
    listed = desk.world.member.get(f"datasource?kb_id={desk.world.base.uid}")
    assert desk.shelf.key not in shown.content.decode() + listed.content.decode() + json.dumps(made)
    with unscoped("test look"):
        row = DataSource.objects.get()
    assert desk.shelf.key not in row.sealed and row.sealed


def test_what_does_not_answer_is_not_stored(desk: Desk) -> None:
    admin = desk.world.admin
    wrong = admin.post("datasource", _body(desk, config={"credentials": {"api_key": "no"}, "settings": {"shelf": desk.name}}))
    assert wrong.status_code == 400 and wrong.json()["reason"] == "auth"
    assert wrong.json()["error"].startswith("The source does not accept the credentials (the key is wrong).")
    lacking = admin.post("datasource", _body(desk, config={"settings": {"shelf": desk.name}}))
    assert (lacking.status_code, lacking.json()["field"]) == (400, "api_key")
    setting = admin.post("datasource", _body(desk, config={"credentials": {"api_key": "x"}, "settings": {"shelf": "none"}}))
    assert (setting.status_code, setting.json()["error"], setting.json()["field"]) == (400, "there is no such shelf", "shelf")
    unknown = admin.post("datasource", _body(desk, type="carrier-pigeon"))
    assert (unknown.status_code, unknown.json()["error"]) == (400, "connector type not found in registry")
    for schedule in ("often", "0 0 30 2 *", "* * * * * * *", "99 * * * *"):
        answer = admin.post("datasource", _body(desk, sync_schedule=schedule))
        assert (answer.status_code, answer.json()["field"]) == (400, "sync_schedule"), schedule
    foreign = admin.post("datasource", _body(desk, knowledge_base_id=str(desk.world.other_base.uid)))
    assert foreign.status_code == 404
    with unscoped("test look"):
        assert DataSource.objects.count() == 0


def test_trying_credentials_stores_nothing(desk: Desk) -> None:
    body = {"type": scripted.TYPE, "credentials": {"api_key": desk.shelf.key, "shelf": desk.name}}
    answer = desk.world.admin.post("datasource/validate-credentials", body)
    assert (answer.status_code, answer.json()) == (200, {"status": "connected"})
    body["credentials"]["api_key"] = "no"
    assert desk.world.admin.post("datasource/validate-credentials", body).status_code == 400
    assert desk.world.member.post("datasource/validate-credentials", body).status_code == 403


def test_settings_among_the_credentials_go_where_they_belong(desk: Desk) -> None:
    config = {"credentials": {"api_key": desk.shelf.key, "shelf": desk.name}}
    made = _made(desk, config=config)
    assert made["config"]["settings"] == {"shelf": desk.name}
    with unscoped("test look"):
        from apps.sources.linking import credentials_of

        assert credentials_of(DataSource.objects.get()) == {"api_key": desk.shelf.key}


def test_the_list_needs_a_base_and_shows_the_latest_run(desk: Desk) -> None:
    member = desk.world.member
    assert member.get("datasource").status_code == 400
    assert member.get("datasource?kb_id=00000000-0000-0000-0000-000000000001").status_code == 404
    assert member.get(f"datasource?kb_id={desk.world.base.uid}").json() == []
    first, second = _made(desk, name="First"), _made(desk, name="Second")
    listed = member.get(f"datasource?kb_id={desk.world.base.uid}").json()
    assert [each["id"] for each in listed] == [second["id"], first["id"]] and "latest_sync_log" not in listed[0]
    desk.world.admin.post(f"datasource/{second['id']}/sync")
    assert member.get(f"datasource?kb_id={desk.world.base.uid}").json()[0]["latest_sync_log"]["status"] == "running"


def test_members_read_and_admins_do(desk: Desk) -> None:
    made = _made(desk)
    member, outsider = desk.world.member, desk.world.outsider
    for path in (f"datasource/{made['id']}", f"datasource/{made['id']}/logs", f"datasource/{made['id']}/held"):
        assert member.get(path).status_code == 200
        assert (outsider.get(path).status_code, outsider.get(path).json()) == (404, {"error": "data source not found"})
    refused = [
        member.get(f"datasource/{made['id']}/resources"),
        member.post("datasource", _body(desk)),
        member.put(f"datasource/{made['id']}", {"name": "x"}),
        member.delete(f"datasource/{made['id']}"),
        *(member.post(f"datasource/{made['id']}/{what}") for what in ("sync", "pause", "resume", "validate")),
    ]
    assert {answer.status_code for answer in refused} == {403}


def test_an_update_changes_what_is_named_and_nothing_else(desk: Desk) -> None:
    made = _made(desk, sync_schedule="0 0 * * * *", sync_deletions=True, conflict_strategy="skip")
    changed = desk.world.admin.put(f"datasource/{made['id']}", {"name": "Renamed"}).json()
    assert (changed["name"], changed["sync_schedule"], changed["sync_deletions"], changed["status"]) == (
        "Renamed",
        "0 0 * * * *",
        True,
        "active",
    )
    cleared = desk.world.admin.put(f"datasource/{made['id']}", {"sync_schedule": ""}).json()
    assert (cleared["sync_schedule"], cleared["next_sync_at"]) == ("", None)
    whole = {
        **cleared,
        "sync_schedule": "30 4 * * 1",
        "status": "active",
        "sync_deletions": False,
        "config": {**cleared["config"], "credentials": {"api_key": "ignored"}},
    }
    sent = desk.world.admin.put(f"datasource/{made['id']}", whole).json()
    assert (sent["sync_schedule"], sent["deletion_policy"], sent["conflict_strategy"]) == ("30 4 * * 1", "apply", "skip"), (
        "its own word wins"
    )
    old_client = {name: value for name, value in whole.items() if name != "deletion_policy"}
    assert desk.world.admin.put(f"datasource/{made['id']}", old_client).json()["deletion_policy"] == "ignore"
    held = desk.world.admin.put(f"datasource/{made['id']}", {"deletion_policy": "hold"}).json()
    assert (held["deletion_policy"], held["sync_deletions"]) == ("hold", False)
    assert desk.world.admin.put(f"datasource/{made['id']}", old_client).json()["deletion_policy"] == "hold", (
        "a client that knows two words keeps it"
    )
    assert desk.world.admin.put(f"datasource/{made['id']}", {"type": "rss"}).status_code == 400
    assert desk.world.admin.put(f"datasource/{made['id']}", {"conflict_strategy": "pray"}).json()["field"] == "conflict_strategy"
    desk._source = _row(made["id"])
    desk.shelf.fill(1)
    assert desk.sync().outcome == "success", "the credentials in the body were ignored"


def _row(uid: str) -> DataSource:
    with unscoped("test look"):
        return DataSource.objects.get(uid=uid)


def test_credentials_have_a_route_of_their_own(desk: Desk) -> None:
    made = _made(desk)
    path = f"datasource/{made['id']}/credentials"
    admin = desk.world.admin
    wrong = admin.put(path, {"credentials": {"api_key": "no"}})
    assert (wrong.status_code, wrong.json()["success"], wrong.json()["error"]["details"]["reason"]) == (400, False, "auth")
    assert admin.put(path, {"credentials": {}}).status_code == 400
    desk.shelf.key = "another"
    right = admin.put(path, {"credentials": {"api_key": "another"}})
    assert right.json() == {"success": True, "data": {"fields": {"credentials": {"configured": True}}}}
    assert admin.delete(f"{path}/password").status_code == 400
    assert admin.delete(f"{path}/credentials").status_code == 204
    assert admin.get(f"datasource/{made['id']}").json()["credentials"] == {"credentials": {"configured": False}}


def test_validate_sets_and_clears_the_error(desk: Desk) -> None:
    made = _made(desk)
    path = f"datasource/{made['id']}"
    admin = desk.world.admin
    key, desk.shelf.key = desk.shelf.key, "changed at the source"
    assert admin.post(f"{path}/validate").status_code == 400
    broken = admin.get(path).json()
    assert (broken["status"], broken["error_message"]) == ("error", "the key is wrong")
    desk.shelf.key = key
    assert admin.post(f"{path}/validate").json() == {"status": "connected"}
    assert (admin.get(path).json()["status"], "error_message" in admin.get(path).json()) == ("active", False)


def test_parts_and_the_way_to_them(desk: Desk) -> None:
    desk.shelf.put("a1", "A one", "x", folder="A")
    made = _made(desk)
    path = f"datasource/{made['id']}"
    parts = desk.world.admin.get(f"{path}/resources").json()
    assert [(each["external_id"], each["has_children"]) for each in parts] == [("A", True)]
    assert [each["name"] for each in desk.world.admin.get(f"{path}/resources?parent_id=A").json()] == ["A one"]
    assert desk.world.admin.post(f"{path}/resource-ancestors", {"resource_ids": ["a1"]}).json() == {"ancestors": ["A"]}


def test_pause_resume_sync_and_logs(desk: Desk) -> None:
    made = _made(desk, sync_schedule="0 0 * * * *")
    path, admin = f"datasource/{made['id']}", desk.world.admin
    assert admin.post(f"{path}/pause").json() == {"status": "paused"}
    assert admin.get(path).json()["next_sync_at"] is None
    desk.shelf.fill(2)
    started = admin.post(f"{path}/sync")
    log = started.json()
    assert (started.status_code, log["status"], log["result"], log["finished_at"]) == (200, "running", None, None)
    assert admin.post(f"{path}/sync").json()["id"] == log["id"], "there is one run at a time"
    from apps.common.jobs.tasks import work

    work(desk.claim())
    ended = admin.get(f"datasource/logs/{log['id']}").json()
    assert (ended["status"], ended["items_total"], ended["items_created"], ended["result"]["created"]) == ("success", 2, 2, 2)
    shown = admin.get(path).json()
    assert (shown["status"], shown["retainedKnowledgeCount"], shown["last_sync_at"]) == ("paused", 2, ended["finished_at"])
    assert admin.post(f"{path}/resume").json() == {"status": "active"}
    assert admin.get(path).json()["next_sync_at"] is not None
    assert desk.world.outsider.get(f"datasource/logs/{log['id']}").json() == {"error": "sync log not found"}


@pytest.mark.parametrize(("query", "status"), [("", 200), ("?limit=1", 200), ("?limit=100", 200), ("?limit=0", 400), ("?limit=101", 400),
                                              ("?limit=x", 400), ("?offset=-1", 400), ("?limit=5&offset=3", 200)])  # fmt: skip
def test_limits_of_the_log(desk: Desk, query: str, status: int) -> None:
    made = _made(desk)
    assert desk.world.member.get(f"datasource/{made['id']}/logs{query}").status_code == status


def test_removing_a_source_keeps_what_it_brought_and_ends_its_run(desk: Desk) -> None:
    desk.shelf.fill(3)
    made = _made(desk)
    desk._source = _row(made["id"])
    desk.sync()
    run = desk.start()
    assert desk.world.admin.get(f"datasource/{made['id']}").json()["retainedKnowledgeCount"] == 3
    assert desk.world.admin.delete(f"datasource/{made['id']}").status_code == 204
    assert desk.world.admin.get(f"datasource/{made['id']}").status_code == 404
    assert (desk.fresh(run).outcome, desk.fresh(run).error, len(desk.documents())) == ("canceled", "data source deleted", 3)
    assert desk.world.admin.get(f"datasource?kb_id={desk.world.base.uid}").json() == []


def test_held_documents_are_decided_about(desk: Desk) -> None:
    made = _made(desk, deletion_policy="hold")
    desk._source = _row(made["id"])
    desk.shelf.fill(4)
    desk.sync()
    desk.shelf.drop("id-1", "id-2")
    desk.sync()
    path = f"datasource/{made['id']}/held"
    held = desk.world.member.get(path).json()
    assert [each["title"] for each in held] == ["Note 1", "Note 2"]
    assert desk.world.member.post(path, {"decision": "keep"}).status_code == 403
    assert desk.world.admin.post(path, {"decision": "delete", "ids": [held[0]["id"]]}).json() == {"deleted": 1, "kept": 0, "stays": []}
    assert desk.world.admin.post(path, {"decision": "keep"}).json() == {"deleted": 0, "kept": 1, "stays": []}
    assert desk.world.admin.post(path, {"decision": "burn"}).status_code == 400
    assert sorted(desk.documents()) == ["Note 2", "Note 3", "Note 4"]


def test_a_faq_base_takes_no_sources(desk: Desk) -> None:
    base = desk.world.make_base(desk.world.space, "Questions", type="faq")
    answer = desk.world.admin.post("datasource", _body(desk, knowledge_base_id=str(base.uid)))
    assert (answer.status_code, answer.json()["reason"]) == (400, "faq_base")


def test_the_other_two_prefixes_serve_the_same(desk: Desk) -> None:
    made = _made(desk)
    organization = f"/v1/tenants/{desk.world.space.pk}/knowledge/datasource"
    assert desk.world.admin.get(f"{organization}?kb_id={desk.world.base.uid}").json()[0]["id"] == made["id"]
    foreign = desk.world.admin.get(f"{organization}/00000000-0000-0000-0000-000000000001")
    assert (foreign.status_code, foreign.json()) == (404, {"error": "data source not found", "code": "NOT_FOUND"})
    refused = desk.world.member.call("DELETE", f"{organization}/{made['id']}")
    assert (refused.status_code, refused.json()["code"]) == (403, "KNOWLEDGE_MANAGE_REQUIRED")


def test_a_run_says_what_went_wrong_with_which_item(desk: Desk) -> None:
    from apps.sources.plugins.protocol import SourceError

    made = _made(desk)
    desk._source = _row(made["id"])
    desk.shelf.fill(2)
    desk.shelf.fetch_errors["id-2"] = SourceError("feishu_api_error", "boom", params={"code": 1770})
    run = desk.sync()
    log = desk.world.member.get(f"datasource/logs/{run.uid}").json()
    assert (log["status"], log["items_failed"]) == ("partial", 1)
    assert log["result"]["errors"] == [{"title": "Note 2", "code": "feishu_api_error", "message": "boom", "params": {"code": 1770}}]
