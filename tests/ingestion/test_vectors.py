"""Endpoints that misbehave, bases that change their model, vectors nobody wants any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.utils import timezone, translation

from apps.common.errors import Conflict, InvalidInput
from apps.common.jobs.claims import claim_next
from apps.common.jobs.models import RunState
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.scope import space_scope, unscoped
from apps.ingestion.models import IngestionRun, ReindexRun
from apps.ingestion.selectors import live_runs, reindex_plan, stale_bases, vector_state
from apps.ingestion.services import reindex_cancel, reindex_start
from apps.ingestion.tasks import vectors_upkeep
from apps.knowledge.models import Chunk, Document, KnowledgeBase
from apps.knowledge.reasons import reason_of
from apps.knowledge.services import chunk_update
from apps.llm.models import EndpointFact, Model
from apps.llm.services import embedders, model_create, model_test
from apps.retrieval.engine import forget_engine
from apps.retrieval.models import BaseIndex, PassageVector, RetiredSpace
from apps.retrieval.search import Options, Results, Scope, search
from tests.support.endpoint import DIMENSION, Endpoint, answer, serving
from tests.support.kit import Kit, make_kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "# Pump\n\nThe pump is primed before use.\n\n# Valve\n\nThe valve closes at 4 bar. Code ERR-4021.\n"


@pytest.fixture(autouse=True)
def _own_index(settings: Any, tmp_path: Any) -> Iterator[None]:
    (tmp_path / "index").mkdir()
    (tmp_path / "run").mkdir()
    settings.DATA_DIR = tmp_path
    settings.STORAGES = {**settings.STORAGES, "default": {**settings.STORAGES["default"], "OPTIONS": {"location": tmp_path / "files"}}}
    settings.MODEL_ALLOW = ["127.0.0.0/8"]
    settings.EMBEDDER = "none"  # what is not told otherwise goes without vectors, and no test waits for the packaged model
    forget_engine()
    embedders._made.clear()
    yield
    forget_engine()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


@pytest.fixture
def second() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


@pytest.fixture
def kit() -> Kit:
    return make_kit()


def model_of(kit: Kit, endpoint: Endpoint, **values: Any) -> str:
    """The id of a model of the space at this endpoint."""
    with space_scope(kit.space.pk):
        given = {"name": "letters", "base_url": endpoint.url, "read_timeout_s": 5.0, **values}
        return str(model_create(actor=kit.actor, values=given).uid)


def asked_once(kit: Kit, endpoint: Endpoint, *, hangs: bool) -> str:
    """The id of a model whose endpoint has answered before; `hangs`: from now on it has little time."""
    model_id = model_of(kit, endpoint)
    with space_scope(kit.space.pk):
        assert model_test(actor=kit.actor, model=Model.objects.get(uid=model_id)).ok
        if hangs:
            Model.objects.filter(uid=model_id).update(read_timeout_s=0.4)
    return model_id


def use(kit: Kit, model_id: str) -> None:
    with space_scope(kit.space.pk):
        KnowledgeBase.objects.filter(pk=kit.base.pk).update(embedding_model_id=model_id)


def hurry() -> None:
    """Waiting is over: what was to be tried later may be tried now, and no endpoint rests."""
    embedders._made.clear()
    embedders._ask_breakers.clear()
    with unscoped("tests look at every space"):
        for model in (IngestionRun, ReindexRun):
            model.objects.filter(state=RunState.QUEUED).update(not_before=None)


def find(kit: Kit, query: str, **options: Any) -> Results:
    with space_scope(kit.space.pk):
        return search(actor=kit.actor, query=query, scope=Scope(kb_uids=(kit.base.uid,)), options=Options(**options))


def run_of(document: Document) -> IngestionRun:
    with unscoped("tests look at every space"):
        return IngestionRun.objects.filter(document=document, kind="embed_remote").latest("pk")


def drip(body: Any, handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.server.released.wait(0.05)  # type: ignore[attr-defined]
    except OSError:
        pass


def status(code: int, **headers: str) -> Callable[..., None]:
    return lambda body, handler: answer(handler, code, {"error": {"message": "no"}}, {k.replace("_", "-"): v for k, v in headers.items()})


MISBEHAVIOURS: dict[str, tuple[Any, str, bool]] = {
    # what it does -> (script, reason, whether a retry may help)
    "never answers": (lambda body, handler: handler.server.released.wait(5) and None, "embedding_timeout", True),
    "drips": (drip, "embedding_timeout", True),
    "429 with Retry-After": (status(429, retry_after="60"), "embedding_rate_limited", True),
    "fewer vectors": (lambda body, handler: {**body, "data": body["data"][:-1]}, "embedding_count", True),
    "5xx": (status(503), "embedding_overloaded", True),
    "not JSON": (lambda body, handler: answer(handler, 200, b"<html>hello</html>"), "embedding_bad_answer", True),
    "wrong size": (
        lambda body, handler: {**body, "data": [{**row, "embedding": row["embedding"][:5]} for row in body["data"]]},
        "embedding_dimension",
        False,
    ),
    "401": (status(401), "embedding_unauthorised", False),
    "404 model": (status(404), "embedding_model_unknown", False),
}


@pytest.mark.parametrize("what", list(MISBEHAVIOURS))
def test_each_failure_of_an_endpoint_ends_with_its_own_reason(kit: Kit, endpoint: Endpoint, settings: Any, what: str) -> None:
    behave, reason, retried = MISBEHAVIOURS[what]
    endpoint.server.released = endpoint.released  # type: ignore[attr-defined]
    model_id = asked_once(kit, endpoint, hangs=reason == "embedding_timeout")
    use(kit, model_id)
    endpoint.behave = behave
    document = kit.upload("manual.md", TEXT)
    work_all()
    if retried:
        run = run_of(document)
        assert (run.state, run.reason, run.attempt) == (RunState.QUEUED, reason, 0)
        assert run.not_before is not None and run.not_before > timezone.now()
        document = kit.reload(document)
        assert (document.parse_status, document.enabled) == ("finalizing", True)
        with space_scope(kit.space.pk):
            assert live_runs(actor=kit.actor, documents=[document])[document.pk]["reason"] == reason
        settings.EMBED_PATIENCE_S = 0  # the deadline has come
        hurry()
        work_all()
    document = kit.reload(document)
    assert (document.parse_status, document.reason, document.vector_count) == ("completed", reason, 0)
    assert find(kit, "ERR-4021").hits[0].document.pk == document.pk
    for language in ("en", "zh-hans"):
        with translation.override(language):
            words = reason_of(reason)
            assert all(str(text) for text in (words.word, words.title, words.why, words.next))
    assert str(reason_of(reason).title) != str(reason_of("internal").title)
    # the endpoint comes back: the document gets its vectors without anybody asking
    endpoint.behave = None
    hurry()
    assert vectors_upkeep()["tried_again"] == 1
    work_all()
    document = kit.reload(document)
    assert (document.parse_status, document.reason, document.vector_count) == ("completed", "", document.chunk_count)


def test_nobody_listens(kit: Kit, endpoint: Endpoint, settings: Any) -> None:
    model_id = model_of(kit, endpoint)
    use(kit, model_id)
    endpoint.close()
    document = kit.upload("manual.md", TEXT)
    work_all()
    assert (run_of(document).state, run_of(document).reason) == (RunState.QUEUED, "embedding_unreachable")
    settings.EMBED_PATIENCE_S = 0
    hurry()
    work_all()
    assert kit.reload(document).reason == "embedding_unreachable"


def test_a_pause_asked_for_is_kept_and_then_it_goes_on(kit: Kit, endpoint: Endpoint) -> None:
    model_id = model_of(kit, endpoint)
    use(kit, model_id)
    endpoint.behave = status(429, retry_after="60")
    document = kit.upload("manual.md", TEXT)
    before = timezone.now()
    work_all()
    wait = run_of(document).not_before - before
    assert timedelta(seconds=55) < wait < timedelta(seconds=75)
    endpoint.behave = None
    hurry()
    work_all()
    document = kit.reload(document)
    assert (document.parse_status, document.reason, document.vector_count) == ("completed", "", document.chunk_count)


def test_a_refused_text_is_left_out_alone(kit: Kit, endpoint: Endpoint) -> None:
    def picky(body: Any, handler: BaseHTTPRequestHandler) -> Any:
        if any("Valve" in text for text in endpoint.requests[-1]["input"]):
            answer(handler, 400, {"error": {"message": "too long"}})
            return None
        return body

    use(kit, model_of(kit, endpoint))
    endpoint.behave = picky
    with space_scope(kit.space.pk):
        KnowledgeBase.objects.filter(pk=kit.base.pk).update(chunking_config={"chunk_size": 60, "chunk_overlap": 0, "strategy": "heading"})
    document = kit.upload("manual.md", TEXT)
    work_all()
    document = kit.reload(document)
    assert document.chunk_count == 2
    assert (document.parse_status, document.reason, document.vector_count) == ("completed", "embedding_refused", 1)


def test_a_dead_endpoint_holds_up_nobody_else(kit: Kit, endpoint: Endpoint, second: Endpoint) -> None:
    endpoint.server.released = endpoint.released  # type: ignore[attr-defined]
    dead, alive = asked_once(kit, endpoint, hangs=True), model_of(kit, second, name="others")
    use(kit, dead)
    endpoint.behave = lambda body, handler: endpoint.released.wait(5) and None
    asked = len(endpoint.requests)
    for number in range(6):
        kit.upload(f"dead{number}.md", f"{TEXT}\n{number}")
    other = make_kit("Other", indexing_strategy={"keyword_enabled": True})
    words = other.upload("words.md", TEXT)
    use(kit, alive)
    live = kit.upload("alive.md", "# Alive\n\nIt goes on.")
    use(kit, dead)
    work_all("parse", "embed")
    assert kit.reload(words).parse_status == "completed"
    for _round in range(6):
        claim = claim_next(job_kinds.get("embed_remote"))
        assert claim is not None
        work(claim)
    assert len(endpoint.requests) - asked == 1, "one call found out; the others did not wait for their own time-out"
    use(kit, alive)
    work_all()
    assert kit.reload(live).vector_count == 1


# -- the query side ---------------------------------------------------------------------------------------------------------------


def test_a_question_degrades_to_words_at_once_and_says_so(kit: Kit, endpoint: Endpoint) -> None:
    endpoint.server.released = endpoint.released  # type: ignore[attr-defined]
    model_id = model_of(kit, endpoint)
    use(kit, model_id)
    kit.upload("manual.md", TEXT)
    work_all()
    found = find(kit, "how is the pump primed")
    assert {name: leg["status"] for name, leg in found.legs.items()} == {"text": "ok", "vector": "ok"}
    assert found.hits[0].vector_leg is not None
    endpoint.behave = lambda body, handler: endpoint.released.wait(5) and None
    with space_scope(kit.space.pk):
        Model.objects.filter(uid=model_id).update(read_timeout_s=1.0)
    with translation.override("en"):
        slow, quick = find(kit, "pump"), find(kit, "pump")
    for answered in (slow, quick):
        assert answered.hits[0].text_leg is not None and answered.hits[0].vector_leg is None
        assert answered.legs["vector"] == {
            "status": "unavailable",
            "hits": 0,
            "space": "",
            "code": "embedding_timeout",
            "reason": "The embedding model did not answer in time",
        }
    assert quick.took_ms < 900 < slow.took_ms, "the second question does not wait for the endpoint"


def test_a_vector_of_another_size_never_reaches_the_index(kit: Kit, endpoint: Endpoint) -> None:
    use(kit, model_of(kit, endpoint))
    kit.upload("manual.md", TEXT)
    work_all()
    endpoint.behave = MISBEHAVIOURS["wrong size"][0]
    found = find(kit, "pump")
    assert (found.legs["vector"]["status"], found.legs["vector"]["code"]) == ("unavailable", "embedding_dimension")
    assert found.hits[0].vector_leg is None


def test_bases_of_two_models_are_searched_together(kit: Kit, endpoint: Endpoint, second: Endpoint) -> None:
    use(kit, model_of(kit, endpoint))
    kit.upload("manual.md", TEXT)
    other = Kit(kit.space, kit.actor, make_base(kit, model_of(kit, second, name="others")))
    other.upload("other.md", "# Motor\n\nThe motor turns left.")
    work_all()
    with space_scope(kit.space.pk):
        found = search(actor=kit.actor, query="motor pump", scope=Scope(), options=Options(limit=10))
    assert found.legs["vector"]["status"] == "ok"
    assert found.legs["vector"]["space"].count(f":{DIMENSION}") == 2
    assert {hit.document.file_name for hit in found.hits if hit.vector_leg} == {"manual.md", "other.md"}
    second.close()
    hurry()
    with space_scope(kit.space.pk):
        found = search(actor=kit.actor, query="motor pump", scope=Scope(), options=Options(limit=10))
    assert (found.legs["vector"]["status"], found.legs["vector"]["code"]) == ("partial", "embedding_unreachable")
    assert {hit.document.file_name for hit in found.hits} == {"manual.md", "other.md"}


def make_base(kit: Kit, model_id: str) -> KnowledgeBase:
    from apps.knowledge.services import base_create

    with space_scope(kit.space.pk):
        return base_create(actor=kit.actor, values={"name": "Second", "embedding_model_id": model_id})


# -- re-index ---------------------------------------------------------------------------------------------------------------------


def spaces(kit: Kit) -> tuple[str, str]:
    with space_scope(kit.space.pk):
        row = BaseIndex.objects.get(kb=kit.base)
        return row.model_id, row.previous_space


def shifted(body: Any, handler: BaseHTTPRequestHandler) -> Any:
    """Another model: its vectors are longer."""
    rows = [{**row, "embedding": [1.0, *row["embedding"]]} for row in body["data"]]
    return {**body, "data": rows}


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


def reloaded(run: ReindexRun) -> ReindexRun:
    with unscoped("tests look at every space"):
        return ReindexRun.objects.get(pk=run.pk)


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
