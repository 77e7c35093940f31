"""Why something is not among the hits, proved by documents that miss for exactly one reason each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.common.scope import space_scope
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import chunk_update, document_cancel
from apps.retrieval.engine import engine, forget_engine
from apps.retrieval.search import Options, Scope, search
from apps.retrieval.services import index_documents
from apps.retrieval.whynot import REASONS, WhyNot, missing_words, why_not
from tests.support.filestore import use_fresh_store
from tests.support.kit import Kit, make_kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = Options(limit=3, mode="text")


@pytest.fixture
def kit(settings: Any, tmp_path: Path) -> Iterator[Kit]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    use_fresh_store(settings, tmp_path)
    forget_engine()
    yield make_kit()
    forget_engine()


def add(kit: Kit, name: str, text: str, **arrival: Any) -> Document:
    document = kit.upload(name, text, **arrival)
    work_all("parse")
    return kit.reload(document)


def ask(kit: Kit, query: str, *, options: Options = WORDS, scope: Scope | None = None, **target: Any) -> WhyNot:
    with space_scope(kit.space.pk):
        result = why_not(actor=kit.actor, query=query, scope=scope or Scope(kb_uids=(kit.base.uid,)), options=options, **target)
    assert {cause.code for cause in result.causes} <= set(REASONS)
    return result


def codes(result: WhyNot) -> list[str]:
    return [cause.code for cause in result.causes]


def test_what_is_found_is_said_to_be_found_at_its_rank(kit: Kit) -> None:
    add(kit, "a.txt", "ERR-4021 overheating and more words about heat")
    second = add(kit, "b.txt", "the heat, once")
    result = ask(kit, "ERR-4021 heat", document=second)
    assert result.is_found and result.causes[0].facts == {"rank": 2}
    with space_scope(kit.space.pk):
        hits = search(actor=kit.actor, query="ERR-4021 heat", scope=Scope(kb_uids=(kit.base.uid,)), options=WORDS).hits
    assert [hit.document.pk for hit in hits].index(second.pk) + 1 == result.rank == 2
    assert result.missing == ("ERR-4021",) and [term.text for term in result.matched] == ["heat"]


def test_beyond_the_number_asked_for(kit: Kit) -> None:
    for number in range(4):
        add(kit, f"{number}.txt", f"heat heat heat number {number}")
    last = add(kit, "long.txt", "heat " + "and other things that say nothing of it " * 8)
    result = ask(kit, "heat", document=last)
    assert codes(result) == ["rank"] and result.causes[0].facts == {"rank": 5, "limit": 3}
    assert result.score is not None and result.last_score is not None and result.score <= result.last_score


def test_below_the_threshold(kit: Kit) -> None:
    document = add(kit, "a.txt", "heat and cold, a long story of both, neither of them told in full " * 3)
    result = ask(kit, "cold winter nights", options=Options(limit=3, mode="text", keyword_threshold=900.0), document=document)
    assert codes(result) == ["threshold"]
    assert 0 < result.causes[0].facts["text_score"] < 900 and result.causes[0].facts["vector_score"] is None


def test_none_of_the_words(kit: Kit) -> None:
    document = add(kit, "a.txt", "传感器应每季度校准一次")
    result = ask(kit, "备用电池", document=document)
    assert codes(result) == ["no_words"] and result.missing == ("备用电池",) and result.matched == ()


def test_the_scope_leaves_it_out(kit: Kit) -> None:
    document = add(kit, "a.txt", "heat", folder_path="docs/old")
    other = add(kit, "b.txt", "heat too")
    uid = kit.base.uid
    assert codes(ask(kit, "heat", scope=Scope(kb_uids=(uid,), folder_path="docs/new"), document=document)) == ["other_folder"]
    assert codes(ask(kit, "heat", scope=Scope(kb_uids=(uid,), folder_path="docs/o"), document=document)) == ["other_folder"]
    assert codes(ask(kit, "heat", scope=Scope(kb_uids=(uid,), folder_path="docs"), document=document)) == ["found"]
    assert codes(ask(kit, "heat", scope=Scope(kb_uids=(uid,), document_uids=(other.uid,)), document=document)) == ["other_document"]
    assert codes(ask(kit, "heat", scope=Scope(kb_uids=(uid,), tag_uids=(uid,)), document=document)) == ["other_tag"]


def test_a_passage_that_is_off_or_waits_for_the_index(kit: Kit) -> None:
    document = add(kit, "a.txt", "heat")
    with space_scope(kit.space.pk):
        chunk = Chunk.objects.get(document=document)
        chunk_update(actor=kit.actor, chunk=chunk, is_enabled=False)
        chunk = Chunk.objects.select_related("document__kb").get(document=document)
    assert codes(ask(kit, "heat", chunk=chunk)) == ["passage_off"]
    assert codes(ask(kit, "heat", document=document)) == ["passage_off"], "its best passage is the one that is off"
    with space_scope(kit.space.pk):
        Chunk.objects.filter(pk=chunk.pk).update(is_enabled=True, index_status=Chunk.IndexStatus.PROCESSING)
        chunk = Chunk.objects.select_related("document__kb").get(pk=chunk.pk)
    assert codes(ask(kit, "heat", chunk=chunk)) == ["passage_waiting"]
    with space_scope(kit.space.pk):
        Chunk.objects.filter(pk=chunk.pk).update(index_status=Chunk.IndexStatus.FAILED)
        chunk = Chunk.objects.select_related("document__kb").get(pk=chunk.pk)
    assert codes(ask(kit, "heat", chunk=chunk)) == ["passage_failed"]


def test_a_document_that_is_not_read_yet_or_never_will_be(kit: Kit) -> None:
    waiting = kit.upload("a.txt", "heat")
    assert codes(ask(kit, "heat", document=waiting)) == ["not_indexed"]
    broken = add(kit, "b.pdf", "%PDF-1.4 nothing")
    result = ask(kit, "heat", document=kit.reload(broken))
    assert codes(result) == ["not_indexed"] and result.causes[0].facts == {"state": "failed", "reason": "corrupt"}
    stopped = kit.upload("c.txt", "heat of another day")
    with space_scope(kit.space.pk):
        document_cancel(actor=kit.actor, document=stopped)
    assert codes(ask(kit, "heat", document=kit.reload(stopped))) == ["not_indexed"]


def test_an_index_that_lost_the_document(kit: Kit) -> None:
    document = add(kit, "a.txt", "heat")
    engine().delete(kit.space.pk, doc_ids=[document.pk])
    result = ask(kit, "heat", document=document)
    assert codes(result) == ["index_behind"] and result.causes[0].facts == {"held": None, "wanted": document.index_rev}
    with space_scope(kit.space.pk):
        index_documents(kit.space.pk, [document.pk])
    assert ask(kit, "heat", document=document).is_found


def test_meaning_alone_needs_a_vector(kit: Kit) -> None:
    document = add(kit, "a.txt", "heat")
    assert codes(ask(kit, "heat", options=Options(limit=3, mode="vector"), document=document)) == ["no_vector"]


def test_missing_words_are_those_of_the_question() -> None:
    assert missing_words("传感器应每季度校准一次", "传感器 ERR-4021") == ("ERR-4021",)
    assert missing_words("ERR-4021-B is whole", "ERR-4021") == ("ERR-4021",)
    assert missing_words("all of it", "all of it") == ()
    assert missing_words("", "校准") == ("校准",)
    assert missing_words("甲", "乙") == ("乙",)
