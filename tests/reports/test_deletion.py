"""A deleted document is gone at once and stays gone, whatever was being done with it (public reports of deletion left incomplete)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.common.errors import TransientError
from apps.common.jobs.claims import release_dead
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import sweep
from apps.common.scope import unscoped
from apps.ingestion import embedding, pipeline
from apps.ingestion.models import IngestionRun
from apps.ingestion.reconcile import reconcile
from apps.knowledge.models import Document
from apps.retrieval.engine import engine, forget_engine
from tests.contract_checklist.conftest import World, data
from tests.support.kit import work_all

WORD = "ZQX-删除-42"
TEXT = f"# 记录\n\n只有这一篇提到 {WORD}。\n\n# Other\n\nIts pump is checked every year.\n".encode()


class Broken:
    """An embedder that nobody can reach."""

    model, dimension, space, at_once, concurrency = "broken", 4, "broken:4", 8, 1

    def passages(self, _texts: Any) -> Any:
        raise TransientError("the endpoint does not answer", code="embedding_unavailable")

    def query(self, text: str) -> Any:
        return self.passages([text])


def _upload(world: World) -> str:
    return str(data(world.member.upload(world.base, TEXT, "gone.md", fileName="f/gone.md"))["id"])


def _parsed(world: World) -> str:
    uid = _upload(world)
    work_all("parse")
    assert world.search(WORD, disable_vector_match=True), "it was found before"
    return uid


def _reparse_queued(world: World, _patch: pytest.MonkeyPatch) -> str:
    uid = _parsed(world)
    data(world.member.post(f"knowledge/{uid}/reparse"))
    return uid


def _vectors_failing(world: World, patch: pytest.MonkeyPatch) -> str:
    patch.setattr(embedding, "embedder", lambda _model: Broken())
    uid = _parsed(world)
    work_all("embed")
    with unscoped("test look"):
        assert IngestionRun.objects.get(document__uid=uid, kind="embed").state == "queued", "it failed, and will be tried again"
    return uid


def _both(world: World, patch: pytest.MonkeyPatch) -> str:
    uid = _vectors_failing(world, patch)
    data(world.member.post(f"knowledge/{uid}/reparse"))
    return uid


def _being_read(world: World, patch: pytest.MonkeyPatch) -> str:
    """Deleted while the worker holds it, after its passages were stored and before the index has their words."""
    uid = _upload(world)
    real, waiting = pipeline.index_documents, [uid]

    def index_documents(*args: Any, **options: Any) -> None:
        if waiting:
            assert world.member.delete(f"knowledge/{waiting.pop()}").status_code == 200
        real(*args, **options)

    patch.setattr(pipeline, "index_documents", index_documents)
    work_all("parse")
    assert not waiting
    return uid


def _idle(world: World, _patch: pytest.MonkeyPatch) -> str:
    uid = _upload(world)
    world.parse()
    return uid


MOMENTS: dict[str, Callable[[World, pytest.MonkeyPatch], str]] = {
    "idle": _idle,
    "reparse queued": _reparse_queued,
    "vectors failing": _vectors_failing,
    "reparse queued, vectors failing": _both,
    "being read": _being_read,
}


def nowhere(world: World, uid: str) -> None:
    """No door shows anything of it."""
    for mode in ({}, {"disable_vector_match": True}, {"disable_keywords_match": True}, {"knowledge_ids": [uid]}):
        assert WORD not in str(world.search(WORD, **mode)), mode
        assert WORD not in str(world.search(WORD, skip_context_enrichment=False, **mode))
    found = world.member.post("knowledge-search", {"query": WORD, "knowledge_base_ids": [str(world.base.uid)]})
    assert WORD not in str(data(found))
    listed = world.member.get(f"knowledge-bases/{world.base.uid}/knowledge").json()
    assert uid not in str(listed) and listed["total"] == 0
    assert data(world.member.get("knowledge/search?keyword=gone")) == [] and data(world.member.get(f"knowledge/batch?ids={uid}")) == []
    for path in ("", "/download", "/preview", "/stages", "/versions"):
        assert world.member.get(f"knowledge/{uid}{path}").status_code == 404, path
    assert world.member.get(f"chunks/{uid}").status_code == 404
    tree = data(world.member.get(f"knowledge-bases/{world.base.uid}/knowledge/folders"))
    assert (tree["total_document_count"], tree["folders"]) == (0, [])
    assert data(world.member.get(f"knowledge-bases/{world.base.uid}"))["knowledge_count"] == 0
    page = world.member.client.get(f"/s/{world.space.pk}/search", {"q": WORD})
    assert page.status_code == 200 and "gone.md" not in page.content.decode()


@pytest.mark.parametrize("keeps_trash", [True, False], ids=["with a trash", "without"])
@pytest.mark.parametrize("moment", list(MOMENTS))
def test_gone_at_once_and_for_good(world: World, settings: Any, monkeypatch: pytest.MonkeyPatch, moment: str, keeps_trash: bool) -> None:
    if not keeps_trash:
        settings.TRASH_DAYS = 0
    with monkeypatch.context() as patch:
        uid = MOMENTS[moment](world, patch)
        if moment != "being read":
            assert world.member.delete(f"knowledge/{uid}").status_code == 200
        nowhere(world, uid)
        work_all()
        nowhere(world, uid)
        _ten_minutes_later()
        forget_engine()  # the worker was started again
        sweep()
        work_all()
        nowhere(world, uid)
    with unscoped("test look"):
        assert Document.objects.filter(uid=uid).exists() == keeps_trash, "kept in the trash, or gone with its rows"
        assert not IngestionRun.objects.filter(document__uid=uid, state__in=("queued", "running")).exists()
    assert engine().revisions(world.space.pk) == {}
    assert reconcile(repair=False, young_s=0).total == 0
    again = _upload(world)
    world.parse()
    assert again != uid and world.document(again)["parse_status"] == "completed"
    assert {hit["knowledge_id"] for hit in world.search(WORD, disable_vector_match=True)} == {again}


def _ten_minutes_later() -> None:
    """Leases of whoever worked ran out, and what waits was rung for long ago."""
    past = timezone.now() - timedelta(minutes=10)
    with unscoped("the clock moves on"):
        for name, kind in job_kinds:
            kind.model.objects.filter(kind=name, state="running").update(lease_until=past)
            kind.model.objects.filter(kind=name, state="queued").update(rung_at=past, not_before=past)
            release_dead(kind)
