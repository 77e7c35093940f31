"""The seven scripts of asking, end to end over REST: what the stream says, what the answer says, and what the retrieval log keeps of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from apps.chat.models import Citation
from apps.common.errors import Unavailable
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Document
from apps.knowledge.services import base_create
from apps.retrieval.journal import journal
from apps.retrieval.models import RetrievalLog
from apps.retrieval.selectors import search_figures, turns_by_day
from apps.spaces.services.keys import key_create
from tests.support.library import Library
from tests.support.talking import Talk, of, said, types

pytestmark = pytest.mark.django_db

ARTICLES = {
    "OpenClaw-上手.md": "# OpenClaw 上手\n\nOpenClaw 是一个开源的本地智能体，安装只需一条命令。它把技能写成文本文件。\n",
    "AI-写作.md": "# AI 写作\n\n用 AI 写作时先列提纲，再让模型逐段扩写。传播亮点在于把结论放在第一句。\n",
    "摄影-夜景.md": "# 夜景摄影\n\n拍夜景要用三脚架，快门放慢到两秒以上。\n",
    "跑步-入门.md": "# 跑步入门\n\n初学者每周跑三次，每次二十分钟即可。\n",
    "咖啡-手冲.md": "# 手冲咖啡\n\n手冲咖啡的水温以九十二度为宜，粉水比一比十五。\n",
    "旅行-京都.md": "# 京都旅行\n\n京都的红叶在十一月下旬最好看。\n",
    "读书-笔记.md": "# 读书笔记\n\n读书笔记应当写下自己的疑问，而不是抄书。\n",
}


@pytest.fixture
def shelf() -> Library:
    journal.forget()
    made = Library.make()
    for name, text in ARTICLES.items():
        made.add(name, text, folder_path="wiki/synthesis/sessions")
    return made


def rows() -> list[RetrievalLog]:
    journal.flush()
    with unscoped("test"):
        return list(RetrievalLog.objects.filter(door="ask").order_by("pk"))


def paths(events: list[dict[str, Any]]) -> list[str]:
    return [path for event in of(events, "knowledge_search_done") for path in event["data"]["paths"]]


def test_script_1_a_summary_of_what_just_came_in(shelf: Library) -> None:
    events = Talk(shelf).ask("这是我自媒体创作的文章，总结一下。")
    kinds = types(events)
    assert kinds.index("knowledge_search_start") < kinds.index("knowledge_search_done") < kinds.index("answer") < kinds.index("complete")
    found = paths(events)
    assert len(found) >= 3 and all(path.startswith("wiki/synthesis/sessions/") for path in found)
    text = said(events)
    listed = text.partition("参考页面")[2]
    assert sum(path in listed for path in found) >= 3
    assert sum(topic in text for topic in ("OpenClaw", "提纲", "三脚架", "二十分钟", "九十二度", "红叶", "疑问")) >= 3
    (row,) = rows()
    assert (row.decision, row.outcome) == ("search", "hit") and row.hits_count >= 3 and (row.injected_chars or 0) > 0


def test_script_2_one_topic(shelf: Library) -> None:
    events = Talk(shelf).ask("OpenClaw 相关的文章讲了什么？")
    assert "wiki/synthesis/sessions/OpenClaw-上手.md" in paths(events)
    assert "OpenClaw" in said(events) and "[1]" in said(events)
    cited = [row for event in of(events, "references") for row in event["knowledge_references"]]
    assert any("OpenClaw" in row["content"] for row in cited)


def test_script_3_another_base_knows_nothing_of_the_first(shelf: Library) -> None:
    with space_scope(shelf.space.pk):
        other = base_create(actor=shelf.actor, values={"name": "Other"})
    talk = Talk(shelf)
    assert paths(talk.ask("这些文章总结一下。"))
    events = talk.ask("这些文章总结一下。", knowledge_base_ids=[str(other.uid)])
    assert paths(events) == [] and of(events, "knowledge_search_empty")[0]["data"]["count"] == 0
    assert "当前知识库未找到相关内容" in said(events)
    assert not any(name in said(events) for name in ARTICLES)
    assert [row.outcome for row in rows()] == ["hit", "miss"]


def test_script_4_what_is_named_comes_first(shelf: Library) -> None:
    named = "wiki/synthesis/sessions/AI-写作.md"
    events = Talk(shelf).ask(f"[[{named}]] 总结它的传播亮点")
    found = paths(events)
    assert found[0] == named and len(found) <= 4
    assert "传播亮点在于把结论放在第一句" in said(events)
    (row,) = rows()
    assert row.explicit_refs["found"] == [named] and row.explicit_refs["missing"] == []


@pytest.mark.parametrize("message", ["你好。", "当前模型是什么？", "/sediment"])
def test_script_5_talk_is_not_looked_up(shelf: Library, message: str) -> None:
    events = Talk(shelf).ask(message)
    assert not any(kind.startswith("knowledge_search") for kind in types(events)) and said(events)
    (row,) = rows()
    assert (row.decision, row.outcome, row.hits) == ("skip", "skip", [])


def test_script_6_each_turn_is_looked_up_by_itself(shelf: Library) -> None:
    talk = Talk(shelf)
    first = talk.ask("总结一下这批文章")
    second = talk.ask("其中讲 AI 的那篇具体说了什么？")
    assert len(paths(first)) >= 3 and types(second)[:2] == ["agent_query", "knowledge_search_start"]
    found = rows()
    assert [row.query_text for row in found] == ["总结一下这批文章", "其中讲 AI 的那篇具体说了什么？"]
    assert [row.decision for row in found] == ["search", "search"] and found[0].hits != found[1].hits
    with unscoped("test"):
        titles = set(Document.objects.filter(uid__in=[hit["document"] for hit in found[1].hits]).values_list("title", flat=True))
    assert "AI-写作.md" in titles


def test_script_7_a_search_that_fails_is_told_and_logged(shelf: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any, **_values: Any) -> Any:
        raise Unavailable("the index cannot be read", code="index_unreadable")

    monkeypatch.setattr("apps.retrieval.grounding.finding.search", broken)
    events = Talk(shelf).ask("总结一下")
    kinds = types(events)
    assert kinds.index("knowledge_search_error") < kinds.index("answer") < kinds.index("complete")
    assert of(events, "knowledge_search_error")[0]["data"]["code"] == "index_unreadable" and said(events)
    (row,) = rows()
    assert (row.outcome, row.error) == ("error", "index_unreadable")


def test_two_askers_with_different_rights_see_their_own_passages_alone(shelf: Library) -> None:
    """The same words, the same scope ("everything I may read"), asked in turn: what one may not read never reaches the other."""
    with space_scope(shelf.space.pk):
        secret = base_create(actor=shelf.actor, values={"name": "Board"})
        keys = {}
        for name, kb_uids in (("all", []), ("one", [shelf.base.uid])):
            given = {"full_access": False, "capabilities": ["retrieve", "chat"], "kb_uids": kb_uids}
            keys[name] = key_create(actor=shelf.actor, space=shelf.space, name=name, **given)[1]
    shelf.base, open_base = secret, shelf.base
    shelf.add("董事会.md", "# 董事会纪要\n\n咖啡预算明年增加三成，手冲咖啡机由财务采购。\n")
    shelf.base = open_base

    def ask(key: str) -> list[dict[str, Any]]:
        client = Client(headers={"X-API-Key": key, "Accept-Language": "en"})
        talk = Talk.__new__(Talk)
        talk.library, talk.client, talk.headers = shelf, client, {"X-API-Key": key, "Accept-Language": "en"}
        talk.id = talk.call("post", "sessions", {}).json()["data"]["id"]
        return talk.ask("咖啡预算明年增加多少？手冲咖啡的水温是多少？", knowledge_base_ids=[])

    for _turn in range(3):
        whole, part = ask(keys["all"]), ask(keys["one"])
        assert "预算明年增加三成" in said(whole)
        told = json.dumps(part, ensure_ascii=False)
        assert "九十二度" in told and "董事会" not in told and "增加三成" not in told and str(secret.uid) not in told
    with unscoped("test"):
        kept = {(row.message.session.owner, row.kb_uid) for row in Citation.objects.select_related("message__session")}
    assert len({owner for owner, _kb in kept}) == 2
    assert {owner for owner, kb in kept if kb == secret.uid} < {owner for owner, kb in kept if kb == open_base.uid}


def test_the_log_tells_how_often_a_question_was_looked_up(shelf: Library) -> None:
    talk = Talk(shelf)
    for message in ("你好。", "OpenClaw 相关的文章讲了什么？", "谢谢"):
        talk.ask(message)
    assert len(rows()) == 3
    with unscoped("test"):
        figures = search_figures(RetrievalLog.objects.all())
        today = turns_by_day(RetrievalLog.objects.all(), 14)[-1]
    assert (figures.turns, figures.looked_up, figures.asked) == (3, 1, 1)
    assert today.counts == {"search": 1, "skip": 2}
