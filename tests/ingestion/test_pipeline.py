"""From an upload to passages that are found, and to a true state when that is not possible."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from apps.common.errors import TransientError
from apps.common.jobs.models import RunState
from apps.common.scope import space_scope, unscoped
from apps.ingestion import services
from apps.ingestion.models import IngestionRun, Span
from apps.ingestion.parsed import read_parsed
from apps.ingestion.reconcile import reconcile
from apps.ingestion.selectors import document_trace
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import chunk_update, document_reparse, documents_delete
from apps.llm.plugins.protocol import Embedder
from apps.retrieval.engine import engine, forget_engine
from apps.retrieval.models import PassageVector
from apps.retrieval.search import Options, Results, Scope, search
from apps.retrieval.services import rebuild_index
from tests.support.filestore import use_fresh_store
from tests.support.kit import Kit, make_kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)

MANUAL = """# 传感器-温度-TH01 安装说明

安装完成后应在常温下静置三十分钟。

## 校准

传感器应每季度校准一次。故障代码 ERR-4021 表示过热。

## Storage

Keep the device dry. Part number AB-1234/56-X.
"""


@pytest.fixture(autouse=True)
def _own_index(settings: Any, tmp_path: Any) -> Iterator[None]:
    (tmp_path / "index").mkdir()
    (tmp_path / "run").mkdir()
    settings.DATA_DIR = tmp_path
    use_fresh_store(settings, tmp_path)
    forget_engine()
    yield
    forget_engine()


@pytest.fixture
def kit() -> Kit:
    return make_kit()


def find(kit: Kit, query: str, **options: Any) -> Results:
    with space_scope(kit.space.pk):
        return search(actor=kit.actor, query=query, scope=Scope(kb_uids=(kit.base.uid,)), options=Options(**options))


def no_room(*_args: Any, **_options: Any) -> None:
    raise TransientError("the search index words.sqlite3 cannot be used now: database or disk is full", code="index_busy")


def test_a_document_is_called_findable_only_once_the_index_has_its_words(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    document = kit.upload("manual.md", MANUAL)
    with monkeypatch.context() as full:
        full.setattr("apps.ingestion.pipeline.index_documents", no_room)
        assert work_all(services.PARSE) == 1
    document = kit.reload(document)
    assert (document.parse_status, document.chunk_count > 0) == ("processing", True)
    assert find(kit, "ERR-4021", mode="text").hits == []
    work_all()
    assert kit.reload(document).parse_status == "completed"
    assert find(kit, "ERR-4021", mode="text").hits[0].document.pk == document.pk


def test_a_document_whose_words_never_came_into_the_index_has_failed(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    document = kit.upload("manual.md", MANUAL)
    with monkeypatch.context() as full:
        full.setattr("apps.ingestion.pipeline.index_documents", no_room)
        assert work_all(services.PARSE) == 1
    with space_scope(kit.space.pk):
        run = IngestionRun.objects.get(document=document, kind=services.EMBED)
        run.state, run.reason, run.error = RunState.FAILED, "internal", "the index cannot be written"
        services.run_ended(run)
    document = kit.reload(document)
    assert (document.parse_status, document.reason, document.chunk_count) == ("failed", "internal", 0)


def test_a_document_is_found_by_words_before_its_vectors_are_made(kit: Kit) -> None:
    document = kit.upload("manual.md", MANUAL)
    assert (document.parse_status, document.enabled) == ("pending", False)
    assert work_all(services.PARSE) == 1
    document = kit.reload(document)
    assert (document.parse_status, document.enabled, document.vector_count) == ("finalizing", True, 0)
    hits = find(kit, "ERR-4021", mode="text").hits
    assert hits[0].document.pk == document.pk
    assert "ERR-4021" in hits[0].chunk.content
    assert [hits[0].chunk.content[a:b] for a, b in hits[0].spans] == ["ERR-4021"]
    work_all()
    document = kit.reload(document)
    assert (document.parse_status, document.error_message, document.pending_subtasks_count) == ("completed", "", 0)
    assert document.vector_count == document.chunk_count > 0
    assert {leg: state["status"] for leg, state in find(kit, "how often is it calibrated").legs.items()} == {"text": "ok", "vector": "ok"}


def test_passages_point_into_the_parsed_text(kit: Kit) -> None:
    document = kit.upload("manual.md", MANUAL)
    work_all()
    with space_scope(kit.space.pk):
        document = kit.reload(document)
        parsed = read_parsed(document)
        assert parsed is not None
        chunks = list(Chunk.objects.filter(document=document, chunk_type="text").order_by("chunk_index"))
        assert [c.prefix + parsed["text"][c.start_at : c.end_at] for c in chunks] == [c.content for c in chunks]
        assert chunks[0].positions[0]["line"] == 1


@pytest.mark.parametrize("query", ["校准", "ＥＲＲ－４０２１", "AB-1234/56-X", "傳感器", "TH01", "静置"])
def test_short_words_codes_and_other_forms_find_it(kit: Kit, query: str) -> None:
    kit.upload("manual.md", MANUAL)
    kit.upload("other.md", "# 别的\n\n完全无关的一段文字，谈天气。\n")
    work_all(services.PARSE)
    hits = find(kit, query, mode="text").hits
    assert [h.document.file_name for h in hits][:1] == ["manual.md"]


def test_a_file_that_cannot_be_read_fails_with_its_reason_and_leaves_nothing(kit: Kit) -> None:
    document = kit.upload("broken.pdf", b"%PDF-1.4\nnot really a pdf, cut off here")
    work_all()
    document = kit.reload(document)
    assert (document.parse_status, document.reason) == ("failed", "corrupt")
    assert document.error_message
    with space_scope(kit.space.pk):
        assert Chunk.objects.filter(document=document).count() == 0
        trace = document_trace(actor=kit.actor, document=document)
    assert [(c["name"], c["status"]) for c in trace["trace"]["children"]] == [
        ("docreader", "failed"),
        ("chunking", "cancelled"),
        ("embedding", "cancelled"),
        ("multimodal", "cancelled"),
        ("postprocess", "cancelled"),
    ]
    assert trace["last_error"]["stage"] == trace["last_error"]["name"] == "docreader"


def test_reparse_makes_a_new_attempt_and_replaces_the_passages(kit: Kit) -> None:
    document = kit.upload("manual.md", MANUAL)
    work_all()
    with space_scope(kit.space.pk):
        before = set(Chunk.objects.values_list("pk", flat=True))
        document_reparse(actor=kit.actor, document=kit.reload(document))
    assert find(kit, "ERR-4021").hits == []
    work_all()
    with space_scope(kit.space.pk):
        after = set(Chunk.objects.values_list("pk", flat=True))
        trace = document_trace(actor=kit.actor, document=kit.reload(document))
    assert before.isdisjoint(after)
    assert (trace["attempt"], trace["latest_attempt"]) == (2, 2)
    assert [c["status"] for c in trace["trace"]["children"]] == ["done", "done", "done", "skipped", "done"]
    assert len(find(kit, "ERR-4021").hits) >= 1


def test_a_deleted_document_is_gone_from_search_at_once_and_its_work_stops(kit: Kit, settings: Any) -> None:
    settings.TRASH_DAYS = 0
    kept = kit.upload("kept.md", "# 保留\n\n这一篇提到 ZQX-删除-42 一次。\n")
    gone = kit.upload("gone.md", "# 删除\n\n这一篇也提到 ZQX-删除-42 一次，但是要删除。\n")
    work_all(services.PARSE)
    assert {h.document.pk for h in find(kit, "ZQX-删除-42", mode="text").hits} == {kept.pk, gone.pk}
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[kit.reload(gone)])
    assert {h.document.pk for h in find(kit, "ZQX-删除-42", mode="text").hits} == {kept.pk}
    work_all()
    with unscoped("tests look at every space"):
        assert not IngestionRun.objects.filter(document_id=gone.pk, state__in=["queued", "running"]).exists()
        assert not Document.objects.filter(pk=gone.pk).exists()
    assert gone.pk not in engine().revisions(kit.space.pk)
    assert reconcile(repair=False, young_s=0).total == 0


def test_an_edited_passage_is_found_by_its_new_words_only(kit: Kit) -> None:
    document = kit.upload("manual.md", MANUAL)
    work_all()
    with space_scope(kit.space.pk):
        chunk = next(c for c in Chunk.objects.filter(document=document) if "ERR-4021" in c.content)
        chunk_update(actor=kit.actor, chunk=chunk, content=chunk.content.replace("ERR-4021", "ERR-9090"), expected_revision=0)
    assert find(kit, "ERR-9090", mode="text").hits[0].chunk.pk == chunk.pk
    assert not any("ERR-4021" in h.chunk.content for h in find(kit, "ERR-4021", mode="text").hits)
    work_all()
    assert kit.reload(document).parse_status == "completed"
    assert reconcile(repair=False, young_s=0).total == 0


def test_vectors_are_made_once_per_text(kit: Kit) -> None:
    kit.upload("a.md", MANUAL)
    work_all()
    with space_scope(kit.space.pk):
        made = PassageVector.objects.count()
    kit.upload("b.txt", MANUAL + "\nOne more line that makes it another file.\n")
    work_all()
    with space_scope(kit.space.pk):
        fresh = PassageVector.objects.count() - made
        shared = Chunk.objects.filter(chunk_type="text").count()
    assert 0 < fresh < shared


def test_without_an_embedder_documents_complete_with_words_only(kit: Kit, settings: Any) -> None:
    settings.EMBEDDER = "none"
    document = kit.upload("manual.md", MANUAL)
    work_all()
    document = kit.reload(document)
    assert (document.parse_status, document.vector_count) == ("completed", 0)
    results = find(kit, "校准")
    assert results.hits[0].document.pk == document.pk
    assert results.legs["vector"]["status"] == "unavailable"


class BrokenEmbedder:
    model, dimension, space, at_once, concurrency = "broken", 4, "broken:4", 8, 1

    def passages(self, texts: Any) -> Any:
        raise RuntimeError("no vectors today")

    def query(self, text: str) -> Any:
        raise RuntimeError("no vectors today")


def test_a_failing_embedder_leaves_the_document_findable_and_says_so(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.ingestion import embedding

    broken: Embedder = BrokenEmbedder()  # type: ignore[assignment]
    monkeypatch.setattr(embedding, "embedder", lambda _model: broken)
    document = kit.upload("manual.md", MANUAL)
    work_all()
    document = kit.reload(document)
    assert (document.parse_status, document.reason) == ("completed", "internal")
    assert find(kit, "校准", mode="text").hits[0].document.pk == document.pk


def test_the_index_can_be_made_again_from_the_database_alone(kit: Kit) -> None:
    kit.upload("manual.md", MANUAL)
    kit.upload("other.md", "# Other\n\nA page about spare parts.\n")
    work_all()
    before = [(h.chunk.pk, round(h.score, 6)) for h in find(kit, "校准 spare parts").hits]
    done = rebuild_index()
    assert done["documents"] == 2
    assert [(h.chunk.pk, round(h.score, 6)) for h in find(kit, "校准 spare parts").hits] == before
    assert reconcile(repair=False, young_s=0).total == 0


def test_reconcile_finds_and_repairs_each_kind_of_disagreement(kit: Kit) -> None:
    document = kit.upload("manual.md", MANUAL)
    work_all()
    engine().delete(kit.space.pk, doc_ids=[document.pk])
    stray = kit.base.uid
    from django.core.files.base import ContentFile
    from django.core.files.storage import default_storage

    key = default_storage.save(f"{kit.space.pk}/{stray}/{uuid.uuid4()}/x/original", ContentFile(b"left over"))
    with unscoped("tests break things"):
        Document.objects.filter(pk=document.pk).update(parse_status="processing")
    found = reconcile(repair=False, young_s=0)
    assert (found.index[kit.space.pk].missing, found.orphan_files, found.idle_documents) == ([document.pk], [key], [document.pk])
    reconcile(young_s=0)
    work_all()
    assert reconcile(repair=False, young_s=0).total == 0
    assert kit.reload(document).parse_status == "completed"


def test_a_worker_that_lost_its_hold_stores_nothing(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.ingestion import pipeline

    document = kit.upload("manual.md", MANUAL)
    real = pipeline.parse_file

    def parse_and_lose(*args: Any, **kwargs: Any) -> Any:
        parsed = real(*args, **kwargs)
        IngestionRun.objects.update(claim_token=uuid.uuid4())
        return parsed

    monkeypatch.setattr(pipeline, "parse_file", parse_and_lose)
    work_all(services.PARSE)
    with unscoped("tests look at every space"):
        assert Chunk.objects.count() == 0
        assert IngestionRun.objects.get().state == RunState.RUNNING
        assert Span.objects.filter(name="chunking").count() == 1
    assert kit.reload(document).parsed_path == ""
