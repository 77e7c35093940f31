"""Questions that are offered: of bases before the first one, and after an answer. Each leads to something that is there."""

from __future__ import annotations

from typing import Any

import pytest

from apps.chat.models import Message
from apps.chat.selectors import Suggestion, questions_suggested
from apps.common.scope import space_scope, unscoped
from apps.faq.services import Draft, entry_create
from apps.knowledge.models import Chunk
from apps.knowledge.services import base_create, documents_delete, question_put
from tests.support.chatting import chat_model
from tests.support.endpoint import answer
from tests.support.library import Library
from tests.support.talking import Talk, of, said

pytestmark = pytest.mark.django_db

HANDBOOK = """# 离心泵手册

## 日常检查

离心泵每班检查一次油位和振动，并写入日志。

## 密封圈更换

离心泵的密封圈每五年更换一次，由机修班完成。

## 故障代码

ERR-4021 表示过热保护，应停机冷却三十分钟。
"""


OFFERED = "1. 谁更换密封圈？\n- 油位多久检查一次？\n这不是问题\n密封圈多久更换一次？\n"


@pytest.fixture
def library() -> Library:
    made = Library.make()
    made.add("泵手册.md", HANDBOOK)
    return made


def pairs(library: Library, *questions: str, recommended: str = "") -> Any:
    with space_scope(library.space.pk):
        base = base_create(actor=library.actor, values={"name": "Pairs", "type": "faq"})
        for question in questions:
            draft = Draft(question, answers=("Yes.",), is_recommended=question == recommended)
            entry_create(actor=library.actor, base=base, draft=draft)
    return base


def suggested(library: Library, **scope: Any) -> list[Suggestion]:
    with space_scope(library.space.pk):
        return questions_suggested(actor=library.actor, **scope)


def follow(talk: Talk, message: str, *, regenerate: bool = False) -> dict[str, Any]:
    answer = talk.call("post", f"sessions/{talk.id}/messages/{message}/suggestions", {"regenerate": regenerate})
    assert answer.status_code == 200, answer.content
    return dict(answer.json()["data"])


def test_every_kind_in_turn_and_recommended_pairs_first(library: Library) -> None:
    pairs(library, "Is there a shuttle?", "Is there a canteen?", "Is there parking?", recommended="Is there a shuttle?")
    with space_scope(library.space.pk):
        chunk = Chunk.objects.filter(chunk_type="text").order_by("pk").first()
        question_put(actor=library.actor, chunk=chunk, question="谁检查油位？")
    found = suggested(library)
    assert [(row.text, row.source) for row in found][:2] == [("Is there a shuttle?", "faq"), ("谁检查油位？", "generated")]
    assert [row.source for row in found][2] == "document" and len({row.text for row in found}) == 6
    only = suggested(library, kb_uids=[library.base.uid])
    assert {row.source for row in only} == {"generated", "document"} and {row.kb_uid for row in only} == {library.base.uid}


def test_what_is_offered_of_documents_is_answered_from_them(library: Library) -> None:
    rows = [row for row in suggested(library) if row.source == "document"]
    assert {"日常检查", "密封圈更换", "故障代码"} <= {row.ask.rpartition("]] ")[2].rstrip("？") for row in rows}
    talk = Talk(library)
    for row in rows:
        events = talk.ask(row.ask)
        cited = [ref["knowledge_title"] for ref in of(events, "references")[0]["knowledge_references"]]
        assert cited[0] == "泵手册.md" and "[1]" in said(events), row
    assert "密封圈每五年更换一次" in said(talk.ask(next(row.ask for row in rows if "密封圈" in row.ask)))


def test_nothing_to_offer_in_an_empty_base(library: Library) -> None:
    with space_scope(library.space.pk):
        empty = base_create(actor=library.actor, values={"name": "Empty"})
    assert suggested(library, kb_uids=[empty.uid]) == []


def test_over_rest(library: Library) -> None:
    pairs(library, "Is there a shuttle?")
    talk = Talk(library)
    rows = talk.call("get", "agents/builtin-quick-answer/suggested-questions", {"limit": "2"}).json()["data"]["questions"]
    assert [row["source"] for row in rows] == ["faq", "document"] and set(rows[0]) == {"question", "source", "knowledge_base_id"}
    query = {"knowledge_base_ids": str(library.base.uid)}
    only = talk.call("get", "agents/builtin-smart-reasoning/suggested-questions", query).json()["data"]["questions"]
    assert {row["knowledge_base_id"] for row in only} == {str(library.base.uid)}
    assert talk.call("get", "agents/nobody/suggested-questions").status_code == 404
    assert talk.call("get", "agents/builtin-quick-answer/suggested-questions", {"limit": "0"}).status_code == 400


def test_without_a_model_headings_beside_the_answer_are_offered(library: Library) -> None:
    talk = Talk(library)
    message = talk.ask("密封圈多久更换一次？")[0]["assistant_message_id"]
    first = follow(talk, message)
    assert (first["status"], first["assistant_message_id"], first["session_id"]) == ("ready", message, talk.id)
    assert 1 <= len(first["questions"]) <= 3
    assert all(row["source"] == "document" and "密封圈更换" not in row["ask"] for row in first["questions"])
    assert follow(talk, message) == first, "made once"
    assert talk.call("get", f"sessions/{talk.id}/messages/{message}/suggestions").json()["data"] == first
    again = follow(talk, message, regenerate=True)
    assert again["id"] != first["id"]
    taken = first["questions"][0]["ask"]
    later = follow(talk, talk.ask(taken)[0]["assistant_message_id"])
    assert taken not in [row["ask"] for row in later["questions"]], "what was asked is not offered again"


def test_a_model_offers_its_own_and_is_held_to_the_form(library: Library) -> None:
    talk = Talk(library)
    with chat_model(library, lambda _asked: ["每五年 [1]。"]) as (endpoint, _row):
        message = talk.ask("密封圈多久更换一次？")[0]["assistant_message_id"]
        said_whole = {"choices": [{"message": {"content": OFFERED}}]}
        endpoint.behave = lambda _body, handler: answer(handler, 200, said_whole)
        rows = follow(talk, message)["questions"]
        assert [(row["text"], row["source"]) for row in rows] == [("谁更换密封圈？", "model"), ("油位多久检查一次？", "model")]
        endpoint.behave = lambda _body, handler: answer(handler, 500, {"error": {"message": "down"}})
        fallen = follow(talk, message, regenerate=True)["questions"]
    assert fallen and {row["source"] for row in fallen} == {"document"}


def test_where_nothing_was_found_what_can_be_answered_is_offered(library: Library) -> None:
    talk = Talk(library)
    offered = follow(talk, talk.ask("备用电池的型号是什么？")[0]["assistant_message_id"])
    assert offered["status"] == "ready" and all("泵手册" in row["text"] for row in offered["questions"])


def test_what_became_of_an_offer_is_counted(library: Library) -> None:
    talk = Talk(library)
    offered = follow(talk, talk.ask("密封圈多久更换一次？")[0]["assistant_message_id"])
    body = {"suggestion_set_id": offered["id"], "question_id": "q1", "event_type": "click"}
    for _twice in range(2):
        assert talk.call("post", f"sessions/{talk.id}/suggestion-events", body).status_code == 204
    assert (
        talk.call("post", f"sessions/{talk.id}/suggestion-events", {**body, "event_type": "impression", "question_id": ""}).status_code
        == 204
    )
    with unscoped("test"):
        kept = Message.objects.get(role="assistant").suggestions["questions"]
    assert kept[0]["events"] == {"click": 2, "impression": 1} and kept[-1]["events"].get("click") is None
    assert talk.call("post", f"sessions/{talk.id}/suggestion-events", {**body, "question_id": "q9"}).status_code == 404
    assert talk.call("post", f"sessions/{talk.id}/suggestion-events", {**body, "event_type": "bought"}).status_code == 400
    assert talk.call("post", f"sessions/{Talk(library).id}/suggestion-events", body).status_code == 404


def test_nothing_of_a_deleted_source_is_offered(library: Library) -> None:
    talk = Talk(library)
    message = talk.ask("密封圈多久更换一次？")[0]["assistant_message_id"]
    with unscoped("test"):
        document = Chunk.objects.first().document
    with space_scope(library.space.pk):
        documents_delete(actor=library.actor, base=library.base, documents=[document])
    offered = follow(talk, message)
    assert (offered["status"], offered["questions"], offered["suppression_reason"]) == ("suppressed", [], "nothing_found")


def test_on_the_page(library: Library) -> None:
    start = library.page(f"/s/{library.space.pk}/ask")
    assert 'id="ask-ideas"' in start
    ideas = library.page(f"/s/{library.space.pk}/ask/ideas")
    assert "You could ask" in ideas and 'data-ask-say="[[document:' in ideas
    talk = Talk(library)
    message = talk.ask("[[泵手册]] 密封圈多久更换一次？")[0]["assistant_message_id"]
    page = library.page(f"/s/{library.space.pk}/ask/{talk.id}")
    assert f'hx-post="/s/{library.space.pk}/ask/{talk.id}/messages/{message}/follow"' in page
    assert '<span class="talk__ref">泵手册</span> 密封圈多久更换一次？' in page
    address = f"/s/{library.space.pk}/ask/{talk.id}/messages/{message}/follow"
    shown = library.client.post(address, headers={"HX-Request": "true"}).content.decode()
    assert "Ask on" in shown and shown.count("data-ask-say") >= 1
    assert shown.partition('id="follow-ups"')[2][:200] in library.page(f"/s/{library.space.pk}/ask/{talk.id}"), "kept over a reload"
    draft = library.page(f"/s/{library.space.pk}/ask/{talk.id}?q=What+else%3F")
    assert ">What else?</textarea>" in draft
