"""What a reader is shown of why a passage was found."""

from __future__ import annotations

import pytest

from apps.retrieval.explain import Term, explain, highlights, snippet, why


def shown(text: str, query: str) -> list[str]:
    return [text[start:end] for start, end in highlights(text, query)]


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("见 ERR-4021，以及 ERR-4012。错误码 ERR。", "err-4021", ["ERR-4021"]),
        ("见 ERR-4021。", "err4021", ["ERR-4021"]),
        ("见 ERR-4021。", "err 4021", ["ERR-4021"]),
        ("见 PPR-9087 与 PPR-9078。", "9087", ["9087"]),
        ("传感器-温度-TH01 安装说明", "传感器-温度-TH01", ["传感器-温度-TH01"]),
        ("傳感器安裝，ＴＨ０１", "传感器 th01", ["傳感器", "ＴＨ０１"]),
        ("这是一个测试文档", "测试", ["测试"]),
        ("三码合一流程", "三码合一", ["三码合一"]),
        ("个人所得税与增值税", "税", ["税", "税"]),
        ("ConnectionResetError!", "connection reset error", ["ConnectionResetError"]),
        ("Two policies, one policy.", "policy", ["policies", "policy"]),
        ("host 10.0.12.7 up, 10.0.1.27 down", "10.0.12.7", ["10.0.12.7"]),
        ("write to a@b.cn now", "a@b.cn", ["a@b.cn"]),
        ("C++ and C", "C++", ["C++"]),
        ("nothing here", "测试", []),
        ("nothing here", "", []),
        ("", "测试", []),
    ],
)
def test_highlights_cover_what_was_asked(text: str, query: str, marked: list[str]) -> None:
    assert shown(text, query) == marked


def test_highlights_are_in_order_and_never_touch() -> None:
    text = "测试测试的测试，测-试 load_bar/load-bar " * 5
    spans = highlights(text, "测试 load_bar")
    assert all(low < high for low, high in spans)
    assert all(before[1] < after[0] for before, after in zip(spans, spans[1:], strict=False))


def test_why_tells_whole_words_from_pieces() -> None:
    assert why("参见 PPR-9087 与 泵", "PPR-9087 阀门") == (Term("PPR-9087", "exact"),)
    assert why("参见 PPR-9087-X", "PPR-9087") == (Term("PPR-9087", "part"),)
    assert why("err 4012", "ERR-4021") == (Term("err", "part"),)
    assert why("温度过高", "温度传感器") == (Term("温度", "part"),)
    assert why("温度传感器", "温度传感器怎么装")[0].text == "温度传感器"


def test_quoted_when_the_whole_question_stands_there() -> None:
    assert explain("所以三码合一流程如下", "三码合一流程").quoted
    assert explain("The Pump must be primed.", "pump MUST be").quoted
    assert not explain("流程：三码，合一", "三码合一流程").quoted
    assert not explain("x", "").quoted


LONG = "开头。" + "无关的句子在这里。" * 40 + "水泵启动前必须先灌水，否则会损坏密封。" + "其他的话。" * 40


def test_snippet_shows_the_best_window_from_a_sentence_on() -> None:
    made = snippet(LONG, "水泵 灌水 密封")
    assert made.text.startswith("水泵启动前必须先灌水")
    assert LONG[made.start : made.start + len(made.text)] == made.text
    assert len(made.text) <= 160
    assert [made.text[a:b] for a, b in made.spans] == ["水泵", "灌水", "密封"]


def test_snippet_without_a_match_is_the_beginning() -> None:
    made = snippet(LONG, "完全不同", width=20)
    assert (made.start, made.spans, made.text) == (0, (), LONG[:20])


def test_short_text_is_shown_whole() -> None:
    made = snippet("  这是测试。\n", "测试")
    assert (made.text, made.start, made.spans) == ("这是测试。", 2, ((2, 4),))


@pytest.mark.parametrize("width", [1, 5, 12, 40, 160])
@pytest.mark.parametrize("query", ["ERR-4021-VERY-LONG-CODE", "水泵", "alpha beta", "", "税"])
def test_snippet_never_lies_about_places(width: int, query: str) -> None:
    text = "alpha " * 20 + "见 ERR-4021-VERY-LONG-CODE 和水泵。Beta gamma! " + "beta " * 30 + "所得税"
    made = snippet(text, query, width=width)
    assert text[made.start : made.start + len(made.text)] == made.text
    assert len(made.text) <= width
    assert all(0 <= low < high <= len(made.text) for low, high in made.spans)


def test_snippet_does_not_cut_a_match() -> None:
    text = "前言" * 30 + "。参数表：ERR-4021 与 传感器-温度-TH01 都在此列" + "后记" * 50
    made = snippet(text, "ERR-4021 传感器-温度-TH01", width=30)
    assert [made.text[a:b] for a, b in made.spans] == ["ERR-4021", "传感器-温度-TH01"]
