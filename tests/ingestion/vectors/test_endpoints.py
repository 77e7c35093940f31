"""Endpoints that misbehave, and what a question gets meanwhile."""

from __future__ import annotations

from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.utils import timezone, translation

from apps.common.jobs.claims import claim_next
from apps.common.jobs.models import RunState
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.scope import space_scope
from apps.ingestion.selectors import live_runs
from apps.ingestion.tasks import vectors_upkeep
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.reasons import reason_of
from apps.llm.models import Model
from apps.retrieval.search import Options, Scope, search
from tests.ingestion.vectors.kit import TEXT, asked_once, find, hurry, make_base, model_of, run_of, status, use
from tests.support.endpoint import DIMENSION, Endpoint, answer
from tests.support.kit import Kit, make_kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)


def drip(body: Any, handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.server.released.wait(0.05)  # type: ignore[attr-defined]
    except OSError:
        pass


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
