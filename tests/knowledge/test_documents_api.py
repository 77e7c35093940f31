"""Documents that are there."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.common.jobs.models import RunState
from apps.common.models import Activity
from apps.common.scope import unscoped
from apps.knowledge import intake
from apps.knowledge.events import DocumentParseCancelled, DocumentsDeleted, DocumentsRefiled, DocumentStored
from apps.knowledge.models import Chunk, CleanupRun, Document, DocumentTag, ParseStatus, Tag


def listed(person: Any, base: Any, query: str = "") -> list[str]:
    answer = person.get(f"knowledge-bases/{base.uid}/knowledge?{query}")
    assert answer.status_code == 200, answer.content
    return [row["title"] for row in answer.json()["data"]]


def tag(base: Any, name: str) -> Tag:
    with unscoped("test data"):
        return Tag.objects.create(space_id=base.space_id, kb=base, name=name)


def give(document: Document, *tags: Tag) -> None:
    with unscoped("test data"):
        for one in tags:
            DocumentTag.objects.create(space_id=document.space_id, document=document, tag=one)


def test_list_filters(world: Any) -> None:
    base = world.base
    red, blue = tag(base, "red"), tag(base, "blue")
    a = world.make_document(base, "100%_done.txt", folder_path="a")
    b = world.make_document(base, "100 done.pdf", file_type="pdf", folder_path="a/x", parse_status="failed", channel="api")
    world.make_document(base, "note", type="manual", file_type="manual", folder_path="ab", parse_status="draft")
    world.make_document(base, "page", type="url", file_type="html", folder_path="A/x")
    world.make_document(world.other_base, "foreign")
    give(a, red, blue)
    give(b, blue)
    assert listed(world.member, base) == ["page", "note", "100 done.pdf", "100%_done.txt"]
    assert listed(world.member, base, f"tag_ids={red.uid},{blue.uid},__untagged__") == ["100 done.pdf", "100%_done.txt"]
    assert listed(world.member, base, f"tag_ids={red.uid}") == ["100%_done.txt"]
    assert listed(world.member, base, "keyword=100%25_") == ["100%_done.txt"], "wildcards are text"
    assert listed(world.member, base, "keyword=DONE") == ["100 done.pdf", "100%_done.txt"]
    assert listed(world.member, base, "file_type=PDF") == ["100 done.pdf"]
    assert listed(world.member, base, "file_type=manual") == ["note"]
    assert listed(world.member, base, "file_type=url") == ["page"] == listed(world.member, base, "source=url")
    assert listed(world.member, base, "source=api") == ["100 done.pdf"]
    assert listed(world.member, base, "parse_status=failed") == ["100 done.pdf"]
    assert listed(world.member, base, "folder_path=") == []
    assert listed(world.member, base, "folder_path=&folder_recursive=true") == ["page", "note", "100 done.pdf", "100%_done.txt"]
    assert listed(world.member, base, "folder_path=a") == ["100%_done.txt"]
    assert listed(world.member, base, "folder_path=/a/&folder_recursive=true") == ["100 done.pdf", "100%_done.txt"], "neither ab nor A"
    assert listed(world.member, base, "folder_path=a&folder_recursive=perhaps") == ["100%_done.txt"]


def test_list_times_sorts_and_pages(world: Any) -> None:
    now = timezone.now()
    for number, name in enumerate(["b.txt", "a.txt", "c.txt"]):
        document = world.make_document(world.base, name)
        with unscoped("test data"):
            Document.objects.filter(pk=document.pk).update(updated_at=now - timedelta(days=number))
    day = (now - timedelta(days=1)).date().isoformat()
    assert listed(world.member, world.base, f"start_time={day}&end_time={day}") == ["a.txt"]
    assert listed(world.member, world.base, f"start_time={day}") == ["a.txt", "b.txt"]
    assert listed(world.member, world.base, "sort_by=file_name&sort_order=asc") == ["a.txt", "b.txt", "c.txt"]
    assert listed(world.member, world.base, "sort_by=file_name&sort_order=desc") == ["c.txt", "b.txt", "a.txt"]
    assert listed(world.member, world.base, "sort_by=updated_at") == ["b.txt", "a.txt", "c.txt"]
    assert listed(world.member, world.base, "sort_by=updated_at&sort_order=asc") == ["c.txt", "a.txt", "b.txt"]
    assert listed(world.member, world.base, "sort_by=created_at&sort_order=asc") == ["b.txt", "a.txt", "c.txt"]
    page = world.member.get(f"knowledge-bases/{world.base.uid}/knowledge?page=2&page_size=2").json()
    assert ([row["title"] for row in page["data"]], page["total"], page["page"], page["page_size"]) == (["b.txt"], 3, 2, 2)
    assert set(page) == {"success", "data", "total", "page", "page_size"}
    past = world.member.get(f"knowledge-bases/{world.base.uid}/knowledge?page=9").json()
    assert (past["data"], past["total"]) == ([], 3)
    zero = world.member.get(f"knowledge-bases/{world.base.uid}/knowledge?page=0&page_size=0").json()
    assert (zero["page"], zero["page_size"]) == (1, 20)


@pytest.mark.parametrize(
    "query",
    [
        "page=-1",
        "page_size=1001",
        "page_size=ten",
        "sort_by=title",
        "sort_by=created_at;drop",
        "sort_order=up",
        "start_time=yesterday",
        "end_time=2026-13-45",
    ],
)
def test_list_refuses_nonsense(world: Any, query: str) -> None:
    answer = world.member.get(f"knowledge-bases/{world.base.uid}/knowledge?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 1000)


def test_list_takes_constant_queries(world: Any, django_assert_max_num_queries: Any) -> None:
    from apps.common.scope import space_scope
    from apps.knowledge.api.serializers.documents import DocumentOut
    from apps.knowledge.selectors import document_list

    red = tag(world.base, "red")
    for number in range(12):
        give(world.make_document(world.base, f"{number}"), red)
    with space_scope(world.space.pk), django_assert_max_num_queries(2):
        assert len(DocumentOut(document_list(actor=world.member.actor, base=world.base), many=True).data) == 12


def test_batch_get_leaves_out_what_is_not_yours(world: Any) -> None:
    a, b = world.make_document(world.base, "a"), world.make_document(world.base, "b")
    foreign = world.make_document(world.other_base, "x")
    comma = world.member.get(f"knowledge/batch?ids={a.uid},{foreign.uid},{uuid.uuid4()},junk,{a.uid}&kb_id={world.base.uid}").json()
    assert [row["id"] for row in comma["data"]] == [str(a.uid)] and comma["data"][0]["tags"] is None
    repeated = world.member.get(f"knowledge/batch?ids={a.uid}&ids={b.uid}").json()
    assert {row["id"] for row in repeated["data"]} == {str(a.uid), str(b.uid)}
    assert world.member.get("knowledge/batch").status_code == 400
    assert world.member.get("knowledge/batch?ids=,%20,").status_code == 400
    ids = ",".join(str(uuid.uuid4()) for _ in range(200))
    assert world.member.get(f"knowledge/batch?ids={ids}").json()["data"] == []
    assert world.member.get(f"knowledge/batch?ids={ids},{uuid.uuid4()}").status_code == 400
    assert world.member.get(f"/v1/tenants/{world.space.pk}/knowledge/documents/batch?ids={a.uid}&kb_id={world.base.uid}").json() == {
        "success": True,
        "data": comma["data"],
    }


def test_batch_get_carries_what_the_stall_probe_says(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = world.make_document(world.base, "w", parse_status=ParseStatus.PENDING)
    done = world.make_document(world.base, "d")
    at = timezone.now()
    monkeypatch.setattr(intake, "_stall_probe", None)
    intake.register_stall_probe(lambda _actor, documents: {row.pk: intake.StallState("stalled", at) for row in documents})
    rows = {row["id"]: row for row in world.member.get(f"knowledge/batch?ids={waiting.uid},{done.uid}").json()["data"]}
    assert rows[str(waiting.uid)]["stall_state"] == "stalled" and rows[str(waiting.uid)]["last_activity_at"]
    assert "stall_state" not in rows[str(done.uid)] and "last_activity_at" not in rows[str(done.uid)]


def test_update_title_summary_and_metadata(world: Any, heard: Any) -> None:
    refiled = heard(DocumentsRefiled)
    document = world.make_document(world.base, "a.txt", description="old", summary_status="completed")
    url = f"knowledge/{document.uid}"
    answer = world.member.put(url, {"title": "New", "custom_metadata": {"k": "v", "n": 1.5, "b": True, "z": None}}).json()
    assert (answer["data"]["title"], answer["data"]["description"], answer["data"]["custom_metadata"]) == (
        "New",
        "old",
        {"k": "v", "n": 1.5, "b": True, "z": None},
    )
    assert [event.document_ids for event in refiled] == [(document.pk,)]
    assert world.fresh(document).index_rev == 1
    cleared = world.member.put(url, {"title": "", "description": ""}).json()["data"]
    assert (cleared["title"], cleared["description"], cleared["summary_status"]) == ("New", "", "none")
    assert world.member.put(url, {"custom_metadata": {"k": "v"}}).json()["data"]["custom_metadata"] == {"k": "v"}, "replaces all"
    world.member.put(url, {"custom_metadata": {"k": "v"}})
    assert world.fresh(document).index_rev == 3, "the same again changes nothing"


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({str(n): n for n in range(21)}, None),
        ({"k" * 65: 1}, "k" * 64),
        ({" ": 1}, " "),
        ({"a": [1]}, "a"),
        ({"a": {"b": 1}}, "a"),
        ({"a": "x" * 1001}, "a"),
    ],
)
def test_custom_metadata_rules(world: Any, values: dict[str, Any], key: str | None) -> None:
    document = world.make_document(world.base)
    answer = world.member.put(f"knowledge/{document.uid}", {"custom_metadata": values})
    details = answer.json()["error"]["details"]
    assert (answer.status_code, answer.json()["error"]["code"], details["field"], details.get("key")) == (400, 1010, "custom_metadata", key)
    assert world.member.put(f"knowledge/{document.uid}", {"custom_metadata": {str(n): n for n in range(20)}}).status_code == 200


def test_delete_is_at_once_once_and_cleaned_up(world: Any, heard: Any, stored: Any, run_jobs: Any, settings: Any) -> None:
    settings.TRASH_DAYS = 0
    deleted = heard(DocumentsDeleted)
    uid = world.member.upload(world.base, b"bytes").json()["data"]["id"]
    with unscoped("test data"):
        document = Document.objects.get(uid=uid)
        Chunk.objects.create(
            space=world.space, kb=world.base, document=document, chunk_index=0, content="c", content_hash="h", start_at=0, end_at=1
        )
    answer = world.member.delete(f"knowledge/{uid}").json()
    assert answer["success"] is True and answer["data"]["task_id"]
    for path in (f"knowledge/{uid}", f"knowledge/{uid}/download", f"chunks/{uid}"):
        assert world.member.get(path).status_code == 404
    assert listed(world.member, world.base) == []
    assert world.member.delete(f"knowledge/{uid}").status_code == 404
    assert [event.document_ids for event in deleted] == [(document.pk,)]
    assert len(stored()) == 1, "files go in the background"
    with unscoped("test look"):
        assert CleanupRun.objects.count() == 1
        assert Activity.objects.filter(action="knowledge.deleted", details__title="a.txt").count() == 1
    assert run_jobs("cleanup") == 1
    assert world.fresh(document) is None and stored() == []
    with unscoped("test look"):
        assert Chunk.objects.count() == 0
        assert CleanupRun.objects.get().state == RunState.DONE
    assert world.member.upload(world.base, b"bytes").status_code == 200


def test_cleanup_of_a_base_resumes_where_it_stopped(
    world: Any, stored: Any, run_jobs: Any, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.TRASH_DAYS = 0
    for number in range(3):
        world.member.upload(world.base, f"bytes {number}".encode(), f"{number}.txt")
    kept = world.outsider.upload(world.other_base, b"kept").json()["data"]["id"]
    world.admin.delete(f"knowledge-bases/{world.base.uid}")
    from apps.common.errors import TransientError
    from apps.knowledge import files

    real, calls = files.delete_files, []

    def once(paths: list[str]) -> int:
        calls.append(paths)
        if len(calls) == 2:
            raise TransientError("the store went away", retry_after_s=0.0001)
        return real(paths)

    monkeypatch.setattr(files, "delete_files", once)
    for _try in range(50):
        run_jobs("cleanup")
        if world.fresh(world.base) is None:
            break
    assert world.fresh(world.base) is None
    assert len(stored()) == 1 and world.outsider.get(f"knowledge/{kept}").status_code == 200
    with unscoped("test look"):
        assert Document.objects.filter(kb=world.base).count() == 0
        assert CleanupRun.objects.get().state == RunState.DONE


@pytest.mark.parametrize(
    ("path", "key"), [("knowledge/batch-delete", "ids"), ("knowledge/batch-reparse", "ids"), ("knowledge/folder", "knowledge_ids")]
)
def test_batches_take_1_to_200_of_one_base_or_nothing(world: Any, path: str, key: str) -> None:
    documents = [world.make_document(world.base, f"{n}", storage_path="k") for n in range(3)]
    foreign = world.make_document(world.other_base, "x")
    kb = str(world.base.uid)

    def call(ids: list[str]) -> Any:
        return world.member.post(path, {"kb_id": kb, key: ids})

    assert call([]).status_code == 400
    assert call([" ", ""]).status_code == 400
    assert call([str(uuid.uuid4()) for _ in range(201)]).status_code == 400
    assert call([str(documents[0].uid), str(foreign.uid)]).status_code == 400
    assert call([str(documents[0].uid), str(uuid.uuid4())]).status_code == 400
    assert world.fresh(documents[0]).index_rev == 0, "all or nothing"
    assert world.member.post(path, {key: [str(documents[0].uid)]}).status_code == 400
    assert world.member.post(path, {"kb_id": str(world.other_base.uid), key: [str(foreign.uid)]}).status_code == 404
    ids = [f" {documents[0].uid} ", str(documents[0].uid), "", str(documents[1].uid)]
    assert call(ids).status_code == 200
    assert [world.fresh(row).index_rev for row in documents] == [1, 1, 0]


def test_batch_delete_counts(world: Any) -> None:
    ids = [str(world.make_document(world.base, f"{n}").uid) for n in range(200)]
    answer = world.member.post("knowledge/batch-delete", {"kb_id": str(world.base.uid), "ids": ids}).json()
    assert answer["data"]["deleted_count"] == 200
    assert listed(world.member, world.base) == []
    with unscoped("test look"):
        row = Activity.objects.get(action="knowledge.batch_deleted")
    assert (row.details["count"], len(row.details["titles"])) == (200, 50)


def test_reparse(world: Any, heard: Any) -> None:
    events = heard(DocumentStored)
    document = world.make_document(
        world.base, storage_path="k", description="old", processed_at=timezone.now(), metadata={"process_overrides": {"ocr": True}}
    )
    answer = world.member.post(f"knowledge/{document.uid}/reparse", {}).json()["data"]
    assert (answer["parse_status"], answer["enable_status"], answer["description"], answer["processed_at"]) == (
        "pending",
        "disabled",
        "",
        None,
    )
    assert events[-1].trigger == "reparse" and events[-1].options == {"ocr": True}
    world.member.post(f"knowledge/{document.uid}/reparse", {})
    assert len(events) == 1, "a double click starts nothing more"
    world.member.post(f"knowledge/{document.uid}/reparse", {"process_config": {"encoding": "gbk"}})
    assert events[-1].options == {"encoding": "gbk"}
    nothing = world.make_document(world.base, "nothing")
    refused = world.member.post(f"knowledge/{nothing.uid}/reparse", {})
    assert refused.status_code == 400 and world.fresh(nothing).parse_status == "failed"
    assert world.member.call("POST", f"knowledge/{document.uid}/reparse", "{").status_code == 400
    batch = world.member.post("knowledge/batch-reparse", {"kb_id": str(world.base.uid), "ids": [str(document.uid)]}).json()
    assert batch["data"]["reparse_count"] == 1


@pytest.mark.parametrize("status", ["pending", "processing", "finalizing", "draft"])
def test_cancel_stops_what_is_going_on(world: Any, heard: Any, status: str) -> None:
    events = heard(DocumentParseCancelled)
    document = world.make_document(world.base, parse_status=status, chunks=2, pending_subtasks_count=3)
    answer = world.member.post(f"knowledge/{document.uid}/cancel-parse")
    data = answer.json()["data"]
    assert (answer.status_code, data["parse_status"], data["pending_subtasks_count"]) == (200, "cancelled", 0)
    assert data["error_message"]
    assert world.member.post(f"knowledge/{document.uid}/cancel-parse").status_code == 200
    assert len(events) == 1
    with unscoped("test look"):
        assert Chunk.objects.filter(document=document).count() == 2


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_cancel_of_what_is_over_is_refused(world: Any, status: str) -> None:
    document = world.make_document(world.base, parse_status=status)
    assert world.member.post(f"knowledge/{document.uid}/cancel-parse").status_code == 400
    assert world.fresh(document).parse_status == status


def test_folders(world: Any, heard: Any) -> None:
    refiled = heard(DocumentsRefiled)
    base = world.base
    rows = {path: world.make_document(base, path or "root", folder_path=path) for path in ("", "a", "a/x", "a/x/y", "ab", "B/z")}
    tree = world.member.get(f"knowledge-bases/{base.uid}/knowledge/folders").json()["data"]
    assert (tree["root_document_count"], tree["total_document_count"]) == (1, 6)
    assert tree["folders"] == [
        {
            "path": "a",
            "name": "a",
            "document_count": 1,
            "total_count": 3,
            "children": [
                {
                    "path": "a/x",
                    "name": "x",
                    "document_count": 1,
                    "total_count": 2,
                    "children": [{"path": "a/x/y", "name": "y", "document_count": 1, "total_count": 1}],
                }
            ],
        },
        {"path": "ab", "name": "ab", "document_count": 1, "total_count": 1},
        {
            "path": "B",
            "name": "B",
            "document_count": 0,
            "total_count": 1,
            "children": [{"path": "B/z", "name": "z", "document_count": 1, "total_count": 1}],
        },
    ]
    url = f"knowledge-bases/{base.uid}/knowledge/folders"
    assert world.member.put(url, {"from": "a", "to": "B\\z/../new. "}).json()["data"] == {"moved_count": 3, "folder_path": "B/z/new"}
    assert [world.fresh(rows[path]).folder_path for path in ("a", "a/x", "a/x/y", "ab")] == ["B/z/new", "B/z/new/x", "B/z/new/x/y", "ab"]
    assert set(refiled[-1].document_ids) == {rows[path].pk for path in ("a", "a/x", "a/x/y")}
    assert world.fresh(rows["a"]).index_rev == 1
    assert world.member.put(url, {"from": "B/z/new", "to": "ab"}).json()["data"]["moved_count"] == 3, "an existing target takes it in"
    assert world.member.put(url, {"from": "ab", "to": "ab"}).json()["data"]["moved_count"] == 0
    assert world.member.put(url, {"from": "missing", "to": "ab"}).json()["data"]["moved_count"] == 0
    for body in (
        {"from": "ab", "to": "ab/in"},
        {"from": "", "to": "x"},
        {"from": "ab", "to": "/"},
        {"from": "ab"},
        {"from": "a\x01b", "to": "c"},
    ):
        assert world.member.put(url, body).status_code == 400
    deep = "/".join("d" * 16)
    assert world.member.put(url, {"from": "ab", "to": deep}).status_code == 400, "subfolders would be cut"
    filed = world.member.post(
        "knowledge/folder", {"kb_id": str(base.uid), "knowledge_ids": [str(rows[""].uid)], "folder_path": "/".join("d" * 17)}
    )
    assert filed.json()["data"] == {"moved_count": 1, "folder_path": deep}
    back = world.member.post("knowledge/folder", {"kb_id": str(base.uid), "knowledge_ids": [str(rows[""].uid)]})
    assert back.json()["data"] == {"moved_count": 1, "folder_path": ""}
    empty = world.make_base(world.space, "Empty")
    assert world.member.get(f"knowledge-bases/{empty.uid}/knowledge/folders").json()["data"]["folders"] == []


def test_tags_replace(world: Any, heard: Any) -> None:
    refiled = heard(DocumentsRefiled)
    a, b = world.make_document(world.base, "a"), world.make_document(world.base, "b")
    red, blue = tag(world.base, "red"), tag(world.base, "blue")
    second = world.make_base(world.space, "Second")
    other = tag(second, "other")
    give(a, red)
    body = {"updates": {str(a.uid): [str(blue.uid)], str(b.uid): [str(red.uid), str(blue.uid)]}, "kb_id": str(world.base.uid)}
    answer = world.member.put("knowledge/tags", body)
    assert answer.json() == {"success": True}
    assert [t["name"] for t in world.member.get(f"knowledge/{a.uid}").json()["data"]["tags"]] == ["blue"]
    assert [t["name"] for t in world.member.get(f"knowledge/{b.uid}").json()["data"]["tags"]] == ["red", "blue"]
    assert refiled[-1].document_ids == (a.pk, b.pk)
    assert world.member.put("knowledge/tags", {"updates": {str(a.uid): []}}).json() == {"success": True}
    assert world.member.get(f"knowledge/{a.uid}").json()["data"]["tags"] is None
    assert world.member.put("knowledge/tags", {"updates": {str(a.uid): [str(other.uid)]}}).status_code == 400
    elsewhere = world.make_document(second, "elsewhere")
    assert world.member.put("knowledge/tags", {"updates": {str(elsewhere.uid): []}, "kb_id": str(world.base.uid)}).status_code == 403
    assert world.member.put("knowledge/tags", {"updates": {}}).status_code == 400
    assert world.member.put("knowledge/tags", {"updates": {str(a.uid): "red"}}).status_code == 400


def test_name_search(world: Any) -> None:
    world.make_document(world.base, "Pump manual.pdf", file_type="pdf")
    second = world.make_base(world.space, "Second")
    world.make_document(second, "pump notes.txt")
    world.make_document(world.other_base, "pump secret.txt")
    found = world.member.get("knowledge/search?keyword=PUMP").json()
    assert [row["title"] for row in found["data"]] == ["pump notes.txt", "Pump manual.pdf"]
    assert (found["total"], found["has_more"], found["data"][0]["knowledge_base_name"]) == (2, False, "Second")
    page = world.member.get("knowledge/search?query=pump&limit=1&offset=0").json()
    assert (len(page["data"]), page["has_more"], page["total"]) == (1, True, 2)
    assert [row["title"] for row in world.member.get("knowledge/search?keyword=pump&file_types=.PDF").json()["data"]] == ["Pump manual.pdf"]
    assert len(world.member.get("knowledge/search?recent=true").json()["data"]) == 2
    for query in ("", "keyword=", "keyword=a&limit=101", "keyword=a&offset=-1"):
        assert world.member.get(f"knowledge/search?{query}").status_code == 400


def test_foreign_documents_are_missing_byte_for_byte(world: Any) -> None:
    foreign = world.make_document(world.other_base, "x", storage_path="k")
    for method, path, body in (
        ("GET", "knowledge/{}", None),
        ("PUT", "knowledge/{}", {"title": "t"}),
        ("DELETE", "knowledge/{}", None),
        ("GET", "knowledge/{}/download", None),
        ("GET", "knowledge/{}/preview", None),
        ("POST", "knowledge/{}/reparse", {}),
        ("POST", "knowledge/{}/cancel-parse", {}),
        ("PUT", "knowledge/manual/{}", {"content": "x"}),
        ("GET", "chunks/{}", None),
    ):
        answers = {
            (lambda a: (a.status_code, a.content))(world.admin.call(method, path.format(uid), body))
            for uid in (foreign.uid, uuid.uuid4(), "junk")
        }
        assert len(answers) == 1 and answers.pop()[0] == 404, path
    assert world.fresh(foreign).parse_status == "completed"


@pytest.mark.parametrize("prefix", ["/api/v1/knowledge", "/v1/tenants/{space}/knowledge/documents"])
def test_reparse_hands_a_password_on_and_keeps_it_out_of_everything_that_is_stored(world: Any, heard: Any, prefix: str) -> None:
    document = world.make_document(world.base, "a.pdf", file_type="pdf", storage_path="k", parse_status="failed", reason="locked")
    events = heard(DocumentStored)
    url = f"{prefix.format(space=world.space.pk)}/{document.uid}/reparse"
    answer = world.member.post(url, {"password": " p4ss "})
    assert answer.status_code == 200 and "p4ss" not in answer.content.decode()
    assert (events[-1].password, events[-1].options) == (" p4ss ", {}) and "p4ss" not in repr(events[-1])
    with unscoped("look"):
        row = Document.objects.get(pk=document.pk)
        assert "p4ss" not in str(row.metadata)
        assert not [a for a in Activity.objects.all() if "p4ss" in str(vars(a))]
    text = world.make_document(world.base, "b.txt", file_type="txt", storage_path="k")
    refused = world.member.post(f"{prefix.format(space=world.space.pk)}/{text.uid}/reparse", {"password": "p4ss"})
    assert refused.status_code == 400 and refused.json()["error"]["details"]["field"] == "password"
    too_long = world.member.post(url, {"password": "p" * 1025})
    assert too_long.status_code == 400 and "ppp" not in too_long.content.decode()


def test_a_locked_pdf_and_a_locked_office_file_say_different_next_steps(world: Any) -> None:
    said = {}
    for name in ("a.pdf", "b.docx"):
        document = world.make_document(world.base, name, file_type=name[2:], parse_status="failed", reason="locked")
        said[name] = world.member.get(f"knowledge/{document.uid}", headers={"Accept-Language": "en"}).json()["data"]["error_message"]
    assert said == {
        "a.pdf": "The file is protected by a password: Enter the password: it is used once and not kept. Or upload a copy without it.",
        "b.docx": "The file is protected by a password: Save a copy without the password and upload that.",
    }
