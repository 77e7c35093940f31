"""The trash: what is deleted is found nowhere, comes back as it was, or is removed for good with nothing left."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.common.models import Activity
from apps.common.scope import space_scope, unscoped
from apps.ingestion.reconcile import reconcile
from apps.knowledge import files
from apps.knowledge.models import Chunk, CleanupRun, Document, DocumentTag, KnowledgeBase, Tag
from apps.knowledge.services import base_delete, base_purge, base_restore, documents_delete, documents_purge, documents_restore
from apps.knowledge.tasks import trash_upkeep
from apps.retrieval.engine import engine, forget_engine
from apps.retrieval.search import Options, Scope, search
from apps.spaces.selectors import storage_used
from tests.support.filestore import use_fresh_store
from tests.support.kit import Kit, make_kit, work_all


def later(document: Document, **age: int) -> None:
    """As if the term had begun so much earlier."""
    with unscoped("test data"):
        Document.objects.filter(pk=document.pk).update(purge_at=timezone.now() + timedelta(days=30) - timedelta(**age))


def test_a_deleted_document_is_nowhere_and_an_admin_brings_it_back(world: Any) -> None:
    document = world.make_document(world.base, "a.txt", chunks=2, folder_path="manuals", custom_metadata={"k": "v"})
    with unscoped("test data"):
        red, gone = (Tag.objects.create(space_id=world.space.pk, kb=world.base, name=name) for name in ("red", "gone"))
        for tag in (red, gone):
            DocumentTag.objects.create(space_id=world.space.pk, document=document, tag=tag)
    before = world.member.get(f"knowledge/{document.uid}").json()["data"]
    deleted = world.member.delete(f"knowledge/{document.uid}").json()
    assert deleted["success"] and deleted["data"]["task_id"].startswith("trash-")
    for path in ("", "/download", "/preview", "/stages"):
        assert world.admin.get(f"knowledge/{document.uid}{path}").status_code == 404
    assert world.admin.get(f"chunks/{document.uid}").status_code == 404
    listed = world.admin.get(f"knowledge-bases/{world.base.uid}/knowledge?parse_status=deleting").json()
    assert (listed["total"], world.admin.get(f"knowledge-bases/{world.base.uid}").json()["data"]["knowledge_count"]) == (0, 0)
    tags = world.member.get(f"knowledge-bases/{world.base.uid}/tags").json()["data"]["data"]
    assert {row["name"]: row["knowledge_count"] for row in tags} == {"red": 0, "gone": 0}, "in the trash it uses no tag"
    assert world.admin.delete(f"knowledge-bases/{world.base.uid}/tags/{gone.uid}", {}).status_code == 200
    with unscoped("test look"):
        assert not CleanupRun.objects.exists()
    trash = f"knowledge-bases/{world.base.uid}/trash"
    assert world.member.get(trash).status_code == 403
    page = world.admin.get(trash).json()
    row = page["data"][0]
    assert (page["total"], row["id"], row["title"], row["parse_status"]) == (1, str(document.uid), "a.txt", "completed")
    days = (timezone.datetime.fromisoformat(row["purge_at"]) - timezone.datetime.fromisoformat(row["deleted_at"])).days
    assert days == 30
    assert world.member.post(f"{trash}/restore", {"ids": [str(document.uid)]}).status_code == 403
    back = world.admin.post(f"{trash}/restore", {"ids": [str(document.uid)]}).json()["data"]
    assert back == {"restored_count": 1, "failed": []}
    after = world.member.get(f"knowledge/{document.uid}").json()["data"]
    same = ("id", "title", "folder_path", "custom_metadata", "parse_status", "enable_status", "file_hash")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert [tag["name"] for tag in after["tags"]] == ["red"], "a tag that was deleted meanwhile is not made again"
    assert world.member.get(f"chunks/{document.uid}").json()["total"] == 2
    assert world.admin.post(f"{trash}/restore", {"ids": [str(document.uid)]}).status_code == 404
    with unscoped("test look"):
        assert Activity.objects.get(action="knowledge.restored").details["count"] == 1


def test_content_that_was_added_again_keeps_the_old_one_in_the_trash(world: Any) -> None:
    document = world.make_document(world.base, "a.txt", file_hash="1" * 32)
    other = world.make_document(world.base, "b.txt")
    for one in (document, other):
        world.member.delete(f"knowledge/{one.uid}")
    world.make_document(world.base, "again.txt", file_hash="1" * 32)
    url = f"knowledge-bases/{world.base.uid}/trash/restore"
    back = world.admin.post(url, {"ids": [str(document.uid), str(other.uid), "nonsense"]}).json()["data"]
    assert back["restored_count"] == 1 and [row["id"] for row in back["failed"]] == [str(document.uid)]
    assert world.fresh(document).deleted_at is not None and world.fresh(other).deleted_at is None


def test_a_deleted_base_comes_back_with_what_was_deleted_with_it(world: Any) -> None:
    kept, gone = world.make_document(world.base, "kept.txt", chunks=1), world.make_document(world.base, "gone.txt")
    world.member.delete(f"knowledge/{gone.uid}")
    assert world.admin.delete(f"knowledge-bases/{world.base.uid}").status_code == 200
    assert world.admin.get(f"knowledge-bases/{world.base.uid}").status_code == 404
    assert world.admin.get("knowledge-bases").json()["data"] == []
    listed = world.admin.get("trash").json()["data"]
    assert [(row["id"], row["is_deleted"], row["document_count"]) for row in listed] == [(str(world.base.uid), True, 2)]
    assert world.outsider.get("trash").json()["data"] == []
    assert world.outsider.post(f"trash/{world.base.uid}/restore").status_code == 404
    assert world.member.post(f"trash/{world.base.uid}/restore").status_code == 403
    back = world.admin.post(f"trash/{world.base.uid}/restore").json()["data"]
    assert (back["id"], back["knowledge_count"]) == (str(world.base.uid), 1)
    assert world.fresh(kept).deleted_at is None and world.fresh(kept).parse_status == "completed"
    assert world.fresh(gone).deleted_at is not None
    assert world.admin.post(f"trash/{world.base.uid}/restore").status_code == 404
    listed = world.admin.get(f"/v1/tenants/{world.space.pk}/knowledge/trash").json()["data"]
    assert [(row["is_deleted"], row["document_count"]) for row in listed] == [(False, 1)]


def test_without_a_trash_deleting_is_for_good(world: Any, settings: Any) -> None:
    settings.TRASH_DAYS = 0
    document = world.make_document(world.base, "a.txt")
    world.member.delete(f"knowledge/{document.uid}")
    assert world.admin.get(f"knowledge-bases/{world.base.uid}/trash").json()["total"] == 0
    with unscoped("test look"):
        assert CleanupRun.objects.count() == 1


# What really goes and comes: index, files, vectors.


@pytest.fixture
def kit(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Kit]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    use_fresh_store(settings, tmp_path)
    forget_engine()
    yield make_kit()
    forget_engine()


def found(kit: Kit, query: str) -> list[int]:
    with space_scope(kit.space.pk):
        hits = search(actor=kit.actor, query=query, scope=Scope(), options=Options()).hits
        return sorted({hit.document.pk for hit in hits if query in hit.chunk.content})


def stored() -> list[str]:
    return sorted(entry.key for entry in files.stored_entries())


def read(kit: Kit, *names: str) -> list[Document]:
    documents = [kit.upload(name, f"The device in {name} has the code TRASH-{n}0.") for n, name in enumerate(names)]
    work_all("parse", "embed")
    return [kit.reload(document) for document in documents]


def test_found_again_with_its_vectors_after_it_came_back(kit: Kit) -> None:
    first, second = read(kit, "a.txt", "b.txt")
    kept = stored()
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[first])
        assert found(kit, "TRASH-00") == [] and first.pk not in engine().revisions(kit.space.pk)
        assert reconcile(repair=True, young_s=0).total == 0, "nothing is wrong with a trash, and nothing of it is cleaned up"
        assert work_all("cleanup") == 0 and stored() == kept
        used = storage_used(space_id=kit.space.pk)
        documents_restore(actor=kit.actor, base=kit.base, documents=[first])
        assert storage_used(space_id=kit.space.pk) == used > 0, "what is in the trash counts"
    assert found(kit, "TRASH-00") == [first.pk] and found(kit, "TRASH-10") == [second.pk]
    work_all("embed")
    again = kit.reload(first)
    assert (again.parse_status, again.vector_count, again.chunk_count) == ("completed", 1, 1)
    assert reconcile(repair=False, young_s=0).total == 0


def test_one_deleted_while_it_was_read_is_read_when_it_comes_back(kit: Kit) -> None:
    document = kit.upload("a.txt", "Half read, code HALF-7.")
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[document])
    assert work_all("parse") == 0
    with space_scope(kit.space.pk):
        documents_restore(actor=kit.actor, base=kit.base, documents=[document])
    work_all("parse", "embed")
    assert kit.reload(document).parse_status == "completed" and found(kit, "HALF-7") == [document.pk]


def test_purged_nothing_is_left_and_nothing_comes_back(kit: Kit) -> None:
    first, second = read(kit, "a.txt", "b.txt")
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[first])
        assert documents_purge(actor=kit.actor, base=kit.base, documents=[first]) == 1
        assert documents_restore(actor=kit.actor, base=kit.base, documents=[first]).count == 0
        assert documents_purge(actor=kit.actor, base=kit.base, documents=[first]) == 0
    work_all("cleanup")
    with unscoped("test look"):
        assert list(Document.objects.values_list("pk", flat=True)) == [second.pk]
        assert set(Chunk.objects.values_list("document_id", flat=True)) == {second.pk}
    assert all(str(second.uid) in key for key in stored()) and stored()
    assert set(engine().revisions(kit.space.pk)) == {second.pk}
    assert reconcile(repair=False, young_s=0).total == 0


def test_a_base_goes_and_comes_whole_and_purged_leaves_nothing(kit: Kit) -> None:
    first, second = read(kit, "a.txt", "b.txt")
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[second])
        base_delete(actor=kit.actor, base=kit.base)
        assert found(kit, "TRASH-00") == [] and reconcile(repair=False, young_s=0).total == 0
        base = base_restore(actor=kit.actor, base=KnowledgeBase.objects.get(pk=kit.base.pk))
    assert found(kit, "TRASH-00") == [first.pk] and found(kit, "TRASH-10") == []
    with space_scope(kit.space.pk):
        base_delete(actor=kit.actor, base=base)
        base_purge(actor=kit.actor, base=base)
    work_all("cleanup", "embed")
    with unscoped("test look"):
        assert not Document.objects.exists() and not Chunk.objects.exists() and not KnowledgeBase.objects.exists()
    assert stored() == [] and engine().revisions(kit.space.pk) == {}
    assert reconcile(repair=False, young_s=0).total == 0


def test_the_schedule_removes_what_was_there_for_its_term_and_nothing_else(kit: Kit) -> None:
    old, young = read(kit, "a.txt", "b.txt")
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[old, young])
    later(old, days=30, seconds=1)
    later(young, days=29)
    assert trash_upkeep() == 1 and trash_upkeep() == 0
    work_all("cleanup")
    with unscoped("test look"):
        assert list(Document.objects.values_list("pk", flat=True)) == [young.pk]
        KnowledgeBase.objects.filter(pk=kit.base.pk).update(deleted_at=timezone.now(), purge_at=timezone.now())
    assert trash_upkeep() == 1
    work_all("cleanup")
    with unscoped("test look"):
        assert not KnowledgeBase.objects.exists()
    assert stored() == []


def test_reconcile_notices_a_schedule_that_did_not_run(kit: Kit) -> None:
    (document,) = read(kit, "a.txt")
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[document])
    later(document, days=31, hours=1)
    assert reconcile(repair=False, young_s=0).unfinished_deletions == [document.pk]
    reconcile(repair=True, young_s=0)
    work_all("cleanup")
    assert stored() == [] and reconcile(repair=False, young_s=0).total == 0
