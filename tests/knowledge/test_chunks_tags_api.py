"""Passages with their history, and tags."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from django.db import connection

from apps.common.scope import space_scope, unscoped
from apps.knowledge.events import ChunksChanged
from apps.knowledge.models import Chunk, ChunkRevision, Document, DocumentTag, Tag
from apps.knowledge.services import document_indexed

CHUNK_KEYS = {
    "id", "seq_id", "tenant_id", "knowledge_id", "knowledge_base_id", "tag_id", "content", "content_revision", "index_status",
    "last_editor_id", "chunk_index", "is_enabled", "flags", "status", "start_at", "end_at", "pre_chunk_id", "next_chunk_id",
    "parent_chunk_id", "chunk_type", "relation_chunks", "indirect_relation_chunks", "metadata", "content_hash", "image_info",
    "source_locators", "heading_path", "created_at", "updated_at", "deleted_at",
}  # fmt: skip


def chunks_of(document: Document) -> list[Chunk]:
    with unscoped("test look"):
        return list(Chunk.objects.filter(document=document).order_by("chunk_index"))


def test_list_and_by_id(world: Any) -> None:
    document = world.make_document(world.base, "a", chunks=12)
    rows = chunks_of(document)
    with unscoped("test data"):
        Chunk.objects.filter(pk=rows[11].pk).update(chunk_type="image_ocr", is_enabled=False)
    page = world.member.get(f"chunks/{document.uid}").json()
    assert (page["total"], page["page"], page["page_size"], len(page["data"])) == (11, 1, 10, 10)
    first = page["data"][0]
    assert set(first) == CHUNK_KEYS
    assert (first["pre_chunk_id"], first["next_chunk_id"]) == ("", str(rows[1].uid))
    assert (first["seq_id"], first["tenant_id"], first["index_status"], first["content"]) == (
        rows[0].pk,
        world.space.pk,
        "ready",
        "passage 0 of a",
    )
    both = world.member.get(f"chunks/{document.uid}?page_size=900&chunk_type=text&chunk_type=image_ocr").json()
    assert (both["total"], both["page_size"], both["data"][-1]["is_enabled"]) == (12, 100, False)
    assert world.member.get(f"chunks/{document.uid}?page_size=1001").status_code == 400
    one = world.member.get(f"chunks/by-id/{rows[3].uid}").json()["data"]
    assert one == {**page["data"][3]}
    assert world.member.get(f"chunks/by-id/{uuid.uuid4()}").status_code == 404


def test_edit_history_and_revert(world: Any, heard: Any) -> None:
    document = world.make_document(world.base, "a", chunks=1)
    (chunk,) = chunks_of(document)
    url = f"chunks/{document.uid}/{chunk.uid}"
    assert world.member.get(f"{url}/revisions").json()["data"] == []
    events = heard(ChunksChanged)
    edited = world.member.put(url, {"content": "  new text ", "expected_revision": 0}).json()
    assert (edited["data"]["content"], edited["data"]["content_revision"], edited["data"]["last_editor_id"]) == (
        "new text",
        1,
        str(world.member.user.pk),
    )
    assert set(edited) == {"success", "data", "summary_status", "description"}
    assert world.fresh(document).index_rev == 1 and events[-1].chunk_ids == (chunk.pk,)
    same = world.member.put(url, {"content": "new text", "is_enabled": True}).json()["data"]
    assert same["content_revision"] == 1 and len(events) == 1, "no change, no revision"
    off = world.admin.put(url, {"is_enabled": False}).json()["data"]
    assert (off["content_revision"], off["is_enabled"]) == (2, False)
    revisions = world.member.get(f"{url}/revisions").json()["data"]
    assert [(r["revision"], r["content"], r["is_enabled"], r["editor_id"]) for r in revisions] == [
        (1, "new text", True, str(world.member.user.pk)),
        (0, "passage 0 of a", True, ""),
    ]
    conflict = world.member.put(url, {"content": "late", "expected_revision": 1})
    assert (conflict.status_code, conflict.json()["error"]["code"], conflict.json()["error"]["details"]["current_revision"]) == (
        409,
        1005,
        2,
    )
    assert world.fresh(chunk).content == "new text"
    back = world.member.post(f"{url}/revert", {"revision": 0, "expected_revision": 2}).json()["data"]
    assert (back["content"], back["is_enabled"], back["content_revision"]) == ("passage 0 of a", True, 3)
    assert [r["revision"] for r in world.member.get(f"{url}/revisions").json()["data"]] == [2, 1, 0]
    for body, status in (({"revision": 77}, 400), ({"revision": -1}, 400), ({}, 400), ({"revision": 0, "expected_revision": 1}, 409)):
        assert world.member.post(f"{url}/revert", body).status_code == status
    other = world.make_document(world.base, "b", chunks=1)
    assert world.member.get(f"chunks/{other.uid}/{chunk.uid}/revisions").status_code == 403


@pytest.mark.parametrize(
    "body",
    [{"content": "  "}, {"content": "x" * 200_001}, {"content": "see ![new](http://x/a.png)"}, {"content": '<img src="http://x/a.png">'}],
)
def test_edits_that_are_refused(world: Any, body: dict[str, Any]) -> None:
    document = world.make_document(world.base, "a", chunks=1)
    (chunk,) = chunks_of(document)
    answer = world.member.put(f"chunks/{document.uid}/{chunk.uid}", body)
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, "content")
    assert world.fresh(chunk).content_revision == 0


def test_parent_follows_and_other_kinds_stay(world: Any) -> None:
    document = world.make_document(world.base, "a", chunks=2)
    parent, child = chunks_of(document)
    with unscoped("test data"):
        Chunk.objects.filter(pk=parent.pk).update(chunk_type="parent_text", content="before passage 1 of a after")
        Chunk.objects.filter(pk=child.pk).update(parent=parent)
    world.member.put(f"chunks/{document.uid}/{child.uid}", {"content": "changed"})
    assert world.fresh(parent).content == "before changed after"
    assert world.member.put(f"chunks/{document.uid}/{parent.uid}", {"content": "x"}).status_code == 400


def test_index_status_is_told_by_the_index(world: Any) -> None:
    document = world.make_document(world.base, "a", chunks=1)
    (chunk,) = chunks_of(document)
    with unscoped("test data"):
        Chunk.objects.filter(pk=chunk.pk).update(index_status="processing")
        Document.objects.filter(pk=document.pk).update(index_rev=5)
    with space_scope(world.space.pk):
        assert document_indexed(actor=world.admin.actor, document=document, rev=4) == 0, "an older revision says nothing about the newest"
        assert document_indexed(actor=world.admin.actor, document=document, rev=5, failed=True) == 1
    assert world.fresh(chunk).index_status == "failed"
    retried = world.member.put(f"chunks/{document.uid}/{chunk.uid}", {"content": chunk.content})
    assert retried.status_code == 200 and world.fresh(document).index_rev == 6 and world.fresh(chunk).content_revision == 0


def test_delete_passages(world: Any, heard: Any) -> None:
    events = heard(ChunksChanged)
    document = world.make_document(world.base, "a", chunks=3)
    first = chunks_of(document)[0]
    assert world.member.delete(f"chunks/{document.uid}/{first.uid}").status_code == 200
    assert (world.fresh(document).chunk_count, world.fresh(document).index_rev, events[-1].chunk_ids) == (2, 1, (first.pk,))
    assert world.member.delete(f"chunks/{document.uid}").status_code == 200
    assert chunks_of(document) == [] and world.fresh(document).chunk_count == 0
    assert world.member.delete(f"/v1/tenants/{world.space.pk}/knowledge/chunks/{document.uid}").status_code == 405


@pytest.mark.django_db(transaction=True)
def test_of_ten_edits_on_one_revision_one_wins(world: Any) -> None:
    document = world.make_document(world.base, "a", chunks=1)
    (chunk,) = chunks_of(document)
    start = threading.Barrier(10)
    statuses: list[int] = []

    def edit(number: int) -> None:
        try:
            start.wait()
            body = {"content": f"text {number}", "expected_revision": 0}
            statuses.append(world.member.put(f"chunks/{document.uid}/{chunk.uid}", body).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [409] * 9
    with unscoped("test look"):
        assert ChunkRevision.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_ten_equal_tags_one_is_made(world: Any) -> None:
    start = threading.Barrier(10)
    statuses: list[int] = []

    def make() -> None:
        try:
            start.wait()
            statuses.append(world.member.post(f"knowledge-bases/{world.base.uid}/tags", {"name": "same"}).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=make) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [409] * 9
    with unscoped("test look"):
        assert Tag.objects.count() == 1


def test_tag_crud(world: Any) -> None:
    url = f"knowledge-bases/{world.base.uid}/tags"
    made = world.member.post(url, {"name": " safety ", "color": "red"})
    tag = made.json()["data"]
    assert made.status_code == 200
    assert set(tag) == {"id", "seq_id", "tenant_id", "knowledge_base_id", "name", "color", "sort_order", "created_at", "updated_at"}
    assert (tag["name"], tag["color"], tag["sort_order"]) == ("safety", "red", 0)
    assert world.member.post(url, {"name": "未分类"}).json()["data"]["sort_order"] == -1
    for body, status, code in (
        ({"name": " "}, 400, 1000),
        ({}, 400, 1000),
        ({"name": "x" * 129}, 400, 1000),
        ({"name": "safety"}, 409, 1005),
    ):
        answer = world.member.post(url, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    document = world.make_document(world.base)
    world.member.put("knowledge/tags", {"updates": {str(document.uid): [tag["id"]]}})
    page = world.member.get(f"{url}?page_size=1").json()["data"]
    assert (page["total"], page["page"], page["page_size"], page["data"][0]["name"]) == (2, 1, 1, "未分类")
    row = world.member.get(f"{url}?keyword=safe").json()["data"]["data"][0]
    assert (row["knowledge_count"], row["chunk_count"]) == (1, 0)
    assert world.member.get(f"{url}?page=-1").status_code == 400
    assert world.member.put(f"{url}/{tag['seq_id']}", {"name": "new"}).json()["data"]["name"] == "new"
    assert world.member.put(f"{url}/{tag['id']}", {"name": "未分类"}).status_code == 409
    assert world.member.put(f"{url}/{tag['id']}", {"name": ""}).status_code == 400
    for unknown in (999_999, uuid.uuid4(), "junk", 10**30):
        assert world.member.put(f"{url}/{unknown}", {"name": "x"}).status_code == 404
    second = world.make_base(world.space, "Second")
    assert world.member.put(f"knowledge-bases/{second.uid}/tags/{tag['id']}", {"name": "x"}).status_code == 404


def test_tag_delete_rules(world: Any) -> None:
    url = f"knowledge-bases/{world.base.uid}/tags"
    used, unused = (world.member.post(url, {"name": name}).json()["data"]["id"] for name in ("used", "unused"))
    document = world.make_document(world.base)
    world.member.put("knowledge/tags", {"updates": {str(document.uid): [used]}})
    proxied = f"/v1/tenants/{world.space.pk}/knowledge/bases/{world.base.uid}/tags"
    refused = world.member.delete(f"{proxied}/{used}", {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, 1000)
    assert world.fresh(document).deleted_at is None
    assert world.member.delete(f"{proxied}/{unused}", {}).json() == {"success": True}
    assert world.member.delete(f"{url}/{used}?content_only=true").json() == {"success": True}
    assert world.member.get(f"knowledge/{document.uid}").status_code == 404
    assert [tag["name"] for tag in world.member.get(url).json()["data"]["data"]] == ["used"]
    again = world.make_document(world.base)
    world.member.put("knowledge/tags", {"updates": {str(again.uid): [used]}})
    assert world.member.delete(f"{url}/{used}?force=true", {"exclude_ids": [1]}).json() == {"success": True}
    assert world.member.get(f"knowledge/{again.uid}").status_code == 404
    assert world.member.delete(f"{url}/{used}?force=true").json() == {"success": True}
    assert world.member.get(url).json()["data"]["data"] == []
    with unscoped("test look"):
        assert DocumentTag.objects.count() == 0
