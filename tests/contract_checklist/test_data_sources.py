"""Lines T22 to T28 of the contract's second checklist (content 14): data sources."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.common.jobs.tasks import work
from apps.common.scope import space_scope, unscoped
from apps.sources.models import DataSource, SyncRun
from apps.sources.plugins.protocol import SourceError
from apps.sources.services import due_start
from tests.sources import conftest as sources
from tests.support import scripted

desk, world, store, in_space, heard = sources.desk, sources.world, sources.store, sources.in_space, sources.heard
run_jobs, Desk, _connector = sources.run_jobs, sources.Desk, sources._connector


def body(desk: Desk, **more: Any) -> dict[str, Any]:
    config = {"credentials": {"api_key": desk.shelf.key}, "settings": {"shelf": desk.name}}
    return {"knowledge_base_id": str(desk.world.base.uid), "name": "Notes", "type": scripted.TYPE, "config": config, **more}


def made(desk: Desk, **more: Any) -> str:
    """The path of a new source, which the desk works on from here."""
    answer = desk.world.admin.post("datasource", body(desk, **more))
    assert answer.status_code == 201, answer.content
    with unscoped("test look"):
        desk._source = DataSource.objects.get(uid=answer.json()["id"])
    return f"datasource/{answer.json()['id']}"


def latest(desk: Desk, path: str) -> dict[str, Any]:
    return dict(desk.world.member.get(f"{path}/logs?limit=1").json()[0])


COUNTS = ("items_total", "items_created", "items_updated", "items_deleted", "items_skipped", "items_failed")


def counts(log: dict[str, Any]) -> tuple[int, ...]:
    return tuple(log[name] for name in COUNTS)


def test_line_t22_members_read_lists_and_logs_and_nothing_else(desk: Desk) -> None:
    path, member = made(desk), desk.world.member
    desk.sync()
    log = latest(desk, path)["id"]
    reads = (path, f"{path}/logs", f"datasource/logs/{log}", "datasource/types", f"datasource?kb_id={desk.world.base.uid}")
    assert [member.get(read).status_code for read in reads] == [200] * 5
    writes: list[tuple[str, str, Any]] = [
        ("GET", f"{path}/resources", None), ("POST", f"{path}/resource-ancestors", {"resource_ids": ["a"]}), ("PUT", path, {"name": "x"}),
        ("POST", "datasource", body(desk)), ("PUT", f"{path}/credentials", {"credentials": {"api_key": "x"}}), ("DELETE", path, None),
        ("DELETE", f"{path}/credentials/credentials", None), ("POST", "datasource/validate-credentials", {"type": "rss", "credentials": {}}),
        *(("POST", f"{path}/{act}", {}) for act in ("sync", "pause", "resume", "validate")),
    ]  # fmt: skip
    assert {member.call(method, at, sent).status_code for method, at, sent in writes} == {403}
    assert desk.world.admin.get(path).json()["name"] == "Notes"


def test_line_t23_what_does_not_answer_is_not_stored(desk: Desk) -> None:
    wrong = {"credentials": {"api_key": "wrong"}, "settings": {"shelf": desk.name}}
    assert desk.world.admin.post("datasource", body(desk, config=wrong)).status_code == 400
    for kind in ("slack", "no such kind"):
        answer = desk.world.admin.post("datasource", body(desk, type=kind))
        assert (answer.status_code, answer.json()["error"]) == (400, "connector type not found in registry")
    with unscoped("test look"):
        assert not DataSource.objects.exists()


def test_line_t24_credentials_are_told_by_their_presence_alone(desk: Desk) -> None:
    path, admin = made(desk), desk.world.admin
    answers = [admin.get(path), admin.get(f"datasource?kb_id={desk.world.base.uid}")]
    answers.append(admin.put(path, {"name": "New", "config": {"credentials": {"api_key": "from the body"}}}))
    desk.sync()
    assert latest(desk, path)["status"] == "success", "credentials in the body of an update are ignored"
    wrong = admin.put(f"{path}/credentials", {"credentials": {"api_key": "wrong-key"}})
    assert (wrong.status_code, wrong.json()["success"]) == (400, False)
    desk.sync()
    assert latest(desk, path)["status"] == "success", "what does not answer replaces nothing"
    desk.shelf.key = "another-key"
    right = admin.put(f"{path}/credentials", {"credentials": {"api_key": "another-key"}})
    assert right.json() == {"success": True, "data": {"fields": {"credentials": {"configured": True}}}}
    assert admin.delete(f"{path}/credentials/api_key").json()["error"]["code"] == 1000
    assert admin.delete(f"{path}/credentials/credentials").status_code == 204
    answers += [right, admin.get(path), admin.get(f"{path}/logs")]
    assert admin.get(path).json()["credentials"] == {"credentials": {"configured": False}}
    told = "".join(answer.content.decode() for answer in answers)
    assert [word for word in ("secret-key", "another-key", "from the body") if word in told] == []


def test_line_t25_an_update_leaves_what_it_does_not_name(desk: Desk) -> None:
    """Decided: what is left out stays, where upstream loses it; a client that sends all three gets what it sends."""
    path, admin = made(desk, sync_schedule="0 0 2 * * *", sync_deletions=True), desk.world.admin
    kept = admin.put(path, {"name": "Renamed"}).json()
    assert (kept["name"], kept["sync_schedule"], kept["sync_deletions"], kept["status"]) == ("Renamed", "0 0 2 * * *", True, "active")
    assert kept["created_at"] > "2000" and kept["next_sync_at"] is not None, "the stored row, still on its schedule"
    sent = admin.put(path, {"sync_schedule": "", "sync_deletions": False, "status": "paused"}).json()
    assert (sent["sync_schedule"], sent["sync_deletions"], sent["status"]) == ("", False, "paused")


def test_line_t26_what_a_deleted_source_brought_stays(desk: Desk) -> None:
    desk.shelf.fill(3)
    path, admin = made(desk), desk.world.admin
    desk.sync()
    assert admin.get(path).json()["retainedKnowledgeCount"] == 3
    run = desk.start()
    assert admin.delete(path).status_code == 204
    assert (admin.get(path).status_code, admin.get(path).json()) == (404, {"error": "data source not found"})
    with unscoped("test look"):
        ended = SyncRun.objects.get(pk=run.pk)
    assert (ended.outcome, ended.error, len(desk.documents())) == ("canceled", "data source deleted", 3)


def test_line_t27_what_a_run_counts(desk: Desk) -> None:
    desk.shelf.fill(3).put("empty", "Empty", None)
    path = made(desk, sync_deletions=True)
    waiting = desk.world.admin.post(f"{path}/sync").json()
    assert (waiting["status"], waiting["result"], waiting["finished_at"]) == ("running", None, None)
    work(desk.claim())
    first = latest(desk, path)
    assert (first["id"], first["status"], counts(first)) == (waiting["id"], "success", (4, 3, 0, 0, 1, 0))
    documents = {name: (row.pk, row.version, row.updated_at) for name, row in desk.documents().items()}
    desk.sync()
    assert latest(desk, path)["items_created"] == 0
    assert {name: (row.pk, row.version, row.updated_at) for name, row in desk.documents().items()} == documents, "nothing was written"
    desk.shelf.change("id-1", text="Another text.", stamp="2")
    desk.shelf.change("id-3", text="Cannot be had.", stamp="2")
    desk.shelf.drop("id-2")
    desk.shelf.fetch_errors["id-3"] = SourceError("ingest_failed", "refused by the source")
    desk.sync()
    third = latest(desk, path)
    assert (third["status"], third["items_created"], third["items_updated"], third["items_deleted"]) == ("partial", 0, 1, 1)
    assert (third["items_failed"], third["result"]["failed"], third["result"]["errors"][0]["title"]) == (1, 1, "Note 3")
    assert sorted(desk.documents()) == ["Note 1", "Note 3"]
    assert desk.documents()["Note 1"].pk == documents["Note 1"][0], "a changed item stays the same document"


def test_line_t27_nothing_is_deleted_where_that_was_not_asked_for(desk: Desk) -> None:
    desk.shelf.fill(4)
    path = made(desk, sync_deletions=False)
    desk.sync()
    desk.shelf.drop("id-1")
    desk.sync()
    assert (latest(desk, path)["items_deleted"], len(desk.documents())) == (0, 4)


def test_line_t27_a_schedule_that_falls_due_during_a_run_starts_no_second_one(desk: Desk) -> None:
    made(desk, sync_schedule="0 */30 * * * *")
    run = desk.start()
    with space_scope(desk.world.space.pk, "test"):
        assert due_start(actor=desk.actor.system(desk.world.space.pk, "test"), now=desk.source.next_run_at) == 0
    with unscoped("test look"):
        assert [row.pk for row in SyncRun.objects.all()] == [run.pk]


@pytest.mark.parametrize(("query", "status"), [("", 200), ("limit=1", 200), ("limit=100", 200), ("limit=0", 400), ("limit=101", 400),
                                              ("limit=-1", 400), ("limit=x", 400)])  # fmt: skip
def test_line_t28_limits_of_the_log(desk: Desk, query: str, status: int) -> None:
    assert desk.world.member.get(f"{made(desk)}/logs?{query}").status_code == status


def test_types_are_the_contracts_with_no_secret_among_what_is_shown(desk: Desk) -> None:
    kinds = {each["type"]: each for each in desk.world.member.get("datasource/types").json()}
    told = {
        name: (kinds[name]["priority"], kinds[name]["auth_type"]) for name in ("feishu", "lark_drive", "notion", "yuque", "gitlab", "rss")
    }
    assert told == {
        "feishu": (0, "oauth2"), "lark_drive": (0, "oauth2"), "notion": (1, "api_key"), "yuque": (3, "api_key"), "gitlab": (8, "token"),
        "rss": (12, "custom"),
    }  # fmt: skip
    assert "secret-key" not in json.dumps(kinds)
