"""The retrieval log: one row per search at each door, true about legs that failed, never in the way of an answer."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from apps.accounts.tokens import issue_pair
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound, TransientError, Unavailable
from apps.common.scope import space_scope, unscoped
from apps.retrieval.asking import search_asked
from apps.retrieval.engine import forget_engine
from apps.retrieval.journal import LOGGED_HITS, Journal, journal
from apps.retrieval.models import RetrievalLog
from apps.retrieval.search import Options, Scope
from apps.retrieval.tasks import trim_log
from apps.spaces.services.space import space_delete
from tests.inventory.source import imports, modules
from tests.support.library import Library
from tests.support.world import ApiClient

DOOR = RetrievalLog.Door


@pytest.fixture
def library(db: None, settings: Any, tmp_path: Path) -> Iterator[Library]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    settings.STORAGES = {**settings.STORAGES, "default": {**settings.STORAGES["default"], "OPTIONS": {"location": tmp_path / "files"}}}
    forget_engine()
    journal.forget()
    yield Library.make()
    journal.forget()
    forget_engine()


def rows() -> list[RetrievalLog]:
    """What is in the table once what waits is stored."""
    journal.flush()
    with unscoped("test"):
        return list(RetrievalLog.objects.order_by("pk"))


def api(library: Library) -> ApiClient:
    from apps.accounts.models import User

    access, _refresh = issue_pair(User.objects.get(username="ada"), tenant_id=library.space.pk)
    return ApiClient({"Authorization": f"Bearer {access}", "X-Request-ID": "req-1"})


def ask(library: Library, query: str = "pump", **options: Any) -> Any:
    with space_scope(library.space.pk):
        return search_asked(
            actor=library.actor, door=DOOR.PAGE, query=query, scope=Scope(kb_uids=(library.base.uid,)), options=Options(**options)
        )


def test_every_door_leaves_one_row_that_says_what_was_found(library: Library) -> None:
    document = library.add("pump.txt", "The pump is replaced every five years.", vectors=True)
    base, space = library.base.uid, library.space.pk
    client = api(library)
    found = client.post(f"/api/v1/knowledge-bases/{base}/hybrid-search", {"query_text": "pump", "match_count": 3})
    assert (found.status_code, len(found.json()["data"])) == (200, 1)
    client.post("/api/v1/knowledge-search", {"query": "pump", "knowledge_base_ids": [str(base)]})
    library.page(f"/s/{space}/search", q="pump")
    library.client.get(f"/s/{space}/search", {"q": "pum"}, headers={"HX-Target": "palette-results", "HX-Request": "true"})
    library.page(f"/s/{space}/bases/{base}/test", q="pump")
    found_rows = rows()
    assert [row.door for row in found_rows] == ["rest-base", "rest-space", "page", "palette", "test"]
    first = found_rows[0]
    user = library.actor.user_id
    assert (first.actor, first.actor_user_id, first.key_id, first.request_id) == (f"user:{user}", user, None, "req-1")
    assert (first.space_id, first.query_text, first.query_chars, first.mode, first.bases) == (space, "pump", 4, "hybrid", 1)
    assert first.kb_uids == [str(base)]
    assert (first.outcome, first.hits_count, first.error, first.failed_leg) == ("hit", 1, "", "")
    chunk = library.chunks(document)[0]
    hit = first.hits[0]
    assert (hit["document"], hit["chunk"], hit["text_rank"], hit["vector_rank"]) == (str(document.uid), str(chunk.uid), 1, 1)
    assert hit["reason"] in ("exact", "both")
    assert first.options == {"limit": 3}
    assert first.legs["text"] == {"status": "ok", "hits": 1} and first.legs["vector"] == {"status": "ok", "hits": 1}
    assert 0 < first.legs["ms"]["engine"] <= first.took_ms and first.legs["ms"]["embed"] > 0
    assert (found_rows[3].mode, found_rows[3].query_text, found_rows[3].kb_uids) == ("text", "pum", [])
    assert "replaced every five years" not in repr([vars(row) for row in found_rows]), "no text of a passage"
    assert (first.decision, first.rule, first.explicit_refs, first.budget_chars, first.injected_chars) == ("", "", None, None, None)


def test_nothing_found_is_a_miss_and_meaning_alone_is_said(library: Library) -> None:
    ask(library)
    library.add("pump.txt", "The pump is replaced every five years.", vectors=True)
    ask(library, "完全无关的问题")
    ask(library, "zzzz", mode="text")
    assert [(row.outcome, row.hits_count) for row in rows()] == [("miss", 0), ("near", 1), ("miss", 0)]
    assert rows()[1].hits[0]["reason"] == "meaning"


def test_a_leg_that_cannot_answer_is_named_and_the_search_goes_on(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.add("pump.txt", "The pump is replaced every five years.")

    def down(_model: str, **_more: Any) -> Any:
        raise Unavailable("the endpoint refused the key", code="embedding_unauthorised")

    monkeypatch.setattr("apps.retrieval.legs.embedder", down)
    assert len(ask(library).hits) == 1
    row = rows()[0]
    assert (row.outcome, row.failed_leg, row.hits_count, row.error) == ("hit", "vector", 1, "")
    assert (row.legs["vector"]["status"], row.legs["vector"]["code"]) == ("unavailable", "embedding_unauthorised")


def test_an_index_that_fails_is_an_error_in_the_log(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_query: Any) -> Any:
        raise TransientError("disk I/O error")

    monkeypatch.setattr("apps.retrieval.legs.engine", lambda: SimpleNamespace(search=broken))
    assert ask(library, mode="text").hits == []
    row = rows()[0]
    assert (row.outcome, row.failed_leg, row.error, row.hits_count) == ("error", "text", "TransientError", 0)


def test_a_search_that_raises_is_logged_and_still_raises(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(**_arguments: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("apps.retrieval.asking.search", wrong)
    with pytest.raises(ZeroDivisionError):
        ask(library)
    row = rows()[0]
    assert (row.outcome, row.error, row.query_text) == ("error", "internal", "pump")


def test_what_was_no_search_leaves_no_row(library: Library) -> None:
    with pytest.raises(InvalidInput):
        ask(library, "   ")
    with pytest.raises(NotFound), space_scope(library.space.pk):
        search_asked(actor=library.actor, door=DOOR.PAGE, query="x", scope=Scope(kb_uids=(uuid.uuid4(),)))
    assert rows() == []


def test_a_key_is_named_by_its_number(library: Library) -> None:
    actor = Actor(kind="key", space_id=library.space.pk, role=library.actor.role, key_id=77)
    with space_scope(library.space.pk):
        search_asked(actor=actor, door=DOOR.REST_BASE, query="pump", scope=Scope())
    assert [(row.actor, row.actor_user_id, row.key_id) for row in rows()] == [("key:77", None, 77)]


def test_only_the_first_hits_are_kept_and_all_are_counted(library: Library) -> None:
    text = "\n\n".join(f"# Part {number}\n\n" + f"The pump {number} is replaced. " * 40 for number in range(LOGGED_HITS + 5))
    library.add("pumps.md", text)
    found = ask(library, mode="text", limit=100)
    assert len(found.hits) > LOGGED_HITS
    row = rows()[0]
    assert (len(row.hits), row.hits_count) == (LOGGED_HITS, len(found.hits))


def row_of(space_id: int, **values: Any) -> RetrievalLog:
    return RetrievalLog(
        **{
            "space_id": space_id,
            "created_at": timezone.now(),
            "door": "page",
            "actor": "user:x",
            "mode": "text",
            "outcome": "hit",
            **values,
        }
    )


def test_a_database_that_refuses_costs_no_search_and_the_rows_wait(library: Library, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise DatabaseError("database is locked")

    monkeypatch.setattr("apps.retrieval.journal._store", refuse)
    monkeypatch.setattr("apps.retrieval.journal.connection.close", lambda: None)
    ask(library)
    with caplog.at_level(logging.WARNING):
        journal.store()
    assert "could not be stored and wait" in caplog.text
    monkeypatch.undo()
    assert [row.query_text for row in rows()] == ["pump"]


def test_rows_of_a_space_that_is_gone_for_good_do_not_hold_up_the_others(library: Library) -> None:
    journal.add(row_of(2**40))
    journal.add(row_of(library.space.pk, query_text="kept"))
    assert [row.query_text for row in rows()] == ["kept"]


def test_the_thread_stores_what_waits_by_itself(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, done = [], threading.Event()

    def keep(batch: list[RetrievalLog]) -> int:
        stored.extend(batch)
        done.set()
        return len(batch)

    settings.RETRIEVAL_LOG_FLUSH_S = 0.01
    monkeypatch.setattr("apps.retrieval.journal._store", keep)
    own = Journal()
    row = row_of(1)
    own.add(row)
    assert done.wait(5) and stored == [row]


def test_adding_costs_next_to_nothing(library: Library) -> None:
    library.add("pump.txt", "The pump is replaced every five years.")
    found = ask(library)
    from apps.retrieval.journal import row_of as make

    times = []
    for _again in range(300):
        started = time.perf_counter()
        journal.add(make(library.actor, DOOR.PAGE, "pump", Scope(), Options(), found, ""))
        times.append(time.perf_counter() - started)
    assert sorted(times)[150] < 0.001, "p50 of what a search waits for"


def test_rows_are_kept_as_long_as_the_setting_says(library: Library, settings: Any) -> None:
    now, space = timezone.now(), library.space.pk
    with unscoped("test"):
        RetrievalLog.objects.bulk_create(
            [row_of(space, created_at=now - timedelta(days=days), query_text=str(days)) for days in (0, 29, 31, 400)]
        )
    settings.RETRIEVAL_LOG_DAYS = 30
    assert trim_log() == 2
    assert [row.query_text for row in rows()] == ["0", "29"]
    assert trim_log() == 0
    settings.RETRIEVAL_LOG_DAYS = 0
    ask(library)
    assert rows()[2:] == [], "nothing is logged"
    assert trim_log() == 2
    assert rows() == []


def test_questions_go_with_their_space_and_figures_stay(library: Library) -> None:
    ask(library)
    journal.flush()
    with space_scope(library.space.pk):
        space_delete(actor=library.actor, space=library.space)
    row = rows()[0]
    assert (row.query_text, row.query_chars, row.outcome) == ("", 4, "miss")
    with unscoped("test"):
        row_of(library.space.pk, query_text="late").save()
    trim_log()
    assert [row.query_text for row in rows()] == ["", ""]


def test_doors_ask_by_the_function_that_logs() -> None:
    """`search` itself is for what no person asked: why something is not found, finding a document by a piece of its text."""
    bare = {
        "apps/portal/finding/test_page.py": "finds the document that a pasted text comes from; the question itself is logged by the page",
    }
    doors = [path for path in modules("apps") if "/api/" in path or path.startswith("apps/portal/")]
    found = {path for path in doors for module, name in imports(path) if name == "search" and module.startswith("apps.retrieval")}
    assert found == set(bare)
