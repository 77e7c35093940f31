"""Moving documents, clearing bases, and the families of routes."""

from __future__ import annotations

from typing import Any

from django.utils import translation

from apps.common.scope import unscoped
from apps.knowledge.events import DocumentStored
from apps.knowledge.models import Chunk, Document, DocumentTag, MoveRun, Tag
from apps.knowledge.reasons import move_problems


def tag(base: Any, name: str) -> Tag:
    with unscoped("test data"):
        return Tag.objects.create(space_id=base.space_id, kb=base, name=name)


def give(document: Document, *tags: Tag) -> None:
    with unscoped("test data"):
        for one in tags:
            DocumentTag.objects.create(space_id=document.space_id, document=document, tag=one)


def test_clear_a_base(world: Any) -> None:
    for number in range(3):
        world.make_document(world.base, f"{number}")
    url = f"knowledge-bases/{world.base.uid}/knowledge"
    assert world.member.delete(url).status_code == 403
    assert world.admin.delete(url).json()["data"] == {"deleted_count": 3}
    assert world.admin.delete(url).json()["data"] == {"deleted_count": 0}
    assert world.admin.delete(f"/v1/tenants/{world.space.pk}/knowledge/bases/{world.base.uid}/documents").status_code == 405


def test_move_to_another_base(world: Any, run_jobs: Any, heard: Any) -> None:
    second = world.make_base(world.space, "Second")
    document = world.make_document(world.base, "a", chunks=2, folder_path="f")
    give(document, tag(world.base, "red"))
    clash_here = world.make_document(world.base, "clash", file_hash="1" * 32)
    world.make_document(second, "clash", file_hash="1" * 32)
    body = {
        "knowledge_ids": [str(document.uid), str(clash_here.uid)],
        "source_kb_id": str(world.base.uid),
        "target_kb_id": str(second.uid),
        "mode": "reuse_vectors",
    }
    assert world.member.post("knowledge/move", body).status_code == 403
    started = world.admin.post("knowledge/move", body).json()["data"]
    assert started["knowledge_count"] == 2 and started["task_id"].startswith(f"kg_move_{world.space.pk}_")
    progress = f"knowledge/move/progress/{started['task_id']}"
    assert world.member.get(progress).json()["data"]["status"] == "pending"
    assert world.member.delete(f"knowledge/{document.uid}").status_code == 409, "not while it is being moved"
    assert world.admin.post("knowledge/move", body).status_code == 409
    assert run_jobs("move") == 1
    done = world.member.get(progress).json()["data"]
    assert (done["status"], done["progress"], done["total"], done["processed"], done["failed"]) == ("completed", 100, 2, 2, 1)
    assert isinstance(done["created_at"], int)
    assert done["error"] == f"{clash_here.title}: the target base has the same content already."
    with unscoped("test look"), translation.override("zh-hans"):
        assert move_problems(MoveRun.objects.get().error) == [f"{clash_here.title}：目标知识库中已有相同内容。"]
    moved = world.member.get(f"knowledge/{document.uid}").json()["data"]
    assert (moved["knowledge_base_id"], moved["tags"], moved["folder_path"]) == (str(second.uid), None, "f")
    with unscoped("test look"):
        assert set(Chunk.objects.filter(document=document).values_list("kb_id", flat=True)) == {second.pk}
    assert world.fresh(clash_here).kb_id == world.base.pk
    assert world.outsider.get(progress).status_code == 404
    assert world.member.get("knowledge/move/progress/garbage").status_code == 400
    stored = heard(DocumentStored)
    again = {
        **body,
        "knowledge_ids": [str(document.uid)],
        "source_kb_id": str(second.uid),
        "target_kb_id": str(world.base.uid),
        "mode": "reparse",
    }
    with unscoped("test data"):
        Document.objects.filter(pk=document.pk).update(storage_path="k")
    world.admin.post("knowledge/move", again)
    run_jobs("move")
    assert world.fresh(document).parse_status == "pending" and len(stored) == 1
    for wrong in ({"mode": "teleport"}, {"target_kb_id": str(world.base.uid), "source_kb_id": str(world.base.uid)}, {"knowledge_ids": []}):
        assert world.admin.post("knowledge/move", {**body, **wrong}).status_code == 400
    assert world.admin.post("knowledge/move", {**body, "target_kb_id": str(world.other_base.uid)}).status_code == 404


def test_both_families_answer_the_same(world: Any) -> None:
    document = world.make_document(world.base, "a", chunks=1)
    root = f"/v1/tenants/{world.space.pk}/knowledge"
    for upstream, proxied in (
        (f"knowledge-bases/{world.base.uid}", f"bases/{world.base.uid}"),
        (f"knowledge-bases/{world.base.uid}/knowledge", f"bases/{world.base.uid}/documents"),
        (f"knowledge-bases/{world.base.uid}/knowledge/folders", f"bases/{world.base.uid}/folders"),
        (f"knowledge-bases/{world.base.uid}/tags", f"bases/{world.base.uid}/tags"),
        (f"knowledge/{document.uid}", f"documents/{document.uid}"),
        (f"chunks/{document.uid}", f"chunks/{document.uid}"),
        (f"initialization/config/{world.base.uid}", f"initialization/config/{world.base.uid}"),
    ):
        ours, theirs = world.member.get(upstream), world.member.get(f"{root}/{proxied}")
        assert ours.status_code == theirs.status_code == 200
        assert ours.json() == theirs.json(), proxied
    assert world.member.get(f"/v1/knowledge/bases/{world.base.uid}").status_code == 404, "the personal family sees the personal space only"


def test_head_asks_for_the_same_right(world: Any, client: Any) -> None:
    document = world.make_document(world.base)
    assert client.head(f"/api/v1/knowledge/{document.uid}").status_code == 401
    assert world.member.call("HEAD", f"knowledge/{document.uid}").status_code == 200
