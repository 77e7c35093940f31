"""What a turn promises, line by line: the search, references, the decision, a turn from end to end, bases that stay apart, faults.

Each test is named after its line; the sections are those of the design of automatic retrieval (7.2 to 7.8).
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.chat.models import Message
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.services import base_create
from apps.llm.models import Model
from apps.retrieval.journal import journal
from apps.retrieval.models import RetrievalLog
from apps.retrieval.selectors import (
    Found,
    Scope,
    budget_chars,
    parse_explicit_page_refs,
    parse_references,
    search_knowledge_base,
    should_use_knowledge_base,
)
from tests.support.chatting import chat_model
from tests.support.library import Library
from tests.support.talking import Talk, of, said, types

pytestmark = pytest.mark.django_db

SESSIONS = "wiki/synthesis/sessions"
PUMP = "离心泵的密封圈每五年更换一次。"


@pytest.fixture
def library() -> Library:
    journal.forget()
    made = Library.make()
    made.add("OpenClaw.md", "# OpenClaw\n\nOpenClaw 是本地智能体，技能写成文本文件。\n", folder_path=SESSIONS)
    made.add("泵.md", f"# 泵\n\n{PUMP}\n", folder_path=SESSIONS)
    made.add("咖啡.md", "# 咖啡\n\n手冲咖啡的水温以九十二度为宜。\n", folder_path=SESSIONS)
    return made


def look(library: Library, query: str, base: KnowledgeBase | None = None, **options: Any) -> Found:
    with space_scope(library.space.pk):
        scope = Scope(kb_uids=((base or library.base).uid,))
        return search_knowledge_base(actor=library.actor, query=query, scope=scope, explicit_refs=parse_references(query), **options)


def other_base(library: Library, name: str = "B") -> KnowledgeBase:
    with space_scope(library.space.pk):
        return base_create(actor=library.actor, values={"name": name})


def logged() -> list[RetrievalLog]:
    journal.flush()
    with unscoped("test"):
        return list(RetrievalLog.objects.filter(door="ask").order_by("pk"))


def paths(events: list[dict[str, Any]]) -> list[str]:
    return [path for event in of(events, "knowledge_search_done") for path in event["data"]["paths"]]


# 7.2 the search


def test_7_2_1_a_question_about_these_articles_finds_the_newest_sessions(library: Library) -> None:
    with unscoped("test data"):
        for days, name in enumerate(("咖啡.md", "OpenClaw.md", "泵.md")):
            Document.objects.filter(file_name=name).update(updated_at=timezone.now() - timedelta(days=days))
    hits = look(library, "总结这些文章").hits
    assert [(hit.path, hit.hit_reason) for hit in hits] == [
        (f"{SESSIONS}/咖啡.md", "recent_synthesis"),
        (f"{SESSIONS}/OpenClaw.md", "recent_synthesis"),
        (f"{SESSIONS}/泵.md", "recent_synthesis"),
    ]


@pytest.mark.parametrize(("query", "reason"), [("OpenClaw 相关页面讲了什么", "title"), ("技能写成什么文件？", "body")])
def test_7_2_2_a_word_finds_title_or_text(library: Library, query: str, reason: str) -> None:
    reasons = {hit.path: hit.hit_reason for hit in look(library, query).hits}
    assert f"{SESSIONS}/OpenClaw.md" in reasons
    if reason == "body":
        assert reasons[f"{SESSIONS}/OpenClaw.md"] == "body"


def test_7_2_3_a_hit_has_all_its_parts(library: Library) -> None:
    hit = look(library, "密封圈多久更换一次？").hits[0]
    with unscoped("test"):
        document = Document.objects.get(file_name="泵.md")
    assert (hit.path, hit.title, hit.mtime, hit.hit_reason) == (f"{SESSIONS}/泵.md", "泵.md", document.updated_at, "body")
    assert PUMP in hit.snippet and hit.score > 0


def test_7_2_4_at_most_six_pages_or_as_many_as_wished(library: Library) -> None:
    for number in range(8):
        library.add(f"阀门-{number}.md", f"阀门 {number} 号的开启压力是 {number} 巴。")
    assert len(look(library, "阀门的开启压力").hits) == 6
    assert len(look(library, "阀门的开启压力", max_pages=2).hits) == 2


def test_7_2_5_and_6_excerpts_and_their_sum_stay_within_bounds(library: Library) -> None:
    for number in range(4):
        library.add(f"锅炉-{number}.md", f"锅炉 {number} 号每天检查水位。" * 60)
    lengths = [len(hit.snippet) for hit in look(library, "锅炉每天检查水位", snippet_max_chars=120, total_budget_chars=300).hits]
    assert len(lengths) == 3 and sum(lengths) == 300 and 100 < max(lengths) <= 120
    assert max(len(hit.snippet) for hit in look(library, "锅炉每天检查水位").hits) <= 600


def test_7_2_7_what_is_named_stays_even_beyond_the_budget(library: Library) -> None:
    query = f"[[{SESSIONS}/泵.md]] [[{SESSIONS}/咖啡.md]] [[{SESSIONS}/OpenClaw.md]] 对比"
    hits = look(library, query, total_budget_chars=30).hits
    assert [(hit.path.rpartition("/")[2], hit.hit_reason, len(hit.snippet)) for hit in hits] == [
        ("泵.md", "explicit", 10),
        ("咖啡.md", "explicit", 10),
        ("OpenClaw.md", "explicit", 10),
    ]
    assert [len(hit.snippet) for hit in look(library, query, total_budget_chars=1).hits] == [1, 1, 1]


def test_7_2_8_an_empty_base_gives_nothing(library: Library) -> None:
    assert look(library, "总结这些文章", other_base(library)).hits == []


def test_7_2_9_the_same_question_gives_the_same(library: Library) -> None:
    def once() -> list[tuple[str, str, float, str]]:
        return [(hit.path, hit.snippet, hit.score, hit.hit_reason) for hit in look(library, "密封圈多久更换一次？").hits]

    assert once() == once() == once() != []


def test_7_2_10_what_just_came_in_is_found_at_once(library: Library) -> None:
    assert "压缩机" not in "".join(hit.snippet for hit in look(library, "压缩机的油位").hits)
    library.add("压缩机.md", "压缩机的油位每班检查一次。", folder_path=SESSIONS)
    assert look(library, "压缩机的油位").hits[0].path == f"{SESSIONS}/压缩机.md"
    assert look(library, "总结这些文章").hits[0].path == f"{SESSIONS}/压缩机.md"


# 7.3 references


@pytest.mark.parametrize(
    ("message", "refs"),
    [
        ("这是什么 [[wiki/synthesis/sessions/x.md]]", ["wiki/synthesis/sessions/x.md"]),
        ("[[wiki/a.md]] 和 [[wiki/b.md]]", ["wiki/a.md", "wiki/b.md"]),
        ("[[wiki/a.md]] [[wiki/a.md]]", ["wiki/a.md"]),
        ("普通文本无引用", []),
        ("[[notwiki.md]]", []),
    ],
)
def test_7_3_explicit_page_references(message: str, refs: list[str]) -> None:
    assert parse_explicit_page_refs(message) == refs


# 7.4 the decision


@pytest.mark.parametrize(
    ("message", "selected", "expected"),
    [
        ("总结一下", False, False),
        ("/sediment", True, False),
        ("/pdf", True, False),
        ("你好", True, False),
        ("谢谢", True, False),
        ("ok", True, False),
        ("当前模型是什么", True, False),
        ("[[wiki/x.md]] 说了啥", True, True),
        ("总结一下", True, True),
        ("这是我自媒体创作的文章，总结一下", True, True),
        ("OpenClaw 相关页面讲了什么", True, True),
        ("嗯", True, False),
    ],
)
def test_7_4_whether_it_is_looked_up(message: str, selected: bool, expected: bool) -> None:
    assert should_use_knowledge_base(message, selected) is expected


# 7.5 a turn from end to end


def test_7_5_1_the_order_of_events(library: Library) -> None:
    kinds = [
        kind for kind in types(Talk(library).ask("密封圈多久更换一次？")) if kind.startswith("knowledge_") or kind in ("answer", "complete")
    ]
    assert kinds == ["knowledge_search_start", "knowledge_search_done", "answer", "complete"]


@pytest.mark.parametrize("message", ["你好", "当前模型是什么？", "/pdf", "嗯"])
def test_7_5_2_without_a_search_there_is_no_event_of_one(library: Library, message: str) -> None:
    events = Talk(library).ask(message)
    assert [kind for kind in types(events) if kind.startswith("knowledge_search")] == []
    assert [row.decision for row in logged()] == ["skip"]


def test_7_5_3_a_search_that_fails_is_told_and_the_bare_question_is_answered(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_options: Any) -> None:
        raise PermissionError(13, "Permission denied", "/data/index")

    monkeypatch.setattr("apps.chat.turns.lookup.search_knowledge_base", broken)
    with chat_model(library, lambda _asked: ["Plain."]) as (endpoint, _row):
        events = Talk(library).ask("密封圈多久更换一次？")
        assert endpoint.requests[-1]["messages"][-1]["content"] == "密封圈多久更换一次？"
    kinds = types(events)
    assert kinds.index("knowledge_search_error") < kinds.index("answer") < kinds.index("complete")
    assert said(events) == "Plain."


@pytest.mark.parametrize("window", [1000, 8000])
def test_7_5_4_what_is_put_before_a_model_fits_a_fifth_of_its_window(library: Library, window: int) -> None:
    library.add("long.md", "密封圈更换记录。" * 900)
    with chat_model(library, lambda _asked: ["好 [1]"]) as (_endpoint, row):
        with unscoped("test data"):
            Model.objects.filter(pk=row.pk).update(context_window=window)
        Talk(library).ask("密封圈更换记录保存多久？")
    (row_logged,) = logged()
    assert row_logged.budget_chars == budget_chars(window) == window // 5
    assert 0 < row_logged.injected_chars <= window // 5


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("每五年一次 [1]。", [f"{SESSIONS}/泵.md"]),  # left out: put in
        (f"每五年一次 [1]。\n\n参考页面：\n- 《泵.md》：{SESSIONS}/泵.md\n", [f"{SESSIONS}/泵.md"]),
        (f"每五年一次 [1]。\n\n参考页面：\n- 《泵.md》：{SESSIONS}/泵.md\n- 《编》：wiki/编造.md\n", [f"{SESSIONS}/泵.md"]),
        ("每五年一次 [1]。\n\n参考页面：\n- 《编》：wiki/编造.md\n", [f"{SESSIONS}/泵.md"]),
        ("当前知识库未找到相关内容。", []),
    ],
)
def test_7_5_5_the_pages_at_the_end_are_those_that_were_found(library: Library, written: str, listed: list[str]) -> None:
    with chat_model(library, lambda _asked: [written[:9], written[9:]]):
        events = Talk(library).ask("密封圈多久更换一次？")
    _body, _head, tail = said(events).partition("参考页面")
    found = re.findall(r"(?m)^- 《.*》：(.*)$", tail)
    assert found == listed and set(found) <= set(paths(events))
    assert bool(tail) is bool(listed)


def test_7_5_5_the_built_in_answerer_lists_them_too(library: Library) -> None:
    events = Talk(library).ask("密封圈多久更换一次？")
    assert f"参考页面：\n- 《泵.md》：{SESSIONS}/泵.md" in said(events)


def test_7_5_6_every_turn_decides_and_searches_by_itself(library: Library) -> None:
    talk = Talk(library)
    talk.ask("密封圈多久更换一次？")
    talk.ask("谢谢")
    third = talk.ask("手冲咖啡的水温是多少？")
    assert paths(third)[0] == f"{SESSIONS}/咖啡.md"
    rows = logged()
    assert [(row.query_text, row.decision) for row in rows] == [
        ("密封圈多久更换一次？", "search"),
        ("谢谢", "skip"),
        ("手冲咖啡的水温是多少？", "search"),
    ]


# 7.6 what is named


def test_7_6_1_what_is_named_comes_first(library: Library) -> None:
    events = Talk(library).ask(f"[[{SESSIONS}/咖啡.md]] 密封圈多久更换一次？")
    reference = of(events, "references")[0]["knowledge_references"][0]
    assert paths(events)[0] == f"{SESSIONS}/咖啡.md" and reference["metadata"]["hit_reason"] == "explicit"


def test_7_6_2_two_that_are_named_are_the_first_two(library: Library) -> None:
    assert paths(Talk(library).ask(f"[[{SESSIONS}/咖啡.md]] [[{SESSIONS}/OpenClaw.md]] 对比"))[:2] == [
        f"{SESSIONS}/咖啡.md",
        f"{SESSIONS}/OpenClaw.md",
    ]


def test_7_6_3_what_is_found_beside_it_follows(library: Library) -> None:
    events = Talk(library).ask(f"[[{SESSIONS}/咖啡.md]] 再结合全库看看密封圈多久更换")
    reasons = [row["metadata"]["hit_reason"] for row in of(events, "references")[0]["knowledge_references"]]
    assert paths(events)[0] == f"{SESSIONS}/咖啡.md" and f"{SESSIONS}/泵.md" in paths(events)[1:]
    assert reasons[0] == "explicit" and "explicit" not in reasons[1:] and len(reasons) <= 4


@pytest.mark.parametrize("named", ["wiki/不存在.md", "没有这一页"])
def test_7_6_4_what_does_not_exist_is_said(library: Library, named: str) -> None:
    with chat_model(library, lambda _asked: ["没有这一页。"]) as (endpoint, _row):
        events = Talk(library).ask(f"[[{named}]] 说了啥")
        prompt = endpoint.requests[-1]["messages"][-1]["content"]
    assert prompt.endswith(f"\n用户引用了 {named}，但该页面不存在")
    assert named not in paths(events)
    told = of(events, "knowledge_search_empty") or of(events, "knowledge_search_done")
    assert told[0]["data"]["missing"] == [named]
    (row,) = logged()
    assert row.explicit_refs["missing"] == [named]


# 7.7 bases stay apart


def test_7_7_bases_stay_apart(library: Library) -> None:
    empty, talk = other_base(library), Talk(library)
    first = talk.ask("总结这些文章")
    assert sorted(paths(first)) == sorted(f"{SESSIONS}/{name}" for name in ("OpenClaw.md", "泵.md", "咖啡.md"))
    second = talk.ask("总结这些文章", knowledge_base_ids=[str(empty.uid)])
    assert paths(second) == [] and "当前知识库未找到相关内容" in said(second)
    assert SESSIONS not in said(second)
    assert paths(talk.ask("总结这些文章")) == paths(first)


# 7.8 faults


def test_7_8_1_a_file_that_cannot_be_read(library: Library, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_args: Any, **_options: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("apps.retrieval.grounding.finding.search", broken)
    events = Talk(library).ask("密封圈多久更换一次？")
    assert of(events, "knowledge_search_error")[0]["data"]["code"] == "unreadable"
    assert said(events) and types(events)[-2] == "complete"
    (row,) = logged()
    assert (row.outcome, row.error) == ("error", "unreadable")
    assert any(record.exc_info and "search of a turn failed" in record.message for record in caplog.records), "with its stack"


def test_7_8_2_too_much_text_is_cut_to_the_budget(library: Library) -> None:
    for number in range(6):
        library.add(f"huge-{number}.md", f"密封圈更换记录 {number}。" * 2000)
    events = Talk(library).ask("密封圈更换记录")
    assert types(events)[-2] == "complete" and not of(events, "knowledge_search_error")
    (row,) = logged()
    assert row.budget_chars == 4000 and 0 < row.injected_chars <= 4000


@pytest.mark.parametrize("broken", ["apps.chat.turns.lookup.decide", "apps.chat.turns.lookup.parse_references"])
def test_7_8_3_rules_that_fail_end_in_the_bare_question(library: Library, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def raising(*_args: Any) -> None:
        raise ValueError("a rule is broken")

    monkeypatch.setattr(broken, raising)
    with chat_model(library, lambda _asked: ["Plain."]) as (endpoint, _row):
        events = Talk(library).ask("密封圈多久更换一次？")
        assert endpoint.requests[-1]["messages"][-1]["content"] == "密封圈多久更换一次？"
    assert of(events, "knowledge_search_error")[0]["data"]["code"] == "internal" and said(events) == "Plain."
    with unscoped("test"):
        assert Message.objects.get(role="assistant").state == "done"


def test_a_prompt_that_cannot_be_built_ends_in_the_bare_question(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_args: Any) -> None:
        raise ValueError("too long")

    monkeypatch.setattr("apps.chat.turns.writing.build_knowledge_context_prompt", raising)
    with chat_model(library, lambda _asked: ["Plain [1]."]) as (endpoint, _row):
        events = Talk(library).ask("密封圈多久更换一次？")
        assert endpoint.requests[-1]["messages"][-1]["content"] == "密封圈多久更换一次？"
    assert len(of(events, "knowledge_search_error")) == 1 and len(of(events, "complete")) == 1
