"""A question over REST: events, order, framing, and what is kept of it."""

from __future__ import annotations

import pytest

from tests.support.library import Library
from tests.support.talking import Talk, of, said, types

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
