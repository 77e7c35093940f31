"""Copying bases over REST: settings only, into a new base, onto an existing one; stopped, killed, followed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.common import storage
from apps.common.jobs.claims import claim_next, heartbeats
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.models import Activity
from apps.common.scope import space_scope, unscoped
from apps.ingestion.models import IngestionRun
from apps.ingestion.reconcile import reconcile
from apps.knowledge import copying
from apps.knowledge.models import Chunk, ChunkRevision, CopyRun, Document, DocumentTag, KnowledgeBase, Tag
from apps.knowledge.services import base_copy, base_delete, chunk_update, tag_create, tags_replace
from apps.retrieval.engine import engine, forget_engine
from apps.retrieval.models import PassageVector
from apps.retrieval.search import Options, Scope, search
from apps.retrieval.services import serving_of
from tests.support.filestore import use_fresh_store
from tests.support.kit import Kit, make_kit, work_all


def activity(base: Any, action: str) -> list[tuple[str, dict[str, Any]]]:
    with unscoped("test look"):
        return list(Activity.objects.filter(scope_id=base.uid, action=action).order_by("pk").values_list("outcome", "details"))


def live(base: Any) -> Any:
    return Document.objects.filter(kb=base, deleted_at__isnull=True)


def test_duplicate_copies_settings_and_nothing_else(world: Any) -> None:
    with unscoped("test data"):
        KnowledgeBase.objects.filter(pk=world.base.pk).update(description="All of it", chunking_config={"chunk_size": 300})
        Tag.objects.create(space_id=world.space.pk, kb=world.base, name="red")
    world.make_document(world.base, "a", chunks=1)
    url = f"knowledge-bases/{world.base.uid}/duplicate"
    assert world.member.post(url).status_code == 403
    assert world.outsider.post(url).status_code == 404
    made = world.admin.post(url)
    data = made.json()["data"]
    copy = data["knowledge_base"]
    assert made.status_code == 201 and data["source_id"] == str(world.base.uid) and data["target_id"] == copy["id"]
    assert (copy["name"], copy["description"], copy["chunking_config"]["chunk_size"]) == ("Handbook Copy", "All of it", 300)
    assert (copy["knowledge_count"], copy["creator_id"]) == (0, str(world.admin.user.pk))
    assert world.member.get(f"knowledge-bases/{copy['id']}/tags").json()["data"]["data"] == []
    assert [world.admin.post(url).json()["data"]["knowledge_base"]["name"] for _ in range(2)] == ["Handbook Copy 2", "Handbook Copy 3"]
    assert len(activity(world.base, "kb.duplicated")) == 3
    with unscoped("test data"):
        KnowledgeBase.objects.filter(pk=world.base.pk).update(name="é" * 200)
    long = world.admin.post(url).json()["data"]["knowledge_base"]["name"]
    assert (len(long), long[-6:]) == (200, "é Copy")


def test_who_may_copy_and_what_is_refused(world: Any) -> None:
    world.make_document(world.base, "a")
    second = world.make_base(world.space, "Second")
    url, source = "knowledge-bases/copy", str(world.base.uid)
    assert world.member.post(url, {"source_id": source}).status_code == 403
    assert world.admin.post(url, {}).status_code == 400
    assert world.admin.post(url, {"source_id": str(world.other_base.uid)}).status_code == 404
    assert world.admin.post(url, {"source_id": source, "target_id": str(world.other_base.uid)}).status_code == 404
    assert world.admin.post(url, {"source_id": source, "target_id": source}).json()["error"]["code"] == 1000
    with unscoped("test data"):
        KnowledgeBase.objects.filter(pk=second.pk).update(embedding_model_id="other-model")
    refused = world.admin.post(url, {"source_id": source, "target_id": str(second.uid)})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, 1000)
    with unscoped("test data"):
        KnowledgeBase.objects.filter(pk=second.pk).update(embedding_model_id="", type="faq")
    assert world.admin.post(url, {"source_id": source, "target_id": str(second.uid)}).status_code == 400
    with unscoped("test look"):
        assert not CopyRun.objects.exists()
    with unscoped("test data"):
        KnowledgeBase.objects.filter(pk=second.pk).update(type="document")
    body = {"sourceId": source, "targetId": str(second.uid)}
    assert world.admin.post(f"/v1/tenants/{world.space.pk}/knowledge/bases/copy", body).status_code == 200, "the client's spelling"
    again = world.admin.post(url, {"source_id": source, "target_id": str(second.uid)})
    assert again.status_code == 409, "one copy at a time into one base"
    limited = world.key(world.space, capabilities=["manage_kbs"], kb_uids=[source])
    named = limited.post(f"/api/v1/{url}", {"source_id": source, "target_id": str(second.uid)}, content_type="application/json")
    assert named.status_code == 404


def test_progress_is_the_contracts(world: Any, run_jobs: Any) -> None:
    for number in range(3):
        world.make_document(world.base, f"{number}", chunks=2)
    started = world.admin.post("knowledge-bases/copy", {"source_id": str(world.base.uid)}).json()["data"]
    task = started["task_id"]
    assert task.startswith(f"kb_clone_{world.space.pk}_") and task.endswith(f"_{world.base.uid}")
    assert (started["source_id"], started["target_id"], bool(started["message"])) == (str(world.base.uid), "", True)
    url = f"knowledge-bases/copy/progress/{task}"
    waiting = world.member.get(url).json()["data"]
    assert (waiting["status"], waiting["progress"], waiting["total"], waiting["processed"]) == ("pending", 0, 3, 0)
    target = waiting["target_id"]
    names = [row["name"] for row in world.member.get("knowledge-bases").json()["data"]]
    assert names == ["Handbook"] and world.member.get(f"knowledge-bases/{target}").status_code == 404, "not seen before it is whole"
    assert run_jobs("copy") == 1
    done = world.member.get(url).json()["data"]
    assert (done["status"], done["progress"], done["total"], done["processed"], done["error"]) == ("completed", 100, 3, 3, "")
    assert done["target_id"] == target and isinstance(done["created_at"], int) and done["updated_at"] >= done["created_at"] > 0
    assert world.member.get(f"/v1/tenants/{world.space.pk}/knowledge/bases/copy/progress/{task}").json()["data"] == done
    copy = world.member.get(f"knowledge-bases/{target}").json()["data"]
    assert (copy["name"], copy["knowledge_count"]) == ("Handbook", 3)
    assert [row[0] for row in activity(world.base, "kb.clone_started")] == ["accepted"]
    assert [row[0] for row in activity(world.base, "kb.clone_completed")] == ["success"]
    assert world.member.get("knowledge-bases/copy/progress/garbage").status_code == 400
    assert world.member.get("knowledge-bases/copy/progress/kb_clone_x_1_2_3").status_code == 400
    assert world.outsider.get(url).status_code == 404
    assert world.member.get(url.replace(f"clone_{world.space.pk}_", "clone_99999_")).status_code == 404
    with unscoped("test data"):
        CopyRun.objects.filter(task_id=task).update(created_at=timezone.now() - timedelta(hours=25))
    assert world.member.get(url).status_code == 404, "kept for a day"


def test_a_clients_own_task_id_is_kept_and_cannot_be_used_twice(world: Any) -> None:
    task = f"kb_clone_{world.space.pk}_1_00000000_mine"
    body = {"source_id": str(world.base.uid), "task_id": task}
    assert world.admin.post("knowledge-bases/copy", body).json()["data"]["task_id"] == task
    assert world.member.get(f"knowledge-bases/copy/progress/{task}").status_code == 200
    assert world.admin.post("knowledge-bases/copy", body).json()["error"]["code"] == 1005
    with unscoped("test look"):
        assert KnowledgeBase.objects.filter(space=world.space).count() == 2, "the refused copy left no base"


def test_stop_while_waiting_and_while_running(world: Any, run_jobs: Any) -> None:
    world.make_document(world.base, "a")
    url = "knowledge-bases/copy"
    task = world.admin.post(url, {"source_id": str(world.base.uid)}).json()["data"]["task_id"]
    stop = f"{url}/progress/{task}/cancel"
    assert world.member.post(stop).status_code == 403
    stopped = world.admin.post(stop).json()["data"]
    assert (stopped["status"], stopped["message"]) == ("failed", "The copy was stopped.")
    assert world.admin.post(stop).status_code == 200, "twice changes nothing"
    assert [row[0] for row in activity(world.base, "kb.clone_failed")] == ["canceled"]
    second = world.make_base(world.space, "Second")
    task = world.admin.post(url, {"source_id": str(world.base.uid), "target_id": str(second.uid)}).json()["data"]["task_id"]
    claim = claim_next(job_kinds.get("copy"))
    assert claim is not None
    assert world.admin.post(f"{url}/progress/{task}/cancel").json()["data"]["status"] == "processing"
    claim.beat()
    work(claim)
    assert world.member.get(f"{url}/progress/{task}").json()["data"]["status"] == "failed"
    assert world.fresh(second).deleted_at is None, "a base that was there stays"
    run_jobs("cleanup")
    with unscoped("test look"):
        assert sorted(KnowledgeBase.objects.filter(space=world.space).values_list("name", flat=True)) == ["Handbook", "Second"]


# What really goes over: passages, vectors, files, index.


@pytest.fixture
def kit(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Kit]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    use_fresh_store(settings, tmp_path)
    forget_engine()
    yield make_kit()
    forget_engine()


def filled(kit: Kit, count: int = 5) -> list[Document]:
    """Documents that went through the pipeline, one tagged, filed and edited."""
    documents = [kit.upload(f"d{n}.txt", f"Device {n} has the code DEV-{n}000 and is red.") for n in range(count)]
    work_all("parse", "embed")
    with space_scope(kit.space.pk):
        tag = tag_create(actor=kit.actor, base=kit.base, name="pumps", color="green")
        tags_replace(actor=kit.actor, base=kit.base, updates={str(documents[0].uid): [str(tag.uid)]})
        Document.objects.filter(pk=documents[0].pk).update(folder_path="manuals/a", custom_metadata={"k": "v"}, description="Sum.")
        chunk = Chunk.objects.get(document=documents[1])
        chunk_update(actor=kit.actor, chunk=chunk, content="Device 1 has the code EDIT-77.")
    work_all("embed")
    return [kit.reload(document) for document in documents]


def figures(base: Any) -> dict[str, int]:
    """What the bar of a copy counts: documents, passages, index rows, vectors."""
    held = engine().revisions(base.space_id)
    with space_scope(base.space_id):
        ids = list(live(base).values_list("pk", flat=True))
        return {
            "documents": len(ids),
            "passages": Chunk.objects.filter(document__in=ids, kb=base).count(),
            "vectors": sum(live(base).values_list("vector_count", flat=True)),
            "index": sum(1 for pk in ids if pk in held),
        }


def start(kit: Kit, target: Any = None) -> CopyRun:
    with space_scope(kit.space.pk):
        return base_copy(actor=kit.actor, source=kit.base, target=target)


def target_of(run: CopyRun) -> KnowledgeBase:
    with unscoped("test look"):
        return KnowledgeBase.objects.get(pk=run.target_ref)


def codes(kit: Kit, base: Any, query: str) -> list[str]:
    """Passages of a base in which a code is found."""
    with space_scope(kit.space.pk):
        found = search(actor=kit.actor, query=query, scope=Scope(kb_uids=(base.uid,)), options=Options())
        return [hit.chunk.content for hit in found.hits if query in hit.chunk.content]


def test_a_new_base_has_everything_and_nothing_is_embedded_again(kit: Kit) -> None:
    first, *_rest = filled(kit)
    with unscoped("test look"):
        vectors = PassageVector.objects.count()
    run = start(kit)
    assert work_all("copy") == 1
    base = target_of(run)
    assert figures(base) == figures(kit.base) == {"documents": 5, "passages": 5, "vectors": 5, "index": 5}
    with unscoped("test look"):
        assert PassageVector.objects.count() == vectors and not IngestionRun.objects.filter(state="queued").exists()
        copy = live(base).get(file_hash=first.file_hash)
        assert (copy.folder_path, copy.custom_metadata, copy.description) == ("manuals/a", {"k": "v"}, "Sum.")
        assert (copy.parse_status, copy.enabled, copy.chunk_count) == ("completed", True, 1)
        assert list(Tag.objects.filter(kb=base).values_list("name", "color")) == [("pumps", "green")]
        assert DocumentTag.objects.get(document=copy).tag.kb_id == base.pk
        edited = Chunk.objects.get(kb=base, content_revision=1)
        assert ChunkRevision.objects.get(chunk=edited).content.startswith("Device 1 has the code DEV-1000")
        with storage.read(copy.storage_path) as ours, storage.read(first.storage_path) as theirs:
            assert copy.storage_path != first.storage_path and ours.read() == theirs.read()
        assert storage.exists(copy.parsed_path) and copy.parsed_path != first.parsed_path
        assert serving_of(base.pk) == serving_of(kit.base.pk)
    assert codes(kit, base, "EDIT-77") and codes(kit, base, "DEV-4000") and not codes(kit, base, "DEV-1000")
    assert reconcile(repair=False, young_s=0).total == 0
    with space_scope(kit.space.pk):
        base_delete(actor=kit.actor, base=kit.base)
    assert codes(kit, base, "DEV-4000"), "the copy stands on its own"


def test_an_existing_base_becomes_a_mirror(kit: Kit) -> None:
    filled(kit, 3)
    with space_scope(kit.space.pk):
        other = make_target(kit)
    kept = upload_into(kit, other, "same.txt", "Device 2 has the code DEV-2000 and is red.")
    gone = upload_into(kit, other, "else.txt", "Nothing of that, code OLD-1.")
    work_all("parse", "embed")
    run = start(kit, other)
    work_all("copy")
    with unscoped("test look"):
        run.refresh_from_db()
        assert (run.state, run.progress_done, run.removed) == ("done", 3, 1)
        assert kit.reload(kept).deleted_at is None and not live(other).filter(pk=gone.pk).exists()
        assert sorted(live(other).values_list("file_hash", flat=True)) == sorted(live(kit.base).values_list("file_hash", flat=True))
    assert figures(other) == figures(kit.base)
    start(kit, other)
    work_all("copy")
    assert figures(other) == figures(kit.base), "copied again, nothing changes"
    assert not codes(kit, other, "OLD-1") and codes(kit, other, "DEV-1000") == []


def make_target(kit: Kit) -> KnowledgeBase:
    from apps.knowledge.services import base_create

    return base_create(actor=kit.actor, values={"name": "Target"})


def upload_into(kit: Kit, base: KnowledgeBase, name: str, text: str) -> Document:
    return Kit(kit.space, kit.actor, base).upload(name, text)


class Killed(BaseException):
    """What a worker that is killed never gets to handle."""


@pytest.mark.parametrize("moment", ["before rows", "after rows", "before the end"])
def test_killed_at_any_moment_it_goes_on_and_nothing_is_there_twice(kit: Kit, monkeypatch: Any, moment: str) -> None:
    filled(kit, 6)
    monkeypatch.setattr(copying, "SLICE", 2)
    monkeypatch.setattr(heartbeats, "add", lambda claim: None)  # one under way could renew the lease after the worker's death
    run = start(kit)
    calls = []
    name = "_remove_surplus" if moment == "before the end" else "_copy_rows"
    real = getattr(copying, name)

    def dies(*args: Any) -> Any:
        calls.append(args)
        if moment == "before rows" and len(calls) == 2:
            raise Killed
        result = real(*args)
        if moment == "before the end" or (moment == "after rows" and len(calls) == 2):
            raise Killed
        return result

    monkeypatch.setattr(copying, name, dies)
    claim = claim_next(job_kinds.get("copy"))
    assert claim is not None
    with pytest.raises(Killed):
        work(claim)
    monkeypatch.setattr(copying, name, real)
    expire(run)
    if moment == "before the end":  # the index lost what was committed last
        with space_scope(kit.space.pk):
            engine().delete(kit.space.pk, kb_ids=[run.target_ref])
    assert work_all("copy") == 1
    assert figures(target_of(run)) == figures(kit.base) == {"documents": 6, "passages": 6, "vectors": 6, "index": 6}
    assert reconcile(repair=False, young_s=0).total == 0, "no file, row or index entry is left over"
    assert [row[0] for row in activity(kit.base, "kb.clone_completed")] == ["success"]


def expire(run: CopyRun) -> None:
    with unscoped("the lease of a killed worker"):
        CopyRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(minutes=1))


def test_documents_under_way_arrive_as_what_they_are(kit: Kit) -> None:
    kit.upload("waiting.txt", "It waits, code WAIT-1.")
    kit.upload("words.txt", "It is findable, code WORD-1.")
    with unscoped("test data"):
        Document.objects.filter(file_name="waiting.txt").update(created_at=timezone.now())
        IngestionRun.objects.filter(document__file_name="waiting.txt").update(not_before=timezone.now() + timedelta(hours=1))
    work_all("parse")
    with unscoped("test look"):
        assert dict(live(kit.base).values_list("file_name", "parse_status")) == {"waiting.txt": "pending", "words.txt": "finalizing"}
    run = start(kit)
    work_all("copy")
    base = target_of(run)
    assert codes(kit, base, "WORD-1")
    work_all("parse", "embed")
    with unscoped("test look"):
        assert dict(live(base).values_list("file_name", "parse_status")) == {"waiting.txt": "completed", "words.txt": "completed"}


def test_a_base_deleted_meanwhile_ends_the_copy_and_takes_nothing_along(kit: Kit) -> None:
    filled(kit, 2)
    with space_scope(kit.space.pk):
        other = make_target(kit)
    kept = upload_into(kit, other, "kept.txt", "Kept, code KEPT-1.")
    work_all("parse", "embed")
    run = start(kit, other)
    with space_scope(kit.space.pk):
        base_delete(actor=kit.actor, base=kit.base)
    work_all("copy")
    with unscoped("test look"):
        run.refresh_from_db()
        assert (run.state, run.reason) == ("failed", "source_deleted")
    assert kit.reload(kept).deleted_at is None and codes(kit, other, "KEPT-1")


def test_an_original_the_store_lost_is_counted_and_the_rest_goes_over(kit: Kit) -> None:
    first, _second = filled(kit, 2)
    storage.remove(first.storage_path)
    run = start(kit)
    work_all("copy")
    with unscoped("test look"):
        run.refresh_from_db()
        assert (run.state, run.progress_done, run.progress_failed) == ("done", 2, 1)
        assert live(target_of(run)).get(file_hash=first.file_hash).storage_path == ""
    assert [row[0] for row in activity(kit.base, "kb.clone_completed")] == ["partial"]
