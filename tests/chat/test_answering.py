"""The built-in answerer, the gate before it, and the check of citations, on plain texts."""

from __future__ import annotations

import random
import re
import uuid

import pytest

from apps.chat.answerers.citations import MarkFilter, body_of, cited_numbers, supports
from apps.chat.answerers.evidence import Source, judge
from apps.chat.answerers.extractive import extract, written
from apps.chat.answerers.sentences import sentences
from apps.chat.titles import title_of
from apps.portal.asking.marks import answer_html

UID = uuid.UUID(int=1)
CITE = re.compile(r'<a class="cite[^>]*>(\d+)</a>')
MANUAL = "安装完成后静置三十分钟。传感器应每季度校准一次，记录保存两年。偏差超过 0.5 度应更换探头。"
CODES = "| 代码 | 含义 |\n|---|---|\n| ERR-4021 | 过热保护 |\n| ERR-4022 | 探头断线 |"
PUMP = "The pump must be primed before use. Dr. Lee wrote the manual. The seal is replaced every five years, e.g. in spring."


def test_sentences_are_cut_where_they_end() -> None:
    assert [sentence.text for sentence in sentences(MANUAL)] == [
        "安装完成后静置三十分钟。",
        "传感器应每季度校准一次，记录保存两年。",
        "偏差超过 0.5 度应更换探头。",
    ]
    assert [sentence.text for sentence in sentences(PUMP)] == [
        "The pump must be primed before use.",
        "Dr. Lee wrote the manual.",
        "The seal is replaced every five years, e.g. in spring.",
    ]
    assert [sentence.text for sentence in sentences(CODES)] == ["| 代码 | 含义 |", "| ERR-4021 | 过热保护 |", "| ERR-4022 | 探头断线 |"]
    assert sentences("# Title\n\n---\n") == []
    cut = sentences(MANUAL)[1]
    assert MANUAL[cut.start : cut.end] == cut.text


def test_the_best_sentences_come_in_reading_order_each_with_its_source() -> None:
    found = [Source(1, PUMP), Source(2, MANUAL), Source(3, CODES)]
    assert written(extract("传感器多久校准一次？", found)) == "传感器应每季度校准一次，记录保存两年。 [2]"
    assert written(extract("How often is the seal replaced?", found)) == "The seal is replaced every five years, e.g. in spring. [1]"
    both = written(extract("传感器多久校准一次？过热保护的代码？", found))
    assert both == "- 传感器应每季度校准一次，记录保存两年。 [2]\n- ERR-4021 · 过热保护 [3]"
    assert written(extract("总结一下", found, general=True)).count("[") == 3
    assert extract("x", []) == []


@pytest.mark.parametrize(
    ("question", "enough", "rule"),
    [
        ("传感器多久校准一次？", True, "words"),
        ("备用电池的型号是什么？", False, "words"),
        ("How often is the seal replaced?", True, "words"),
        ("Which colour has the spare battery of the forklift?", False, "words"),
    ],
)
def test_the_gate_by_words(question: str, enough: bool, rule: str) -> None:
    evidence = judge(question, [Source(1, MANUAL), Source(2, PUMP), Source(3, CODES)])
    assert (evidence.enough, evidence.rule) == (enough, rule)


def test_the_gate_by_what_stands_there_and_by_meaning() -> None:
    assert judge("备用电池", []).rule == "nothing"
    assert judge("XQ-1", [Source(1, "XQ-1", exact=True)]).rule == "exact"
    assert judge("电池", [Source(1, PUMP, explicit=True)]).rule == "explicit"
    near, far = Source(1, PUMP, nearness=0.80), Source(1, PUMP, nearness=0.70)
    assert judge("密封圈多久换一次？", [near]).enough and judge("密封圈多久换一次？", [near]).rule == "meaning"
    assert not judge("密封圈多久换一次？", [far]).enough


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("said", "shown", "dropped"),
    [
        ("A [3], B [1]; C [3] D [9].", "A [3], B [1]; C [3] D.", ["9"]),
        ("多个 [1, 9，2]。", "多个 [1][2]。", ["9"]),
        ("全角【2】和【8】", "全角[2]和", ["8"]),
        ("脚注[^1]", "脚注[1]", []),
        ("链接 [1](https://example.com) 留着", "链接 [1](https://example.com) 留着", []),
        ("`a[9]` 和 a [1]", "`a[9]` 和 a [1]", []),
        ("```\nx = a[9]\n```\n然后 [9]", "```\nx = a[9]\n```\n然后", ["9"]),
        ("[草稿] 不是标记 [", "[草稿] 不是标记 [", []),
        (
            "好 [1]\n\n参考页面：\n- 《甲》：a.md\n- 《乙》：编造.md\n",
            "好 [1]\n\n参考页面：\n- 《甲》：a.md\n",
            ["编造.md"],
        ),
    ],
)
def test_marks_are_filtered_however_they_are_cut(said: str, shown: str, dropped: list[str], size: int) -> None:
    marks = MarkFilter({1, 2, 3}, {"a.md"})
    out = "".join(marks.feed(said[at : at + size]) for at in range(0, len(said), size)) + marks.close()
    assert (out, marks.dropped) == (shown, dropped)


def test_no_mark_outside_the_result_set_in_a_thousand_answers() -> None:
    dice = random.Random(7)
    for _turn in range(1000):
        known = set(range(1, dice.randint(1, 6)))
        said = "".join(dice.choice(["词", " [", "]", "[", "1", "5", "9", "12", "]", "，", "【", "】", "\n", "`"]) for _ in range(60))
        marks = MarkFilter(known)
        out = marks.feed(said[:30]) + marks.feed(said[30:]) + marks.close()
        html = str(answer_html(1, UID, UID, out, dict.fromkeys(known, "t")))
        assert all(int(number) in known for number in CITE.findall(html)), said


def test_support_is_measured_for_each_cited_sentence() -> None:
    content = "传感器应每季度校准一次，记录保存两年。 [2] 电池要每天充电三次。 [1]\n\n参考页面：\n- 《甲》：a.md"
    rows = supports(content, {1: PUMP, 2: MANUAL})
    assert [(row.numbers, row.level) for row in rows] == [((2,), "strong"), ((1,), "none")]
    assert content[rows[0].start : rows[0].end] == "传感器应每季度校准一次，记录保存两年。 [2]"
    assert body_of(content) == "传感器应每季度校准一次，记录保存两年。 [2] 电池要每天充电三次。 [1]"
    assert cited_numbers(content) == [2, 1]


def test_titles_are_one_short_line() -> None:
    assert title_of("[[wiki/a.md|甲]] 说了\n什么？") == "甲 说了 什么"
    assert (
        title_of("How often is the seal of the big pump in hall seven replaced by the staff?") == "How often is the seal of the big pump…"
    )


def test_a_mark_stays_on_the_line_of_its_sentence() -> None:
    html = str(answer_html(1, UID, UID, "每季度校准一次。 [1] Replaced yearly. [2] 参见[1]", {1: "t", 2: "u"}))
    assert "每季度校准一次。\u2060<a " in html and "Replaced yearly.\u00a0<a " in html and "参见\u2060<a " in html
