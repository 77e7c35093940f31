"""Bases that change their model, and vectors nobody wants any more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone, translation

from apps.common.errors import Conflict, InvalidInput
from apps.common.jobs.claims import claim_next
from apps.common.jobs.models import RunState
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.scope import space_scope, unscoped
from apps.ingestion.models import ReindexRun
from apps.ingestion.selectors import reindex_plan, stale_bases, vector_state
from apps.ingestion.services import reindex_cancel, reindex_start
from apps.ingestion.tasks import vectors_upkeep
from apps.knowledge.models import Chunk, KnowledgeBase
from apps.knowledge.services import chunk_update
from apps.llm.models import EndpointFact
from apps.retrieval.models import PassageVector, RetiredSpace
from tests.ingestion.vectors.kit import TEXT, find, hurry, model_of, reloaded, shifted, spaces, status, use
from tests.support.endpoint import DIMENSION, Endpoint
from tests.support.kit import Kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_reindex_serves_the_old_until_the_new_are_there(kit: Kit, endpoint: Endpoint, second: Endpoint) -> None:
    second.behave = shifted
    old, new = model_of(kit, endpoint), model_of(kit, second, name="longer")
    use(kit, old)
    documents = [kit.upload(f"manual{number}.md", f"{TEXT}\n\nNumber {number}.") for number in range(3)]
    work_all()
    with space_scope(kit.space.pk):
        base = KnowledgeBase.objects.get(pk=kit.base.pk)
        plan = reindex_plan(actor=kit.actor, base=base, model_id=new)
        passages = Chunk.objects.filter(kb=base).count()
        assert (plan.documents, plan.passages, plan.to_embed, plan.exact) == (3, passages, passages, True)
        run = reindex_start(actor=kit.actor, base=base, model_id=new)
        with pytest.raises(Conflict):
            reindex_start(actor=kit.actor, base=base, model_id=new)
    # the endpoint of the new model fails in the middle: the run waits with the reason, the old vectors serve
    second.behave = status(503)
    claim = claim_next(job_kinds.get("reindex"))
    assert claim is not None
    work(claim)
    run = reloaded(run)
    assert (run.state, run.reason) == (RunState.QUEUED, "embedding_overloaded")
    assert spaces(kit) == (old, "")
    assert find(kit, "the pump").legs["vector"]["status"] == "ok"
    # a document that comes meanwhile is found by meaning at once, and after the change as well
    late = kit.upload("late.md", "# Late\n\nA late document about motors.")
    work_all("parse", "embed", "embed_remote")
    assert kit.reload(late).vector_count == 1
    second.behave = shifted
    hurry()
    work_all("reindex")
    run = reloaded(run)
    assert (run.state, run.reason, run.switched_at is not None) == (RunState.DONE, "", True)
    assert spaces(kit) == (new, "")
    found = find(kit, "late motors")
    assert found.legs["vector"]["space"].endswith(f":{DIMENSION + 1}")
    by_meaning = {hit.document.pk for hit in found.hits if hit.vector_leg}
    assert by_meaning == {document.pk for document in (*documents, late)}
    with space_scope(kit.space.pk):
        assert KnowledgeBase.objects.get(pk=kit.base.pk).embedding_model_id == new
    assert [kit.reload(document).vector_count for document in documents] == [kit.reload(document).chunk_count for document in documents]


def test_a_reindex_that_is_stopped_changes_nothing(kit: Kit, endpoint: Endpoint, second: Endpoint) -> None:
    second.behave = shifted
    old, new = model_of(kit, endpoint), model_of(kit, second, name="longer")
    use(kit, old)
    kit.upload("manual.md", TEXT)
    work_all()
    with space_scope(kit.space.pk):
        base = KnowledgeBase.objects.get(pk=kit.base.pk)
        run = reindex_start(actor=kit.actor, base=base, model_id=new)
        assert reindex_cancel(actor=kit.actor, base=base) is True
        assert reindex_cancel(actor=kit.actor, base=base) is False
    work_all("reindex")
    assert reloaded(run).state == RunState.CANCELLED
    assert spaces(kit) == (old, "")
    with space_scope(kit.space.pk):
        assert KnowledgeBase.objects.get(pk=kit.base.pk).embedding_model_id == old
    assert find(kit, "pump").legs["vector"]["status"] == "ok"


def test_a_reindex_whose_worker_was_killed_goes_on_where_it_stopped(
    kit: Kit, endpoint: Endpoint, second: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.ingestion import reindexing

    class Killed(BaseException):
        pass

    second.behave = shifted
    new = model_of(kit, second, name="longer", batch_size=1, concurrency=1)
    use(kit, model_of(kit, endpoint))
    for number in range(4):
        kit.upload(f"manual{number}.md", f"# Number {number}\n\nOne passage, number {number}.")
    work_all()
    with space_scope(kit.space.pk):
        run = reindex_start(actor=kit.actor, base=KnowledgeBase.objects.get(pk=kit.base.pk), model_id=new)
    taken: list[int] = []

    def killed(run: Any, documents: Any) -> None:
        taken.append(len(documents))
        raise Killed

    monkeypatch.setattr(reindexing, "DOCUMENTS", 2)
    real = reindexing._index
    monkeypatch.setattr(reindexing, "_index", killed)
    claim = claim_next(job_kinds.get("reindex"))
    assert claim is not None
    with pytest.raises(Killed):
        work(claim)
    made = sum(len(asked["input"]) for asked in second.requests)
    # between the switch and the end both spaces are asked, so nothing is missing
    assert spaces(kit)[1].endswith(f":{DIMENSION}")
    found = find(kit, "number passage")
    assert {hit.document.file_name for hit in found.hits if hit.vector_leg} == {f"manual{number}.md" for number in range(4)}
    with space_scope(kit.space.pk), pytest.raises(Conflict):
        reindex_cancel(actor=kit.actor, base=KnowledgeBase.objects.get(pk=kit.base.pk))
    monkeypatch.setattr(reindexing, "_index", real)
    with unscoped("tests look at every space"):
        ReindexRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    asked = len(second.requests)
    work_all("reindex")
    assert reloaded(run).state == RunState.DONE
    assert len(second.requests) == asked and made >= 4, "nothing was embedded twice"
    assert spaces(kit) == (new, "")
    found = find(kit, "number passage")
    assert {hit.document.file_name for hit in found.hits if hit.vector_leg} == {f"manual{number}.md" for number in range(4)}


def test_edits_during_a_reindex_are_in_the_new_vectors(
    kit: Kit, endpoint: Endpoint, second: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.ingestion import reindexing

    second.behave = shifted
    new = model_of(kit, second, name="longer")
    use(kit, model_of(kit, endpoint))
    document = kit.upload("manual.md", "# One\n\nThe first text.")
    work_all()
    with space_scope(kit.space.pk):
        reindex_start(actor=kit.actor, base=KnowledgeBase.objects.get(pk=kit.base.pk), model_id=new)
    real, once = reindexing._switch, []

    def switch(*args: Any) -> None:
        if not once:
            once.append(True)
            chunk = Chunk.objects.get(document=document)
            chunk_update(actor=kit.actor, chunk=chunk, values={"content": "The second text, edited late.", "expected_version": 0})
        real(*args)

    monkeypatch.setattr(reindexing, "_switch", switch)
    work_all("reindex")
    work_all()
    found = find(kit, "edited late")
    assert found.hits[0].vector_leg is not None
    assert kit.reload(document).vector_count == 1


def test_a_changed_default_is_noticed_and_reindexed(kit: Kit, endpoint: Endpoint, second: Endpoint, settings: Any) -> None:
    settings.EMBEDDER = "openai"
    settings.EMBEDDING_ENDPOINT = {"base_url": endpoint.url, "api_key": "", "model": "letters", "dimension": 0}
    kit.upload("manual.md", TEXT)
    work_all()
    assert EndpointFact.objects.get().dimension == DIMENSION
    assert spaces(kit) == ("openai", "")
    second.behave = shifted
    settings.EMBEDDING_ENDPOINT = {"base_url": second.url, "api_key": "", "model": "longer", "dimension": DIMENSION + 1}
    with translation.override("en"):
        found = find(kit, "pump")
    assert (found.legs["vector"]["status"], found.legs["vector"]["code"]) == ("unavailable", "vectors_stale")
    assert found.hits and "re-index" in found.legs["vector"]["reason"]
    with space_scope(kit.space.pk):
        base = KnowledgeBase.objects.get(pk=kit.base.pk)
        assert [each.pk for each in stale_bases(actor=kit.actor)] == [base.pk]
        assert vector_state(actor=kit.actor, base=base).stale is True
    late = kit.upload("late.md", "# Late\n\nLate words.")
    work_all()
    assert (kit.reload(late).parse_status, kit.reload(late).vector_count) == ("completed", 0)
    from django.core.management import call_command

    call_command("reindex_vectors", "--all")
    work_all()
    with space_scope(kit.space.pk):
        assert stale_bases(actor=kit.actor) == []
    found = find(kit, "late words")
    assert {hit.document.file_name for hit in found.hits if hit.vector_leg} == {"manual.md", "late.md"}


def test_meaning_switched_on_later_makes_the_vectors(kit: Kit, endpoint: Endpoint) -> None:
    from apps.knowledge.services import base_update

    use(kit, model_of(kit, endpoint))
    with space_scope(kit.space.pk):
        KnowledgeBase.objects.filter(pk=kit.base.pk).update(indexing_strategy={"keyword_enabled": True, "vector_enabled": False})
    document = kit.upload("manual.md", TEXT)
    work_all()
    assert (kit.reload(document).parse_status, kit.reload(document).vector_count) == ("completed", 0)
    with space_scope(kit.space.pk):
        base = KnowledgeBase.objects.get(pk=kit.base.pk)
        base_update(
            actor=kit.actor, base=base, name="Base", config={"indexing_strategy": {"keyword_enabled": True, "vector_enabled": True}}
        )
    work_all()
    assert kit.reload(document).vector_count == kit.reload(document).chunk_count
    assert find(kit, "pump").hits[0].vector_leg is not None


def test_vectors_nobody_uses_are_forgotten_after_a_while(kit: Kit, endpoint: Endpoint, second: Endpoint) -> None:
    second.behave = shifted
    old, new = model_of(kit, endpoint), model_of(kit, second, name="longer")
    use(kit, old)
    kit.upload("manual.md", TEXT)
    work_all()
    with space_scope(kit.space.pk):
        reindex_start(actor=kit.actor, base=KnowledgeBase.objects.get(pk=kit.base.pk), model_id=new)
    work_all()
    assert vectors_upkeep()["forgotten"] == 0, "just retired: changing back is quick"
    long_ago = timezone.now() - timedelta(days=30)
    with space_scope(kit.space.pk):
        passages = Chunk.objects.count()
        PassageVector.objects.update(created_at=long_ago)
        assert vectors_upkeep()["forgotten"] == 0
        RetiredSpace.objects.update(retired_at=long_ago)
        assert vectors_upkeep()["forgotten"] == passages
        assert PassageVector.objects.count() == passages
    assert find(kit, "pump").hits[0].vector_leg is not None


def test_a_model_that_is_not_there_cannot_be_chosen(kit: Kit) -> None:
    with space_scope(kit.space.pk):
        base = KnowledgeBase.objects.get(pk=kit.base.pk)
        for wrong in ("nonsense", "3f0e4f0e-0000-4000-8000-000000000000", ""):
            with pytest.raises(InvalidInput) as refused:
                reindex_start(actor=kit.actor, base=base, model_id=wrong)
            assert refused.value.field == "embedding_model_id"
