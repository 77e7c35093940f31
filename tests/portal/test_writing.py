"""What people write about a document on its pages: summary, custom metadata, questions; and what finds a passage by its question."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils.translation import override

from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Chunk, Document, KnowledgeBase
from apps.knowledge.services import chunk_update, document_update, question_delete, question_put
from apps.llm.models import Model
from apps.portal.forms.metadata import MetadataRow, metadata_of, rows_from
from apps.retrieval.search import Options, Scope, search
from tests.support.endpoint import Endpoint, answer, serving
from tests.support.kit import work_all
from tests.support.library import Library

HTMX = {"HX-Request": "true"}
TEXT = "# 水泵\n\n启动前请先注水。The pump must be primed before use.\n"


@pytest.fixture
def endpoint(settings: Any) -> Iterator[Endpoint]:
    settings.MODEL_ALLOW = ["127.0.0.0/8"]
    with serving() as made:
        yield made


def chooses(library: Library, endpoint: Endpoint) -> None:
    with unscoped("test data"):
        row = Model.objects.create(space=library.space, name="teller", type=Model.Type.CHAT, base_url=endpoint.url)
        KnowledgeBase.objects.filter(pk=library.base.pk).update(summary_model_id=str(row.uid))


def seen_in(html: str) -> str:
    return re.search(r'name="seen" value="(\w+)"', html)[1]  # type: ignore[index]


def found(library: Library, query: str, mode: Any = "text") -> list[int]:
    with space_scope(library.space.pk):
        return [hit.chunk.pk for hit in search(actor=library.actor, query=query, scope=Scope(), options=Options(mode=mode)).hits]


def post(library: Library, document: Document, tail: str, who: Any = None, **body: Any) -> Any:
    return (who or library.client).post(library.url(document, tail), body, headers=HTMX)


def test_a_question_leads_to_its_passage_by_words_and_by_meaning(library: Library) -> None:
    document = library.add("泵.md", TEXT, vectors=True)
    other = library.add("fan.md", "# Fan\n\nThe fan is cleaned with a dry brush.\n", vectors=True)
    chunk = library.chunks(document)[0]
    assert found(library, "Zirkonblume") == []
    with space_scope(library.space.pk):
        made = question_put(actor=library.actor, chunk=chunk, question="何时更换滤芯 Zirkonblume?")
    assert found(library, "Zirkonblume") == found(library, "滤芯") == [chunk.pk]
    page = library.page(f"/s/{library.space.pk}/search", q="滤芯")
    assert "Answers “何时更换滤芯 Zirkonblume?”" in page
    headers = {"X-Tenant-ID": str(library.space.pk)}
    hits = library.client.post(
        f"/api/v1/knowledge-bases/{library.base.uid}/hybrid-search",
        {"query_text": "滤芯"},
        content_type="application/json",
        headers=headers,
    ).json()["data"]
    assert (hits[0]["matched_content"], hits[0]["metadata"]["question"]) == ("何时更换滤芯 Zirkonblume?",) * 2
    assert (
        "question"
        not in library.client.post(
            f"/api/v1/knowledge-bases/{library.base.uid}/hybrid-search",
            {"query_text": "注水"},
            content_type="application/json",
            headers=headers,
        ).json()["data"][0]["metadata"]
    ), "the text itself led there"
    with space_scope(library.space.pk):
        assert Chunk.objects.get(pk=chunk.pk).index_status == "ready"
        assert Chunk.objects.get(pk=chunk.pk).content_revision == 0, "a question is no edit of the text"
    work_all("embed")
    assert found(library, "什么时候换滤芯", "vector")[0] == chunk.pk
    assert library.reload(document).vector_count == len(library.chunks(document))
    with space_scope(library.space.pk):
        chunk_update(actor=library.actor, chunk=chunk, is_enabled=False)
    assert found(library, "Zirkonblume") == [], "an off passage is found by nobody, whatever it is asked"
    with space_scope(library.space.pk):
        chunk_update(actor=library.actor, chunk=chunk, is_enabled=True)
        question_delete(actor=library.actor, chunk=chunk, question_id=made["id"])
    assert found(library, "Zirkonblume") == []
    assert library.reload(other).parse_status == "completed"


def test_questions_are_written_in_a_drawer(library: Library, endpoint: Endpoint) -> None:
    document = library.add("泵.md", TEXT)
    chunk = library.chunks(document)[0]
    tail = f"passages/{chunk.uid}/questions"
    empty = library.client.get(library.url(document, tail), headers=HTMX).content.decode()
    assert "No questions yet." in empty and "No chat model is chosen" in empty and "Let the model write them" not in empty
    blank = post(library, document, tail, question=" ")
    assert blank.status_code == 422 and "Write a question." in blank.content.decode()
    added = post(library, document, tail, question="How is it primed?").content.decode()
    assert 'value="How is it primed?"' in added and "possibly outdated" not in added
    question_id = re.search(r'name="question_id" value="(\w+)"', added)[1]  # type: ignore[index]
    with space_scope(library.space.pk):
        chunk_update(actor=library.actor, chunk=chunk, content="Quite another text.")
    stale = library.client.get(library.url(document, tail), headers=HTMX).content.decode()
    assert "possibly outdated" in stale
    saved = post(library, document, tail, question="What now?", question_id=question_id, do="save").content.decode()
    assert 'value="What now?"' in saved and "possibly outdated" not in saved
    assert "1 question" in library.page(library.url(document))
    chooses(library, endpoint)
    endpoint.says = '["By the model?"]'
    written = post(library, document, tail, do="regenerate").content.decode()
    assert 'value="By the model?"' in written and "What now?" not in written

    def refuse(_body: object, handler: Any) -> None:
        answer(handler, 401, {"error": {"message": "no"}})

    endpoint.behave = refuse  # type: ignore[assignment]
    failed = post(library, document, tail, do="regenerate")
    assert failed.status_code == 422 and "The server refused the API key of the model" in failed.content.decode()
    gone = re.search(r'name="question_id" value="(\w+)"', written)[1]  # type: ignore[index]
    assert "No questions yet." in post(library, document, tail, do="delete", question_id=gone).content.decode()


def test_a_summary_is_written_by_hand_and_a_conflict_shows_both(library: Library) -> None:
    document = library.add("泵.md", TEXT)
    html = library.page(library.url(document))
    assert 'id="summary"' in html and "No chat model is chosen for this knowledge base" in html
    assert "Let the model write it" not in html, "no button that could not work"
    form = library.client.get(library.url(document, "summary/edit"), headers=HTMX).content.decode()
    saved = post(library, document, "summary/edit", description="关于水泵。", seen=seen_in(form))
    assert saved.status_code == 200 and "kb:changed" in saved["HX-Trigger"]
    assert library.reload(document).description == "关于水泵。" and "关于水泵。" in library.page(library.url(document))
    late = post(library, document, "summary/edit", library.member, description="About pumps.", seen=seen_in(form))
    text = late.content.decode()
    assert late.status_code == 422 and "关于水泵。" in text and "About pumps." in text
    assert library.reload(document).description == "关于水泵。"
    again = post(library, document, "summary/edit", library.member, description="About pumps.", seen=seen_in(text))
    assert again.status_code == 200 and library.reload(document).description == "About pumps."


def test_a_summary_is_written_by_the_model(library: Library, endpoint: Endpoint) -> None:
    chooses(library, endpoint)
    endpoint.says = "It is about pumps."
    document = library.add("泵.md", TEXT, vectors=True)
    assert (document.parse_status, document.summary_status, document.description) == ("completed", "pending", "")
    waiting = library.page(library.url(document))
    assert "being written" in waiting and f'data-poll="{library.url(document, "summary")}"' in waiting
    work_all("enrich")
    assert library.reload(document).description == "It is about pumps."
    block = library.client.get(library.url(document, "summary"), headers=HTMX).content.decode()
    assert "It is about pumps." in block and "data-poll" not in block

    def refuse(_body: object, handler: Any) -> None:
        answer(handler, 401, {"error": {"message": "no"}})

    endpoint.behave = refuse  # type: ignore[assignment]
    assert "being written" in post(library, document, "summary").content.decode()
    work_all("enrich")
    block = library.client.get(library.url(document, "summary"), headers=HTMX).content.decode()
    assert "It is about pumps." in block
    assert "could not be written: The server refused the API key of the model. Enter a valid key on the page Models." in block


def test_metadata_is_edited_in_rows(library: Library) -> None:
    document = library.add("泵.md", TEXT)
    assert "None yet: facts of your own" in library.page(library.url(document, "details"))
    form = library.client.get(library.url(document, "metadata"), headers=HTMX).content.decode()
    body: dict[str, Any] = {
        "seen": seen_in(form),
        "name": ["部门", "year", "valid", "note", ""],
        "kind": ["text", "number", "yes", "empty", "text"],
        "value": ["水泵", "2024", "", "", ""],
        "do": "save",
    }
    more = post(library, document, "metadata", **{**body, "do": "more"}).content.decode()
    assert more.count('name="name"') == 8 and 'value="水泵"' in more and library.reload(document).custom_metadata == {}
    wrong = post(library, document, "metadata", **{**body, "value": ["水泵", "many", "", "", "lost"]})
    text = wrong.content.decode()
    assert wrong.status_code == 422 and "Write a number" in text and "Give it a name" in text and 'value="many"' in text
    assert post(library, document, "metadata", **body).status_code == 200
    assert library.reload(document).custom_metadata == {"部门": "水泵", "year": 2024, "valid": True, "note": None}
    details = library.page(library.url(document, "details"))
    assert "部门" in details and "2024" in details
    with space_scope(library.space.pk):
        document_update(actor=library.actor, document=document, custom_metadata={"theirs": "kept"})
    late = post(library, document, "metadata", **body)
    text = late.content.decode()
    assert late.status_code == 422 and "theirs: kept" in text and 'value="水泵"' in text
    assert library.reload(document).custom_metadata == {"theirs": "kept"}
    assert post(library, document, "metadata", **{**body, "seen": seen_in(text)}).status_code == 200
    long = {**body, "seen": "", "name": ["n" * 65, *body["name"][1:]]}
    long["seen"] = seen_in(library.client.get(library.url(document, "metadata"), headers=HTMX).content.decode())
    refused = post(library, document, "metadata", **long)
    assert refused.status_code == 422 and "must have 1 to 64 bytes" in refused.content.decode()


def test_rows_of_metadata_keep_their_kinds() -> None:
    values = {"t": "x", "i": 3, "f": 1.5, "yes": True, "no": False, "none": None, "blank": ""}
    rows = rows_from(values, blank=2)
    assert metadata_of(rows) == values and len(rows) == 9
    twice = [MetadataRow("a", "text", "1"), MetadataRow("a", "text", "2")]
    with override("en"):
        assert metadata_of(twice) is None and twice[1].error == "This name is used twice."
    for bad in ("nan", "inf", "1e999", "", "x"):
        assert metadata_of([MetadataRow("a", "number", bad)]) is None
    assert len(rows_from({str(n): n for n in range(20)})) == 20


def test_a_draft_is_found_by_nobody_until_it_is_published(library: Library) -> None:
    """Contract knowledge 13.7, with the real pipeline and index."""
    headers = {"X-Tenant-ID": str(library.space.pk)}
    base = f"/api/v1/knowledge-bases/{library.base.uid}/knowledge/manual"

    def send(method: str, address: str, **body: Any) -> Any:
        return getattr(library.member, method)(address, body, content_type="application/json", headers=headers)

    refused = send("post", base, title="Hours", content="Zirkonblume one", status="published")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, 1010)
    made = send("post", base, title="Hours", content="Zirkonblume one").json()["data"]
    work_all("parse")
    assert (made["parse_status"], made["metadata"]["version"], found(library, "Zirkonblume")) == ("draft", 1, [])
    address = f"/api/v1/knowledge/manual/{made['id']}"
    published = send("put", address, content="Zirkonblume two", status="publish").json()["data"]
    assert (published["parse_status"], published["metadata"]["version"]) == ("pending", 2)
    work_all("parse", "embed")
    with space_scope(library.space.pk):
        document = Document.objects.get(uid=made["id"])
    (chunk,) = library.chunks(document)
    assert document.parse_status == "completed" and chunk.content == "Zirkonblume two"
    assert found(library, "Zirkonblume") == found(library, "Zirkonblume two", "vector") == [chunk.pk]
    drafted = send("put", address, content="Zirkonblume three", status=" Draft ").json()["data"]
    assert (drafted["parse_status"], drafted["enable_status"], drafted["metadata"]["version"]) == ("draft", "disabled", 3)
    assert found(library, "Zirkonblume") == found(library, "Zirkonblume two", "vector") == []
    assert send("put", address, content="x", status="published").json()["error"]["code"] == 1010
    send("put", address, content="Zirkonblume four", status="publish")
    work_all("parse")
    (chunk,) = library.chunks(document)
    assert chunk.content == "Zirkonblume four" and found(library, "Zirkonblume") == [chunk.pk]


def test_the_editor_keeps_a_draft_in_the_browser(library: Library) -> None:
    document = library.write("Note", "# Text")
    new = library.page(f"/s/{library.space.pk}/bases/{library.base.uid}/documents/new")
    assert f'data-guard="document-new-{library.base.uid}"' in new
    assert f'data-guard="document-{document.uid}"' in library.page(library.url(document, "edit"))
