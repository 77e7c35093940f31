"""A question over REST: events, order, framing, and what is kept of it."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.chat.models import Message, StreamEvent
from apps.chat.turns.channel import hub
from apps.common.errors import Unavailable
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import base_create, chunk_update, documents_delete
from apps.llm.models import Model
from apps.retrieval.journal import journal
from apps.retrieval.models import RetrievalLog
from tests.support.chatting import chat_model
from tests.support.endpoint import answer as answer_with
from tests.support.library import Library
from tests.support.talking import Talk, events_of, of, said, types

pytestmark = pytest.mark.django_db

MANUAL = """# 传感器 TH01

安装完成后应在常温下静置三十分钟，再进行零点检查。传感器应每季度校准一次，校准记录保存两年。偏差超过 0.5 度的传感器应更换探头。

温度超过 85 度时显示 ERR-4021，表示过热保护。24 小时内第二次出现时，停止使用并报修。
"""


@pytest.fixture
def library() -> Library:
    made = Library.make()
    made.add("传感器-TH01.md", MANUAL)
    return made


def test_a_question_that_can_be_answered(library: Library) -> None:
    talk = Talk(library)
    events = talk.ask("传感器多久校准一次？")
    assert types(events) == [
        "agent_query",
        "knowledge_search_start",
        "tool_call",
        "tool_result",
        "knowledge_search_done",
        "references",
        "answer",
        "complete",
        "session_title",
    ]
    assert {event["id"] for event in events} == {"turn-1"}
    first = events[0]
    assert (
        first["session_id"] == talk.id and first["done"] is True and first["data"]["assistant_message_id"] == first["assistant_message_id"]
    )
    assert "传感器应每季度校准一次" in said(events) and "[1]" in said(events)
    assert len(of(events, "complete")) == 1
    assert [event["done"] for event in of(events, "answer")][-1] is True
    question, reply = talk.messages()
    assert (question["role"], question["content"]) == ("user", "传感器多久校准一次？")
    assert reply["content"] == said(events) and reply["id"] == first["assistant_message_id"]
    assert reply["answerer"] == "extractive" and reply["reason"] == "no_model"
    assert reply["knowledge_references"][0]["content"].startswith("# 传感器") or "校准" in reply["knowledge_references"][0]["content"]


def test_a_question_that_cannot_be_answered(library: Library) -> None:
    events = Talk(library).ask("备用电池的型号是什么？")
    answers = of(events, "answer")
    assert all(event["data"]["is_fallback"] for event in answers)
    assert "未找到" in said(events) or "没有" in said(events)
    assert len(of(events, "complete")) == 1


def four(library: Library) -> None:
    for number in range(1, 5):
        library.add(f"part-{number}.txt", f"The valve of pump number {number} opens at {number}{number} bar.")


def test_markers_open_the_right_text_and_unknown_ones_are_gone(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    four(library)
    talk = Talk(library)
    with chat_model(library, lambda _asked: ["Valves open late [3], early ", "[", "1]; some [3]", " and others [9].", " 参见[1]。"]):
        events = talk.ask("At which pressure does the valve of each pump open?")
    answer = said(events)
    pages = "\n\nReference pages:\n- 《part-1.txt》：part-1.txt\n- 《part-3.txt》：part-3.txt"
    assert answer == "Valves open late [3], early [1]; some [3] and others. 参见[1]。" + pages
    assert "an answer cited what was not among its sources: 9" in caplog.text
    reply = talk.messages()[1]
    assert reply["content"] == answer and reply["answerer"] == "model"
    rows = {row["metadata"]["number"]: row for row in reply["knowledge_references"]}
    shown = {str(at): row for at, row in enumerate(of(events, "references")[0]["knowledge_references"], 1)}
    assert {number: row["content"] for number, row in rows.items()} == {number: row["content"] for number, row in shown.items()}
    assert [number for number, row in rows.items() if row["metadata"]["cited"] == "true"] == ["1", "3"]
    assert talk.messages()[1] == reply, "a reload shows the same"

    with space_scope(library.space.pk):
        chunk = Chunk.objects.get(uid=rows["3"]["id"])
        chunk_update(actor=library.actor, chunk=chunk, content="The valve was taken out.", expected_revision=chunk.content_revision)
    later = {row["metadata"]["number"]: row for row in talk.messages()[1]["knowledge_references"]}
    assert later["3"]["content"] == rows["3"]["content"] and later["3"]["metadata"]["source_state"] == "changed"
    assert later["1"]["metadata"]["source_state"] == "same"
    source = f"/s/{library.space.pk}/ask/{talk.id}/messages/{reply['id']}/sources/3"
    page = library.client.get(source, headers={"HX-Request": "true"}).content.decode()
    assert "Changed since it was cited" in page and "The valve was taken out." in page
    exported = library.client.get(f"/s/{library.space.pk}/ask/{talk.id}/export").content.decode()
    assert rows["3"]["content"] in exported and "(changed since)" in exported and "[9]" not in exported


def test_a_deleted_source_is_not_quoted_any_more(library: Library) -> None:
    talk = Talk(library)
    talk.ask("传感器多久校准一次？")
    reply = talk.messages()[1]
    assert reply["knowledge_references"][0]["metadata"]["source_state"] == "same"
    with space_scope(library.space.pk):
        document = Document.objects.get(uid=reply["knowledge_references"][0]["knowledge_id"])
        documents_delete(actor=library.actor, base=library.base, documents=[document])
    gone = talk.messages()[1]["knowledge_references"][0]
    assert (gone["content"], gone["metadata"]["source_state"]) == ("", "deleted")
    exported = library.client.get(f"/s/{library.space.pk}/ask/{talk.id}/export").content.decode()
    assert exported.count("每季度校准一次") == 1 and "(deleted)" in exported, "the answer stays, its source is not quoted"


def test_a_failing_model_falls_back_and_says_why(library: Library) -> None:
    talk = Talk(library)
    with chat_model(library, lambda _asked: ["x"]) as (endpoint, _row):
        endpoint.behave = lambda _body, handler: answer_with(handler, 401, {"error": {"message": "no such key"}})
        events = talk.ask("传感器多久校准一次？")
    assert "传感器应每季度校准一次，校准记录保存两年。 [1]" in said(events)
    assert types(events)[-3:] == ["answer", "complete", "session_title"] and not of(events, "error")
    reply = talk.messages()[1]
    assert (reply["answerer"], reply["reason"], reply["is_fallback"]) == ("extractive", "model_unauthorised", True)


def test_a_model_that_breaks_off_keeps_what_it_said(library: Library) -> None:
    talk = Talk(library)
    with chat_model(library, lambda _asked: ["每季度", "一次 [1]。"], whole=False):
        events = talk.ask("传感器多久校准一次？")
    assert said(events).startswith("每季度一次 [1]。\n\n---\n\n传感器应每季度校准一次，校准记录保存两年。 [1]")
    assert len(of(events, "complete")) == 1


def test_what_a_model_is_shown_fits_its_window(library: Library) -> None:
    library.add("long.txt", "传感器校准记录。" * 400)
    talk = Talk(library)
    with chat_model(library, lambda _asked: ["好 [1]"]) as (endpoint, row):
        with unscoped("test data"):
            Model.objects.filter(pk=row.pk).update(context_window=2000)
        talk.ask("传感器校准记录保存多久？")
        prompt = endpoint.requests[-1]["messages"][-1]["content"]
    assert prompt.startswith("传感器校准记录保存多久？\n\n---\n[系统检索上下文 / 用户不可见]")
    shown = re.findall(r"(?ms)^\[\d\].*?$\n    路径: .*?$\n(.*?)\n\n", prompt)
    assert 0 < sum(len("".join(line[4:] for line in text.splitlines())) for text in shown) <= 400
    log = RetrievalLog.objects
    with unscoped("test data"):
        journal.flush()
        row_logged = log.filter(door="ask").latest("pk")
    assert (row_logged.decision, row_logged.rule, row_logged.budget_chars) == ("search", "default", 400)
    assert 0 < row_logged.injected_chars <= 400


def test_what_is_no_question_to_the_bases_is_not_looked_up(library: Library) -> None:
    talk = Talk(library)
    for message in ("你好", "/sediment", "当前模型是什么"):
        events = talk.ask(message)
        assert types(events)[:3] == ["agent_query", "answer", "complete"], message
        assert not [event for event in events if event["response_type"].startswith("knowledge_search")]
    forced = talk.ask("当前模型是什么", force_search=True)
    assert "knowledge_search_start" in types(forced)


def test_a_search_that_fails_is_told_and_the_answer_goes_on(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_options: Any) -> None:
        raise Unavailable("the index is gone", code="index_outdated")

    monkeypatch.setattr("apps.chat.turns.lookup.search_knowledge_base", broken)
    talk = Talk(library)
    with chat_model(library, lambda _asked: ["Plain answer."]) as (endpoint, _row):
        events = talk.ask("传感器多久校准一次？")
        assert endpoint.requests[-1]["messages"][-1]["content"] == "传感器多久校准一次？"
    assert types(events)[:5] == ["agent_query", "knowledge_search_start", "tool_call", "knowledge_search_error", "tool_result"]
    assert said(events) == "Plain answer." and len(of(events, "complete")) == 1
    with unscoped("test data"):
        journal.flush()
        assert RetrievalLog.objects.filter(door="ask").latest("pk").error == "index_outdated"


def test_what_is_named_comes_first_and_what_is_missing_is_said(library: Library) -> None:
    for name in ("A", "B"):
        library.add(f"{name}.md", f"Page {name} is about the pump of hall {name}.", folder_path="wiki/pages")
    talk = Talk(library)
    events = talk.ask("[[wiki/pages/B.md]] [[wiki/pages/A.md]] 对比 pump")
    assert of(events, "knowledge_search_done")[0]["data"]["paths"][:2] == ["wiki/pages/B.md", "wiki/pages/A.md"]
    assert [row["metadata"]["hit_reason"] for row in of(events, "references")[0]["knowledge_references"][:2]] == ["explicit", "explicit"]
    again = talk.ask("[[wiki/不存在.md]] 说了啥")
    assert "wiki/不存在.md" in said(again)
    assert "wiki/不存在.md" not in [path for event in again for path in (event.get("data") or {}).get("paths", [])]


def test_bases_stay_apart(library: Library) -> None:
    with space_scope(library.space.pk):
        empty = base_create(actor=library.actor, values={"name": "Empty"})
    talk = Talk(library)
    full = talk.ask("总结这些文章")
    assert of(full, "knowledge_search_done")[0]["data"]["paths"] == ["传感器-TH01.md"]
    none = talk.ask("总结这些文章", knowledge_base_ids=[str(empty.uid)])
    assert of(none, "knowledge_search_empty")[0]["data"]["count"] == 0 and not of(none, "references")
    assert of(talk.ask("总结这些文章"), "knowledge_search_done")[0]["data"]["paths"] == ["传感器-TH01.md"]


def test_streams_are_continued_from_their_beginning(library: Library) -> None:
    talk = Talk(library)
    events = talk.ask("传感器多久校准一次？")
    message = events[0]["assistant_message_id"]
    again = talk.call("get", f"sessions/continue-stream/{talk.id}", {"message_id": message})
    assert events_of(b"".join(again)) == events
    assert talk.call("get", f"sessions/continue-stream/{talk.id}").status_code == 400
    assert talk.call("get", f"sessions/continue-stream/{talk.id}", {"message_id": str(uuid.uuid4())}).status_code == 404
    stopped = talk.call("post", f"sessions/{talk.id}/stop", {"message_id": message})
    assert stopped.json() == {"success": True, "message": "Message already completed"}
    assert talk.call("post", f"sessions/{talk.id}/stop", {}).json() == {"error": "message_id is required"}
    with unscoped("test data"):
        StreamEvent.objects.all().delete()
    bare = talk.call("get", f"sessions/continue-stream/{talk.id}", {"message_id": message})
    assert (bare.status_code, bare.json()) == (404, {"success": False, "error": "No stream events found"})


def test_a_stop_ends_the_answer_where_it_is(library: Library) -> None:
    talk = Talk(library)

    def script(_asked: dict[str, Any]) -> Iterator[str]:
        yield "First "
        for channel in list(hub._channels.values()):
            channel.stopped.set()
        time.sleep(0.1)
        yield "second."

    with chat_model(library, script):  # type: ignore[arg-type]
        events = talk.ask("传感器多久校准一次？")
    assert types(events)[-1] == "stop" and "second" not in said(events) and not of(events, "complete")
    assert talk.messages()[1]["state"] == "stopped"


def test_an_answer_whose_writer_was_killed_is_ended(library: Library) -> None:
    talk = Talk(library)
    talk.ask("传感器多久校准一次？")
    with unscoped("test data"):
        reply = Message.objects.get(role="assistant")
        StreamEvent.objects.filter(message=reply, payload__response_type__in=["complete", "session_title"]).delete()
        Message.objects.filter(pk=reply.pk).update(state="running", content="", lease_until=timezone.now() - timedelta(seconds=1))
    found = talk.messages()[1]
    assert (found["state"], found["reason"], found["is_completed"]) == ("failed", "interrupted", True)
    assert "每季度校准一次" in found["content"]
    again = events_of(b"".join(talk.call("get", f"sessions/continue-stream/{talk.id}", {"message_id": found["id"]})))
    assert again[-1]["response_type"] == "error" and again[-1]["done"] and again[-1]["data"]["stage"] == "interrupted"


def test_conversations_are_their_owners_alone(library: Library) -> None:
    talk = Talk(library)
    message = talk.ask("传感器多久校准一次？")[0]["assistant_message_id"]
    other = Talk(library, library.member)
    other.id = talk.id
    assert other.call("get", f"sessions/{talk.id}").status_code == 404
    assert other.call("get", f"messages/{talk.id}/load").status_code == 404
    assert other.call("post", f"knowledge-chat/{talk.id}", {"query": "传感器"}).status_code == 404
    assert other.call("post", f"sessions/{talk.id}/stop", {"message_id": message}).status_code == 404
    assert other.call("get", f"sessions/continue-stream/{talk.id}", {"message_id": message}).status_code == 404


def test_sessions_are_listed_renamed_pinned_and_deleted(library: Library) -> None:
    talk, second = Talk(library), Talk(library)
    assert talk.call("post", "sessions", {"knowledge_base_id": "x", "session_strategy": {}, "agent_config": {}}).status_code == 201
    assert talk.call("put", f"sessions/{talk.id}", {"title": "Pumps"}).json()["data"]["title"] == "Pumps"
    assert talk.call("post", f"sessions/{talk.id}/pin").json() == {"success": True, "is_pinned": True}
    listed = talk.call("get", "sessions", {"page_size": 2}).json()
    assert [row["id"] for row in listed["data"]][0] == talk.id and (listed["total"], listed["page"], listed["page_size"]) == (3, 1, 2)
    assert [row["id"] for row in talk.call("get", "sessions", {"keyword": "pump"}).json()["data"]] == [talk.id]
    assert talk.call("get", "sessions", {"page_size": 1001}).json()["error"]["code"] == 1000
    titled = talk.call(
        "post", f"sessions/{second.id}/generate_title", {"messages": [{"role": "user", "content": "How is the pump primed?"}]}
    )
    assert titled.json() == {"success": True, "data": "How is the pump primed"}
    talk.ask("传感器多久校准一次？")
    assert talk.call("get", f"sessions/{talk.id}").json()["data"]["title"] == "Pumps", "a title a person gave stays"
    assert talk.call("delete", f"sessions/{talk.id}/messages").json()["deleted_count"] == 2
    assert talk.messages() == []
    assert talk.call("delete", "sessions/batch", {"ids": [talk.id, second.id]}).json()["deleted_count"] == 2
    assert talk.call("delete", "sessions/batch", {}).status_code == 400
    assert talk.call("delete", "sessions/batch", {"delete_all": True}).json()["deleted_count"] == 1


def test_messages_are_read_in_pages(library: Library) -> None:
    talk = Talk(library)
    for question in ("传感器多久校准一次？", "ERR-4021 表示什么？"):
        talk.ask(question)
    rows = talk.messages()
    assert [row["role"] for row in rows] == ["user", "assistant", "user", "assistant"]
    newest = talk.call("get", f"messages/{talk.id}/load", {"limit": 2}).json()["data"]
    assert [row["id"] for row in newest] == [row["id"] for row in rows[2:]]
    before = newest[0]["created_at"].replace("Z", "123Z") if "." in newest[0]["created_at"] else newest[0]["created_at"]
    earlier = talk.call("get", f"messages/{talk.id}/load", {"limit": "many", "before_time": before}).json()["data"]
    assert [row["id"] for row in earlier][:2] == [row["id"] for row in rows[:2]]
    assert talk.call("get", f"messages/{talk.id}/load", {"before_time": "yesterday"}).json()["error"]["code"] == 1000
    assert talk.call("delete", f"messages/{talk.id}/{rows[2]['id']}").status_code == 200
    assert len(talk.messages()) == 2
    found = talk.call("post", "messages/search", {"query": "校准"}).json()["data"]
    assert found["total"] == 1 and found["items"][0]["query_content"] == "传感器多久校准一次？"


def test_a_model_may_search_by_itself(library: Library) -> None:
    four(library)
    talk = Talk(library)

    def script(asked: dict[str, Any]) -> list[str | dict[str, Any]]:
        if any(message["role"] == "tool" for message in asked["messages"]):
            return ["Pump 4 opens at 44 bar [7][99]."]
        assert asked["tools"][0]["function"]["name"] == "query_knowledge_base"
        function = {"name": "query_knowledge_base", "arguments": '{"query": "ERR-4021"}'}
        return [{"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}]

    with chat_model(library, script) as (endpoint, _row):
        events = talk.ask("At which pressure does the valve of each pump open?", route="agent-chat")
    tool = endpoint.requests[-1]["messages"][-1]
    known = len(of(events, "references")[0]["knowledge_references"])
    assert tool["role"] == "tool" and f"[{known + 1}] 传感器-TH01.md" in tool["content"]
    assert [event["data"]["tool_name"] for event in of(events, "tool_call")] == ["knowledge_search", "query_knowledge_base"]
    assert len(of(events, "references")[-1]["knowledge_references"]) == known + 1
    assert "[99]" not in said(events) and of(events, "complete")[0]["data"]["total_steps"] == 2
    with unscoped("test data"):
        journal.flush()
        assert RetrievalLog.objects.filter(door="tool", rule="tool", query_text="ERR-4021").count() == 1


def test_a_model_that_takes_no_tools_answers_without(library: Library) -> None:
    talk = Talk(library)
    with chat_model(library, lambda _asked: ["每季度 [1]"]) as (endpoint, _row):
        streams = endpoint.behave
        endpoint.behave = lambda body, handler: (
            answer_with(handler, 400, {"error": {"message": "tools are not supported"}})
            if "tools" in endpoint.requests[-1]
            else streams(body, handler)  # type: ignore[misc]
        )
        assert said(talk.ask("传感器多久校准一次？", route="agent-chat")).startswith("每季度 [1]\n\n参考页面：")
