"""What stands on pages is found like any passage, where the base may be read and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.common.scope import space_scope
from apps.knowledge.models import Chunk, Document
from apps.retrieval.search import Options, Scope, search
from apps.wiki.services import PageChange, page_change, page_delete, page_rename
from tests.wiki.conftest import WikiWorld

pytestmark = pytest.mark.usefixtures("on_commit_runs")


@pytest.fixture
def on_commit_runs(django_capture_on_commit_callbacks: Any) -> Any:
    with django_capture_on_commit_callbacks(execute=True):
        yield


def found(wiki: WikiWorld, words: str, **scope: Any) -> list[str]:
    with space_scope(wiki.space.pk):
        results = search(actor=wiki.member.actor, query=words, scope=Scope(**scope), options=Options(limit=20, mode="text"))
        return [hit.document.title for hit in results.hits]


@pytest.fixture
def indexed(wiki: WikiWorld, django_capture_on_commit_callbacks: Any) -> Any:
    def run(act: Any) -> Any:
        with django_capture_on_commit_callbacks(execute=True):
            return act()

    return run


def test_by_title_other_names_summary_and_text(wiki: WikiWorld, indexed: Any) -> None:
    indexed(lambda: wiki.add("Zentralpumpe", "Sie fördert [[hall|Kühlwasser]].", aliases=("离心泵",), summary="Herzstück der Anlage"))
    for words in ("Zentralpumpe", "离心泵", "Herzstück", "Kühlwasser"):
        assert found(wiki, words) == ["Zentralpumpe"], words


def test_a_change_is_found_at_once_and_what_went_is_not(wiki: WikiWorld, indexed: Any) -> None:
    page = indexed(lambda: wiki.add("Pump", "Moves kerosene."))

    def change(**values: Any) -> None:
        with space_scope(wiki.space.pk):
            indexed(lambda: page_change(actor=wiki.member.actor, page=page, change=PageChange(**values)))

    change(content="Moves methanol.")
    assert (found(wiki, "methanol"), found(wiki, "kerosene")) == (["Pump"], [])
    change(aliases=("Förderwerk",))
    assert found(wiki, "Förderwerk") == ["Pump"]
    for status in ("draft", "archived"):
        change(status=status)
        assert found(wiki, "methanol") == [], status
    change(status="published")
    with space_scope(wiki.space.pk):
        indexed(lambda: page_rename(actor=wiki.member.actor, page=page, slug="somewhere/else"))
    assert found(wiki, "methanol") == ["Pump"]
    with space_scope(wiki.space.pk):
        indexed(lambda: page_delete(actor=wiki.member.actor, page=page))
    assert found(wiki, "methanol") == []


def test_only_where_its_base_may_be_read(wiki: WikiWorld, indexed: Any) -> None:
    indexed(lambda: wiki.add("Mine", "The xylophon stands here."))
    indexed(lambda: wiki.add("Theirs", "The xylophon stands there.", base=wiki.other_wiki))
    indexed(lambda: wiki.add("Sales", "The xylophon is sold.", base=wiki.second_wiki))
    assert sorted(found(wiki, "xylophon")) == ["Mine", "Sales"]
    assert found(wiki, "xylophon", kb_uids=(wiki.second_wiki.uid,)) == ["Sales"]
    limited: Client = wiki.key(wiki.space, capabilities=["retrieve"], kb_uids=[str(wiki.second_wiki.uid)])
    body = {"query": "xylophon", "knowledge_base_ids": [str(wiki.second_wiki.uid)]}
    answer = limited.post("/api/v1/knowledge-search", body, content_type="application/json")
    assert {hit["knowledge_title"] for hit in answer.json()["data"]} == {"Sales"}
    body["knowledge_base_ids"] = [str(wiki.wiki.uid)]
    assert limited.post("/api/v1/knowledge-search", body, content_type="application/json").status_code in (403, 404)


def test_a_hit_says_that_it_is_a_page(wiki: WikiWorld, indexed: Any) -> None:
    indexed(lambda: wiki.add("Pump", "Moves toluene."))
    body = {"query": "toluene", "knowledge_base_ids": [str(wiki.wiki.uid)]}
    (hit,) = wiki.member.post("knowledge-search", body).json()["data"]
    assert (hit["chunk_type"], hit["knowledge_title"], hit["content"]) == ("wiki_page", "Pump", "Moves toluene.")


def test_a_wiki_that_is_turned_off_is_not_found_until_it_is_on_again(wiki: WikiWorld, indexed: Any) -> None:
    indexed(lambda: wiki.add("Pump", "Moves acetone."))

    def turn(on: bool) -> None:
        config = {"indexing_strategy": {"keyword_enabled": True, "vector_enabled": True, "wiki_enabled": on}}
        answer = indexed(lambda: wiki.admin.put(f"knowledge-bases/{wiki.wiki.uid}", {"name": "Plant", "description": "", "config": config}))
        assert answer.status_code == 200, answer.content

    turn(False)
    assert found(wiki, "acetone") == []
    turn(True)
    assert found(wiki, "acetone") == ["Pump"]


def test_pages_are_no_documents_to_lists_and_counts(wiki: WikiWorld, indexed: Any) -> None:
    indexed(lambda: wiki.add("Pump", "Moves water."))
    listed = wiki.member.get(f"knowledge-bases/{wiki.wiki.uid}/knowledge").json()
    assert listed["total"] == 0
    with space_scope(wiki.space.pk):
        document = Document.objects.get(type="page")
        assert Chunk.objects.get(document=document).chunk_type == "wiki_page"
    answer = wiki.member.put(f"knowledge/{document.uid}", {"title": "Renamed"})
    assert answer.status_code == 400
    assert wiki.member.delete(f"chunks/{document.uid}").status_code == 400
