"""What each act leaves in a base's activity: who, what, to which thing, with what outcome, before and after; and how the log is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.common.activity import HIDDEN, LONGEST, audit
from apps.common.models import Activity
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Chunk, CopyRun, Document, DocumentTag, Tag

#: Groups of the contract's table whose things are not in this part: connectors, sharing between organizations, wiki, question pairs.
ELSEWHERE = ("datasource.", "kb.share_", "wiki.", "faq.")
CONTRACT = """
kb.created kb.updated kb.deleted kb.duplicated kb.clone_started kb.clone_completed kb.clone_failed
knowledge.created knowledge.updated knowledge.deleted knowledge.batch_deleted knowledge.reparse_started knowledge.parse_canceled
knowledge.move_started knowledge.move_completed knowledge.move_failed
tag.created tag.updated tag.deleted
""".split()

Act = Callable[[Any, Any], dict[str, Any]]
ACTS: dict[str, Act] = {}


def act(function: Act) -> Act:
    """Does one act and says what the newest row of the base must hold; `base` when it is another base's row, `by` who did it."""
    ACTS[function.__name__] = function
    return function


def sent(answer: Any, status: int = 200) -> Any:
    assert answer.status_code == status, answer.content
    return answer.json().get("data")


def tag(base: Any, name: str = "red") -> Tag:
    with unscoped("test data"):
        return Tag.objects.create(space_id=base.space_id, kb=base, name=name)


def carry(document: Document, tag: Tag) -> None:
    with unscoped("test data"):
        DocumentTag.objects.create(space_id=document.space_id, document=document, tag=tag)


def passage(document: Document) -> Chunk:
    with unscoped("test look"):
        return Chunk.objects.get(document=document, chunk_index=0)


def changed(**fields: tuple[Any, Any]) -> dict[str, Any]:
    return {name: {"before": before, "after": after, "redacted": False} for name, (before, after) in fields.items()}


def _of_base(base: Any, action: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "target_type": "knowledge_base", "target_id": str(base.uid), "outcome": "success", **more}


def _of_document(document: Any, action: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "target_type": "knowledge", "target_id": str(document.uid), "outcome": "success", **more}


# -- bases ----------------------------------------------------------------------------------------------------------------------------


@act
def base_created(world: Any, _jobs: Any) -> dict[str, Any]:
    made = sent(world.admin.post("knowledge-bases", {"name": "New"}), 201)
    row = {"action": "kb.created", "target_type": "knowledge_base", "target_id": made["id"], "outcome": "success"}
    return {**row, "base": made["id"], "details": {"title": "New", "type": "document"}, "path": "/api/v1/knowledge-bases"}


@act
def base_updated(world: Any, _jobs: Any) -> dict[str, Any]:
    sent(world.admin.put(f"knowledge-bases/{world.base.uid}", {"name": "Renamed", "description": "What it is for"}))
    changes = changed(name=("Handbook", "Renamed"), description=("", "What it is for"))
    return _of_base(world.base, "kb.updated", changes=changes, details={"changed_fields": ["name", "description"]}, method="PUT")


@act
def base_deleted(world: Any, _jobs: Any) -> dict[str, Any]:
    world.make_document(world.base)
    sent(world.admin.delete(f"knowledge-bases/{world.base.uid}"))
    return _of_base(world.base, "kb.deleted", details={"title": "Handbook", "count": 1}, method="DELETE")


@act
def base_duplicated(world: Any, _jobs: Any) -> dict[str, Any]:
    made = sent(world.admin.post(f"knowledge-bases/{world.base.uid}/duplicate"), 201)["target_id"]
    ids = {"source_kb_id": str(world.base.uid), "target_kb_id": made}
    return _of_base(world.base, "kb.duplicated", details=ids)


def _copy(world: Any) -> Any:
    return sent(world.admin.post("knowledge-bases/copy", {"source_id": str(world.base.uid)}))


@act
def copy_started(world: Any, _jobs: Any) -> dict[str, Any]:
    task = _copy(world)["task_id"]
    return _of_base(world.base, "kb.clone_started", outcome="accepted", details={"task_id": task, "mode": "new", "count": 0})


@act
def copy_completed(world: Any, jobs: Any) -> dict[str, Any]:
    task = _copy(world)["task_id"]
    assert jobs("copy")
    details = {"task_id": task, "count": 0, "failed": 0}
    return _of_base(world.base, "kb.clone_completed", details=details, by="", source="system", path="", method="")


@act
def copy_failed(world: Any, _jobs: Any) -> dict[str, Any]:
    task = _copy(world)["task_id"]
    sent(world.admin.post(f"knowledge-bases/copy/progress/{task}/cancel"))
    with unscoped("test look"):
        target = CopyRun.objects.get(task_id=task).target_uid
    details = {"task_id": task, "target_kb_id": str(target), "trigger": "user"}
    return _of_base(world.base, "kb.clone_failed", outcome="canceled", details=details)


# -- documents ------------------------------------------------------------------------------------------------------------------------


@act
def document_uploaded(world: Any, _jobs: Any) -> dict[str, Any]:
    made = sent(world.member.upload(world.base, b"text", "a.txt"))
    details = {"title": "a.txt", "type": "file", "file_type": "txt", "processing_status": "pending"}
    row = {"action": "knowledge.created", "target_type": "knowledge", "target_id": made["id"], "outcome": "accepted"}
    return {**row, "details": details, "by": "member"}


@act
def document_written_as_draft(world: Any, _jobs: Any) -> dict[str, Any]:
    made = sent(world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/manual", {"title": "Note", "content": "text"}))
    row = {"action": "knowledge.created", "target_type": "knowledge", "target_id": made["id"], "outcome": "success"}
    return {**row, "details": {"title": "Note", "type": "manual", "processing_status": "draft"}, "by": "member"}


@act
def document_rewritten(world: Any, _jobs: Any) -> dict[str, Any]:
    made = sent(world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/manual", {"title": "Note", "content": "old"}))
    body = {"title": "Note 2", "content": "new", "status": "publish"}
    sent(world.member.put(f"knowledge/manual/{made['id']}", body))
    changes = changed(title=("Note", "Note 2"), content=("old", "new"), status=("draft", "publish"))
    row = {"action": "knowledge.updated", "target_type": "knowledge", "target_id": made["id"], "outcome": "success"}
    return {**row, "changes": changes, "details": {"version": 2}, "by": "member", "method": "PUT"}


@act
def document_updated(world: Any, _jobs: Any) -> dict[str, Any]:
    document = world.make_document(world.base, "a.txt")
    body = {"title": "b", "description": "what it says", "custom_metadata": {"team": "ops"}}
    sent(world.member.put(f"knowledge/{document.uid}", body))
    changes = changed(title=("a.txt", "b"), description=("", "what it says"), custom_metadata=({}, {"team": "ops"}))
    return _of_document(document, "knowledge.updated", changes=changes, by="member", method="PUT")


@act
def document_deleted(world: Any, _jobs: Any) -> dict[str, Any]:
    document = world.make_document(world.base, "a.txt")
    sent(world.member.delete(f"knowledge/{document.uid}"))
    return _of_document(document, "knowledge.deleted", details={"title": "a.txt"}, by="member", method="DELETE")


@act
def documents_deleted(world: Any, _jobs: Any) -> dict[str, Any]:
    ids = [str(world.make_document(world.base, name).uid) for name in ("a", "b")]
    sent(world.member.post("knowledge/batch-delete", {"kb_id": str(world.base.uid), "ids": ids}))
    details = {"titles": ["a", "b"], "count": 2, "document_ids": ids}
    return _of_base(world.base, "knowledge.batch_deleted", details=details, by="member", path="/api/v1/knowledge/batch-delete")


@act
def document_parsed_again(world: Any, _jobs: Any) -> dict[str, Any]:
    document = world.make_document(world.base, "a.txt", storage_path="k")
    sent(world.member.post(f"knowledge/{document.uid}/reparse"))
    return _of_document(document, "knowledge.reparse_started", outcome="accepted", details={"title": "a.txt"}, by="member")


@act
def documents_parsed_again(world: Any, _jobs: Any) -> dict[str, Any]:
    ids = [str(world.make_document(world.base, name, storage_path="k").uid) for name in ("a", "b")]
    sent(world.member.post("knowledge/batch-reparse", {"kb_id": str(world.base.uid), "ids": ids}))
    details = {"titles": ["a", "b"], "count": 2}
    return _of_base(world.base, "knowledge.reparse_started", outcome="accepted", details=details, by="member")


@act
def parsing_stopped(world: Any, _jobs: Any) -> dict[str, Any]:
    document = world.make_document(world.base, "a.txt", parse_status="processing")
    sent(world.member.post(f"knowledge/{document.uid}/cancel-parse"))
    changes = changed(parse_status=("processing", "cancelled"))
    return _of_document(document, "knowledge.parse_canceled", outcome="canceled", changes=changes, by="member")


@act
def filed_in_a_folder(world: Any, _jobs: Any) -> dict[str, Any]:
    ids = [str(world.make_document(world.base, name, folder_path=folder).uid) for name, folder in (("a", "x"), ("b", ""))]
    sent(world.member.post("knowledge/folder", {"kb_id": str(world.base.uid), "knowledge_ids": ids, "folder_path": "y/z"}))
    changes = changed(folder_path=(["", "x"], "y/z"))
    return _of_base(world.base, "knowledge.updated", changes=changes, details={"titles": ["a", "b"], "count": 2}, by="member")


@act
def folder_renamed(world: Any, _jobs: Any) -> dict[str, Any]:
    world.make_document(world.base, "a", folder_path="x/y")
    sent(world.member.put(f"knowledge-bases/{world.base.uid}/knowledge/folders", {"from": "x", "to": "z"}))
    changes = changed(folder_path=("x", "z"))
    return _of_base(world.base, "knowledge.updated", changes=changes, details={"count": 1}, by="member", method="PUT")


@act
def tags_of_one_document(world: Any, _jobs: Any) -> dict[str, Any]:
    document, red, blue = world.make_document(world.base, "a"), tag(world.base), tag(world.base, "blue")
    carry(document, red)
    sent(world.member.put("knowledge/tags", {"updates": {str(document.uid): [str(blue.uid)]}}))
    changes = changed(tags=(["red"], ["blue"]))
    return _of_base(world.base, "knowledge.updated", changes=changes, details={"titles": ["a"]}, by="member", method="PUT")


@act
def tags_of_several_documents(world: Any, _jobs: Any) -> dict[str, Any]:
    one, two, red = world.make_document(world.base, "a"), world.make_document(world.base, "b"), tag(world.base)
    carry(one, red)
    sent(world.member.put("knowledge/tags", {"updates": {str(each.uid): [str(red.uid)] for each in (one, two)}}))
    changes = changed(tags=({"a": ["red"], "b": []}, ["red"]))
    return _of_base(world.base, "knowledge.updated", changes=changes, details={"count": 2}, by="member", method="PUT")


def _move(world: Any) -> Any:
    document, second = world.make_document(world.base, "a"), world.make_base(world.space, "Second")
    ids = {"source_kb_id": str(world.base.uid), "target_kb_id": str(second.uid)}
    task = sent(world.admin.post("knowledge/move", {**ids, "knowledge_ids": [str(document.uid)], "mode": "reuse_vectors"}))
    return document, {**ids, "task_id": task["task_id"], "mode": "reuse_vectors"}


@act
def move_started(world: Any, _jobs: Any) -> dict[str, Any]:
    _document, details = _move(world)
    return _of_base(world.base, "knowledge.move_started", outcome="accepted", details={**details, "titles": ["a"], "count": 1})


@act
def move_completed(world: Any, jobs: Any) -> dict[str, Any]:
    _document, details = _move(world)
    assert jobs("move")
    background = {"by": "", "source": "system", "path": "", "method": ""}
    return _of_base(world.base, "knowledge.move_completed", details={**details, "count": 1, "failed": 0}, **background)


@act
def move_failed(world: Any, jobs: Any) -> dict[str, Any]:
    document, details = _move(world)
    with unscoped("test data"):
        Document.objects.filter(pk=document.pk).update(deleted_at=timezone.now())
    assert jobs("move")
    background = {"by": "", "source": "system", "path": "", "method": ""}
    return _of_base(world.base, "knowledge.move_failed", outcome="failed", details={**details, "count": 0, "failed": 1}, **background)


# -- passages -------------------------------------------------------------------------------------------------------------------------


def _of_passage(chunk: Chunk, **more: Any) -> dict[str, Any]:
    row = {"action": "knowledge.updated", "target_type": "chunk", "target_id": str(chunk.uid), "outcome": "success"}
    return {**row, "by": "member", **more}


@act
def passage_edited(world: Any, _jobs: Any) -> dict[str, Any]:
    document = world.make_document(world.base, "a", chunks=1)
    chunk = passage(document)
    sent(world.member.put(f"chunks/{document.uid}/{chunk.uid}", {"content": "another text", "is_enabled": False}))
    changes = changed(content=("passage 0 of a", "another text"), is_enabled=(True, False))
    return _of_passage(chunk, changes=changes, details={"title": "a", "mode": "edited", "attempt": 1}, method="PUT")


@act
def passage_reverted(world: Any, _jobs: Any) -> dict[str, Any]:
    document = world.make_document(world.base, "a", chunks=1)
    chunk = passage(document)
    sent(world.member.put(f"chunks/{document.uid}/{chunk.uid}", {"content": "another text"}))
    sent(world.member.post(f"chunks/{document.uid}/{chunk.uid}/revert", {"revision": 0}))
    changes = changed(content=("another text", "passage 0 of a"))
    return _of_passage(chunk, changes=changes, details={"mode": "reverted", "attempt": 2})


@act
def passage_deleted(world: Any, _jobs: Any) -> dict[str, Any]:
    document = world.make_document(world.base, "a", chunks=2)
    sent(world.member.delete(f"chunks/{document.uid}/{passage(document).uid}"))
    return _of_document(document, "knowledge.updated", changes=changed(chunks=(2, 1)), details={"count": 1}, by="member", method="DELETE")


@act
def question_added(world: Any, _jobs: Any) -> dict[str, Any]:
    document = world.make_document(world.base, "a", chunks=1)
    chunk = passage(document)
    sent(world.member.put(f"chunks/by-id/{chunk.uid}/questions", {"question": "What is it?"}))
    return _of_passage(chunk, changes=changed(questions=([], ["What is it?"])), details={"mode": "question_added"}, method="PUT")


# -- tags -----------------------------------------------------------------------------------------------------------------------------


def _of_tag(uid: Any, action: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "target_type": "tag", "target_id": str(uid), "outcome": "success", "by": "member", **more}


@act
def tag_created(world: Any, _jobs: Any) -> dict[str, Any]:
    made = sent(world.member.post(f"knowledge-bases/{world.base.uid}/tags", {"name": "red"}))
    return _of_tag(made["id"], "tag.created", details={"title": "red"})


@act
def tag_updated(world: Any, _jobs: Any) -> dict[str, Any]:
    made = tag(world.base)
    sent(world.member.put(f"knowledge-bases/{world.base.uid}/tags/{made.uid}", {"name": "rust", "sort_order": 3}))
    return _of_tag(made.uid, "tag.updated", changes=changed(name=("red", "rust"), sort_order=(0, 3)), method="PUT")


@act
def tag_deleted(world: Any, _jobs: Any) -> dict[str, Any]:
    made = tag(world.base)
    sent(world.member.delete(f"knowledge-bases/{world.base.uid}/tags/{made.uid}", {}))
    return _of_tag(made.uid, "tag.deleted", details={"title": "red"}, method="DELETE")


# -- the rows -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(ACTS))
def test_each_act_writes_its_row(world: Any, run_jobs: Any, name: str) -> None:
    wanted = ACTS[name](world, run_jobs)
    scope = wanted.pop("base", str(world.base.uid))
    if wanted["action"] == "kb.deleted":  # its log goes with it, and comes back with it
        sent(world.admin.post(f"trash/{scope}/restore"))
    row = sent(world.admin.get(f"knowledge-bases/{scope}/activity?action={wanted['action']}&limit=1"))[0]
    by, source = wanted.pop("by", "admin"), wanted.pop("source", "user")
    person = getattr(world, by) if by else None
    changes, details = wanted.pop("changes", None), wanted.pop("details", {})
    path, method = wanted.pop("path", None), wanted.pop("method", "POST")
    assert {key: row[key] for key in wanted} == wanted
    assert (row["tenant_id"], row["scope_type"], row["scope_id"]) == (world.space.pk, "knowledge_base", scope)
    assert (row["actor_user_id"], row["sourceType"]) == (str(person.user.pk) if person else "", source)
    assert row["actorMember"] == ({"id": str(person.user.pk), "name": person.user.username} if person else None)
    assert row["actor_role"] == ({"admin": "admin", "member": "contributor"}[by] if by else "admin")
    assert row["changes"] == changes and row["details"].get("changes") == changes
    assert {key: row["details"].get(key) for key in details} == details
    assert row["request_method"] == method
    assert row["request_path"] == path if path is not None else row["request_path"].startswith("/api/v1/")


def test_the_contracts_acts_are_all_there(world: Any, run_jobs: Any) -> None:
    """What is named here and in the contract is what `ACTS` does; the groups of ELSEWHERE come with their own parts."""
    for name, do in ACTS.items():
        with unscoped("test data"):
            Document.objects.all().delete()
            Tag.objects.all().delete()
        if name != "base_deleted":
            do(world, run_jobs)
    ACTS["base_deleted"](world, run_jobs)
    with unscoped("test look"):
        written = set(Activity.objects.values_list("action", flat=True))
    assert set(CONTRACT) - written == set()
    assert not [name for name in written if name.startswith(ELSEWHERE)]


def test_a_key_and_the_portal_itself_are_sources(world: Any) -> None:
    key = world.key(world.space)
    assert key.post(f"/api/v1/knowledge-bases/{world.base.uid}/tags", {"name": "k"}, content_type="application/json").status_code == 200
    row = sent(world.admin.get(f"knowledge-bases/{world.base.uid}/activity"))[0]
    assert (row["sourceType"], row["actor_user_id"], row["actorMember"]["name"]) == ("api_key", "", "k")
    assert row["actor"].startswith("key:")


def test_an_act_that_changes_nothing_or_is_refused_writes_nothing(world: Any) -> None:
    document = world.make_document(world.base, "a", chunks=1)
    chunk = passage(document)
    with unscoped("test look"):
        before = Activity.objects.count()
    world.admin.put(f"knowledge-bases/{world.base.uid}", {"name": "Handbook"})
    world.member.put(f"knowledge/{document.uid}", {"title": "a"})
    world.member.put(f"chunks/{document.uid}/{chunk.uid}", {"content": chunk.content})
    world.member.put(f"chunks/{document.uid}/{chunk.uid}", {"content": "x", "expected_revision": 7})
    world.member.put(f"knowledge-bases/{world.base.uid}/knowledge/folders", {"from": "nowhere", "to": "b"})
    world.member.delete(f"knowledge-bases/{world.base.uid}")
    world.outsider.delete(f"knowledge/{document.uid}")
    with unscoped("test look"):
        assert Activity.objects.count() == before


def test_secrets_are_hidden_before_they_are_stored(world: Any) -> None:
    with space_scope(world.space.pk, "test"):
        audit(
            world.admin.actor,
            "kb.updated",
            world.base,
            client_secret="sk-1",
            source={"access_key": "sk-2", "bucket": "b"},
            changes={
                "api_key": {"before": "", "after": "sk-3"},
                "options": {"before": {"vlm_config": {"api_key": "sk-4"}}, "after": {"vlm_config": {"api_key": "", "model_id": "m"}}},
                "name": {"before": "a", "after": "x" * (LONGEST + 1)},
            },
        )
        stored = Activity.objects.latest("pk").details
    assert "sk-" not in str(stored)
    assert stored["changes"]["api_key"] == {"before": "", "after": HIDDEN, "redacted": True}
    assert stored["changes"]["name"] == {"before": "a", "after": "x" * LONGEST + "…"}
    row = sent(world.admin.get(f"knowledge-bases/{world.base.uid}/activity"))[0]
    assert row["details"]["client_secret"] == HIDDEN and row["details"]["source"] == {"access_key": HIDDEN, "bucket": "b"}
    assert row["changes"]["options"] == {
        "before": {"vlm_config": {"api_key": HIDDEN}},
        "after": {"vlm_config": {"api_key": "", "model_id": "m"}},
        "redacted": True,
    }
    assert row["changes"]["api_key"] == {"before": "", "after": HIDDEN, "redacted": True}


# -- reading the log ------------------------------------------------------------------------------------------------------------------


def _log(world: Any, days_ago: int, action: str = "kb.updated", **values: Any) -> Activity:
    with unscoped("test data"):
        row = Activity.objects.create(space=world.space, actor="system", scope_id=world.base.uid, action=action, **values)
        Activity.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days_ago))
    return row


def test_time_filters_combine_with_the_others_and_with_the_cursor(world: Any) -> None:
    old, middle, fresh = (_log(world, days) for days in (5, 3, 1))
    _log(world, 3, "tag.created")
    today = timezone.localdate()
    day = {ago: str(today - timedelta(days=ago)) for ago in (2, 3, 4)}
    moment = (timezone.now() - timedelta(days=2)).isoformat().replace("+", "%2B")
    found = {
        f"from={day[4]}&action=kb.updated": [fresh.pk, middle.pk],
        f"to={day[2]}&action=kb.updated": [middle.pk, old.pk],
        f"from={day[3]}&to={day[3]}&action=kb.updated": [middle.pk],
        f"from={moment}": [fresh.pk],
        f"to={moment}&action=kb.updated&after_id={middle.pk}": [old.pk],
        "from=&to=&action=kb.updated&outcome=success&limit=2": [fresh.pk, middle.pk],
        "from=2999-01-01": [],
    }
    url = f"knowledge-bases/{world.base.uid}/activity"
    assert {query: [row["id"] for row in sent(world.admin.get(f"{url}?{query}"))] for query in found} == found


@pytest.mark.parametrize(("query", "field"), [("from=yesterday", "from"), ("to=2026-13-01", "to")])
def test_a_time_that_is_none_is_named(world: Any, query: str, field: str) -> None:
    answer = world.admin.get(f"knowledge-bases/{world.base.uid}/activity?{query}")
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, field)


def test_the_cursor_reaches_the_end_and_misses_nothing_that_came_meanwhile(world: Any) -> None:
    rows = [_log(world, 0) for _ in range(7)]
    url, after, seen, pages = f"knowledge-bases/{world.base.uid}/activity?limit=3", 0, [], 0
    while True:
        page = world.admin.get(f"{url}&after_id={after}").json()
        if not page["data"]:
            break
        seen += [row["id"] for row in page["data"]]
        after, pages = page["next_cursor"], pages + 1
        _log(world, 0)  # newer than the cursor: it must not shift the pages
    assert (page["next_cursor"], pages, seen) == (0, 3, [row.pk for row in reversed(rows)])


def test_only_admins_read_it(world: Any) -> None:
    url = f"knowledge-bases/{world.base.uid}/activity"
    proxied = f"/v1/tenants/{world.space.pk}/knowledge/bases/{world.base.uid}/activity"
    assert [world.admin.get(path).status_code for path in (url, proxied)] == [200, 200]
    assert [world.member.get(path).status_code for path in (url, proxied)] == [403, 403]
    assert world.member.get(proxied).json()["code"] == "KNOWLEDGE_MANAGE_REQUIRED"
    assert world.outsider.get(url).status_code == 404
    assert world.key(world.space).get(f"/api/v1/{url}").status_code == 403
