"""Passages that people correct: earlier versions, what changed, an index that could not follow, two people at once."""

from __future__ import annotations

from typing import Any

import pytest

from apps.common.scope import space_scope
from apps.knowledge.models import Chunk, ChunkRevision, Document
from apps.portal.reader.diffing import word_diff
from apps.retrieval import services as index
from apps.retrieval.plugins.protocol import INDEX_FAILURES
from apps.retrieval.search import Options, Scope, search
from tests.support.library import Library

HTMX = {"HX-Request": "true"}
TEXT = "# 水泵\n\n启动前请先注水。The pump must be primed before use.\n"


def joined(parts: list[dict[str, str]], *kinds: str) -> str:
    return "".join(part["text"] for part in parts if part["kind"] in kinds)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("泵每三个月检查一次", "泵每六个月检查一次", [("same", "泵每"), ("removed", "三"), ("added", "六"), ("same", "个月检查一次")]),
        ("the old pump runs", "the new pump runs", [("same", "the "), ("removed", "old"), ("added", "new"), ("same", " pump runs")]),
        ("a b c d", "w x y z", [("removed", "a b c d"), ("added", "w x y z")]),
        ("", "new", [("added", "new")]),
        ("gone", "", [("removed", "gone")]),
        ("same", "same", [("same", "same")]),
    ],
)
def test_what_changed_is_shown_by_words_and_characters(old: str, new: str, expected: list[tuple[str, str]]) -> None:
    parts = word_diff(old, new)
    assert [(part["kind"], part["text"]) for part in parts] == expected
    assert (joined(parts, "same", "removed"), joined(parts, "same", "added")) == (old, new)


def test_a_diff_of_long_texts_is_by_lines_and_gives_both_back() -> None:
    old = "".join(f"行 {n} with some words\n" for n in range(4000))
    new = old.replace("行 2000 with", "行 2000 without")
    parts = word_diff(old, new)
    assert (joined(parts, "same", "removed"), joined(parts, "same", "added")) == (old, new)
    assert joined(parts, "added") == "行 2000 without some words\n"


def post(library: Library, who: Any, document: Document, chunk: Chunk, act: str, **body: Any) -> Any:
    return who.post(library.url(document, f"passages/{chunk.uid}/{act}"), body, headers=HTMX)


def test_two_people_on_one_passage_lose_nothing(library: Library) -> None:
    document = library.add("泵.md", TEXT)
    chunk = library.chunks(document)[0]
    mine, theirs = f"{chunk.content} 由甲补充。", f"{chunk.content} Added by Mia."
    assert post(library, library.client, document, chunk, "edit", content=mine, revision=0).status_code == 200
    late = post(library, library.member, document, chunk, "edit", content=theirs, revision=0)
    html = late.content.decode()
    assert late.status_code == 422 and "Added by Mia." in html and "由甲补充。" in html, "both texts are shown"
    assert library.chunks(document)[0].content == mine
    again = post(library, library.member, document, chunk, "edit", content=theirs, revision=1)
    assert again.status_code == 200 and "edited · v3" in again.content.decode()
    history = library.client.get(library.url(document, f"passages/{chunk.uid}/history"), headers=HTMX).content.decode()
    assert "Now: version 3, by mia." in history
    assert "<del>由甲补充。</del><ins>Added by Mia.</ins>" in history and ">ada · " in history and ">parsing · " in history
    stale = post(library, library.client, document, chunk, "revert", revision=0, expected=1, **{"from": "history"})
    assert stale.status_code == 409 and library.chunks(document)[0].content == theirs
    back = post(library, library.client, document, chunk, "revert", revision=1, expected=2, **{"from": "history"})
    assert back.status_code == 200 and "kb:changed" in back["HX-Trigger"]
    assert library.chunks(document)[0].content == mine
    with space_scope(library.space.pk):
        kept = ChunkRevision.objects.filter(chunk=chunk).order_by("revision").values_list("revision", "content")
        assert list(kept) == [(0, chunk.content), (1, mine), (2, theirs)]
    member = library.member.get(library.url(document, f"passages/{chunk.uid}/history"))
    assert member.status_code == 200 and "Bring version 3 back" in member.content.decode()


def test_an_index_that_cannot_follow_keeps_the_edit_and_is_tried_again(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    document = library.add("泵.md", TEXT)
    chunk = library.chunks(document)[0]
    real = index.index_documents

    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise INDEX_FAILURES[0]("the disk is away")

    monkeypatch.setattr(index, "index_documents", broken)
    saved = post(library, library.client, document, chunk, "edit", content="Zirkonium hält länger.", revision=0)
    html = saved.content.decode()
    assert saved.status_code == 200 and "Zirkonium" in html and "not indexed" in html and "Index again" in html
    row = library.chunks(document)[0]
    assert (row.content, row.content_revision, row.index_status) == ("Zirkonium hält länger.", 1, "failed")
    still = post(library, library.client, document, chunk, "retry")
    assert "not indexed" in still.content.decode()
    assert "Not indexed" in library.page(library.url(document)), "the list can be narrowed to them"
    shown = library.page(library.url(document), state="unindexed")
    assert f"passage-{chunk.uid}" in shown
    monkeypatch.setattr(index, "index_documents", real)
    done = post(library, library.client, document, chunk, "retry")
    assert "not indexed" not in done.content.decode()
    row = library.chunks(document)[0]
    assert (row.content_revision, row.index_status) == (1, "ready"), "trying again is no new version"
    with space_scope(library.space.pk):
        hits = search(actor=library.actor, query="Zirkonium", scope=Scope(), options=Options(mode="text")).hits
    assert [hit.chunk.pk for hit in hits] == [chunk.pk]


def test_rest_says_how_the_index_took_an_edit(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    document = library.add("泵.md", TEXT)
    chunk = library.chunks(document)[0]
    real = index.index_documents
    address = f"/api/v1/chunks/{document.uid}/{chunk.uid}"

    def put(**body: Any) -> Any:
        headers = {"X-Tenant-ID": str(library.space.pk)}
        return library.member.put(address, body, content_type="application/json", headers=headers)

    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise INDEX_FAILURES[0]("the disk is away")

    monkeypatch.setattr(index, "index_documents", broken)
    failed = put(content="Zirkonium", expected_revision=0)
    data = failed.json()["data"]
    assert (failed.status_code, data["index_status"], data["content"], data["content_revision"]) == (200, "failed", "Zirkonium", 1)
    monkeypatch.setattr(index, "index_documents", real)
    data = put(content="Zirkonium").json()["data"]
    assert (data["index_status"], data["content_revision"]) == ("ready", 1)
    revisions = library.member.get(f"{address}/revisions", headers={"X-Tenant-ID": str(library.space.pk)}).json()["data"]
    assert [(row["revision"], row["editorSourceType"], row["editorMember"]) for row in revisions] == [(0, "system", None)]
    put(content="Hafnium")
    revisions = library.member.get(f"{address}/revisions", headers={"X-Tenant-ID": str(library.space.pk)}).json()["data"]
    assert (revisions[0]["editorSourceType"], revisions[0]["editorMember"]["name"]) == ("user", "mia")


def test_every_form_of_a_passage_waits_for_the_one_before(library: Library) -> None:
    document = library.add("泵.md", TEXT)
    chunk = library.chunks(document)[0]
    html = library.page(library.url(document))
    row = html[html.index(f'id="passage-{chunk.uid}"') :].split("</li>")[0]
    assert row.count("<form") == row.count('hx-sync="closest .psg:queue first"') == 1
    form = library.client.get(library.url(document, f"passages/{chunk.uid}/edit"), headers=HTMX).content.decode()
    assert form.count("<form") == form.count('hx-sync="closest .psg:queue first"') == 1
