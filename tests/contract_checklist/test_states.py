"""Lines 7, 8, 11, 12 and 13 of the contract's checklist: written documents, the same file twice, states, silence, the trace."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from apps.common.scope import unscoped
from apps.ingestion.models import IngestionRun, Span
from apps.knowledge import intake
from apps.knowledge.models import Document
from tests.contract_checklist.conftest import World, code, data

IN_FLIGHT = ("pending", "processing", "finalizing")
STAGES = ["docreader", "chunking", "embedding", "multimodal", "postprocess"]


def titles(found: Any) -> set[str]:
    return {row["knowledge_title"] for row in found or []}


@pytest.mark.usefixtures("words_only")
def test_line_07_a_draft_is_found_nowhere_before_and_after_it_was_published(world: World) -> None:
    note = world.write("Note", "The zebra pump.", "draft")
    url, text = f"knowledge/manual/{note['id']}", {"content": "The zebra pump of hall 2."}
    world.parse()
    assert (note["parse_status"], note["metadata"]["version"], world.search("zebra")) == ("draft", 1, None)
    published = data(world.member.put(url, {**text, "status": "publish"}))
    assert (published["parse_status"], published["metadata"]["version"]) == ("pending", 2)
    world.parse()
    assert world.document(note["id"])["parse_status"] == "completed" and titles(world.search("zebra")) == {"Note"}
    again = data(world.member.put(url, {"content": "The zebra pump, later."}))
    assert (again["parse_status"], again["metadata"]["version"], again["enable_status"]) == ("draft", 3, "disabled")
    assert world.search("zebra") is None, "at once, and after a worker was here"
    world.parse()
    assert world.search("zebra") is None
    for status in ("published", "PUBLISHED", "live"):
        assert code(world.member.put(url, {**text, "status": status})) == (400, 1010)
    assert world.document(note["id"])["metadata"]["version"] == 3
    assert data(world.member.put(url, {**text, "status": " Publish "}))["parse_status"] == "pending"


def test_line_08_the_same_bytes_answer_409_with_the_first_document(world: World) -> None:
    first = world.member.upload(world.base, b"the same", "a.txt").json()["data"]
    again = world.member.upload(world.base, b"the same", "b.txt")
    assert again.status_code == 409
    body = again.json()
    assert (body["success"], body["code"], body["data"]["id"]) == (False, "duplicate_file", first["id"]) and body["message"]
    assert set(body) == {"success", "message", "data", "code"}
    assert body["data"]["created_at"] > first["created_at"], "the first one is on top of the list again"
    other = world.member.upload(world.base, b"something else", "a.txt")
    assert other.status_code == 200 and data(other)["id"] != first["id"], "a name may be there twice"
    assert world.member.upload(world.base, b"the same", "a.md").status_code == 200, "as another type of file it is another document"
    with unscoped("test data"):
        Document.objects.filter(uid=first["id"]).update(parse_status="failed")
    assert world.member.upload(world.base, b"the same", "a.txt").status_code == 200


@pytest.mark.usefixtures("words_only")
def test_line_11_states_change_as_the_table_says(world: World) -> None:
    made = world.member.upload(world.base, b"the zebra pump", "a.txt").json()["data"]
    assert (made["parse_status"], made["enable_status"], world.search("zebra")) == ("pending", "disabled", None)
    world.parse()
    done = world.document(made["id"])
    assert (done["parse_status"], done["enable_status"], done["error_message"]) == ("completed", "enabled", "")
    row = _row(made["id"])
    world.set(row, parse_status="finalizing", pending_subtasks_count=1)
    assert titles(world.search("zebra")) == {"a.txt"}, "finalizing is searchable"

    url = f"knowledge/{made['id']}/cancel-parse"
    for status in (*IN_FLIGHT, "draft"):
        world.set(row, parse_status=status, error_message="", pending_subtasks_count=3)
        stopped = data(world.member.post(url))
        assert (stopped["parse_status"], stopped["pending_subtasks_count"]) == ("cancelled", 0) and stopped["error_message"]
        twice = data(world.member.post(url))
        assert (twice["parse_status"], twice["updated_at"]) == ("cancelled", stopped["updated_at"]), "a second time changes nothing"
    for status in ("completed", "failed"):
        world.set(row, parse_status=status)
        assert code(world.member.post(url)) == (400, 1000)
        assert _row(made["id"]).parse_status == status
    for status in ("completed", "failed", "cancelled", "finalizing"):
        world.set(row, parse_status=status, error_message="why")
        sent = data(world.member.post(f"knowledge/{made['id']}/reparse"))
        assert (sent["parse_status"], sent["error_message"], sent["description"], sent["processed_at"]) == ("pending", "", "", None), status
    world.parse()
    assert world.document(made["id"])["parse_status"] == "completed"
    world.set(row, parse_status="processing")
    data(world.member.delete(f"knowledge/{made['id']}"))
    assert world.member.get(f"knowledge/{made['id']}").status_code == 404
    assert code(world.member.post(url))[0] == 404


def _row(uid: str) -> Document:
    with unscoped("test look"):
        return Document.objects.get(uid=uid)


def test_line_12_silence_of_twenty_minutes_is_said_for_those_in_flight_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {status: world.make_document(world.base, status, parse_status=status) for status in (*IN_FLIGHT, "completed", "failed")}
    queued = world.make_document(world.base, "queued", parse_status="pending")
    with unscoped("test data"):
        IngestionRun.objects.create(space=world.space, document=queued, kind="parse", document_attempt=1)
    every = [*rows.values(), queued]

    def asked() -> dict[str, dict[str, Any]]:
        found = data(world.member.get("knowledge/batch?ids=" + ",".join(str(row.uid) for row in every)))
        return {row["title"]: row for row in found}

    def silent(minutes: float) -> None:
        for row in every:
            world.set(row, updated_at=timezone.now() - timedelta(minutes=minutes))

    silent(19.5)
    fresh = asked()
    assert {name for name, row in fresh.items() if "last_activity_at" in row} == {*IN_FLIGHT, "queued"}
    assert not [name for name, row in fresh.items() if "stall_state" in row]
    silent(20.1)
    states = {name: row.get("stall_state") for name, row in asked().items()}
    assert states == {**dict.fromkeys(IN_FLIGHT, "stalled"), "queued": "queued", "completed": None, "failed": None}
    for row in data(world.member.get(f"knowledge-bases/{world.base.uid}/knowledge")):
        assert not {"stall_state", "last_activity_at"} & set(row), "a list never says it"
    with unscoped("test data"):  # a step of the work was just written down
        Span.objects.create(space=world.space, document=rows["processing"], attempt=1, name="docreader", started_at=timezone.now())
    assert "stall_state" not in asked()["processing"]

    def unable(*_args: Any) -> Any:
        raise DatabaseError("gone")

    monkeypatch.setattr(intake, "_stall_probe", unable)
    assert not [name for name, row in asked().items() if "stall_state" in row], "nobody is called stalled by guess"


@pytest.mark.usefixtures("words_only")
def test_line_13_a_trace_has_five_stages_whatever_happened(world: World) -> None:
    made = world.member.upload(world.base, b"text", "a.txt").json()["data"]

    def trace(attempt: Any = "") -> dict[str, Any]:
        return dict(data(world.member.get(f"knowledge/{made['id']}/stages?attempt={attempt}")))

    def stages(found: dict[str, Any]) -> dict[str, str]:
        assert [child["name"] for child in found["trace"]["children"]] == STAGES
        assert found["trace"]["name"] == "knowledge_processing" and found["trace"]["kind"] == "root"
        return {child["name"]: child["status"] for child in found["trace"]["children"]}

    before = trace()
    assert (before["attempt"], set(stages(before).values())) == (0, {"pending"}) and "last_error" not in before
    world.parse()
    assert trace()["attempt"] == 1 and set(stages(trace()).values()) <= {"done", "skipped"}
    world.member.post(f"knowledge/{made['id']}/reparse")
    world.parse()
    assert [trace(at)["attempt"] for at in ("", 1, 2, 0, -1, "junk", 99)] == [2, 1, 2, 2, 2, 2, 2]
    assert trace()["latest_attempt"] == trace(1)["latest_attempt"] == 2

    row = _row(made["id"])
    with unscoped("test data"):
        Span.objects.filter(document=row, attempt=2).delete()
        when = timezone.now()
        Span.objects.create(
            space=world.space, document=row, attempt=2, name="embedding", status="failed", error_code="EMBEDDING_PROVIDER_FAIL",
            error_message="the endpoint said no", started_at=when, finished_at=when,
        )  # fmt: skip
    world.set(row, parse_status="failed", error_message="the endpoint said no")
    failed = trace()
    assert stages(failed) == {
        "docreader": "skipped", "chunking": "skipped", "embedding": "failed", "multimodal": "cancelled", "postprocess": "cancelled",
    }  # fmt: skip
    error = failed["last_error"]
    assert error["stage"] == error["name"] == "embedding"
    assert error["code"] == error["error_code"] == "EMBEDDING_PROVIDER_FAIL"
    assert error["message"] == error["error_message"] == "the endpoint said no" and error["finished_at"]
    with unscoped("test data"):
        Span.objects.filter(document=row, attempt=2).delete()
        Span.objects.filter(document=row).delete()
    bare = trace()
    assert (bare["last_error"]["stage"], bare["last_error"]["code"]) == ("knowledge_processing", "UNKNOWN"), "it failed before any stage"
    assert stages(bare)["docreader"] == "failed"
