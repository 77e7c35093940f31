"""The words that documents and questions are looked up by."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from apps.retrieval import tokens
from apps.retrieval.tokens import MAX_QUERY_TOKENS, Code, document_spans, document_tokens, fold, is_code, query_tokens, stem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ERR-4021", ["err-4021", "err", "4021", "err4021"]),
        ("err4021", ["err4021", "err", "4021"]),
        ("v2.5.1", ["v2.5.1", "v", "2", "5", "1", "v251"]),
        ("load_bar", ["load_bar", "load", "bar", "loadbar"]),
        ("AB-1234/56-X", ["ab-1234/56-x", "ab", "1234", "56", "x", "ab123456x"]),
        ("10.0.12.7", ["10.0.12.7", "10", "0", "12", "7", "100127"]),
        ("a.b.c.d.e", ["a.b.c.d.e", "a", "b", "c", "d", "e"]),  # five parts: not joined
        ("ConnectionResetErrors", ["connectionreseterror", "connection", "reset", "error"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("node.js", ["node.js", "node", "js", "nodej"]),
        ("nodejs", ["nodej"]),
        ("C++", ["c++", "c"]),
        ("c#", ["c#", "c"]),
        ("a@b.cn", ["a@b.cn", "a", "b", "cn", "abcn"]),
        ("don't", ["don't", "don", "t", "dont"]),
        ("Policies, boxes and errors.", ["policy", "box", "and", "error"]),
        ("知識庫", ["知识", "识库", "库"]),
        ("知识库", ["知识", "识库", "库"]),
        ("税", ["税"]),
        ("ＡＢＣ－９９８７", ["abc-9987", "abc", "9987", "abc9987"]),
        ("传感器-温度-TH01", ["传感", "感器", "器", "温度", "度", "th01", "th", "01"]),
        ("これはテスト", ["これ", "れは", "はテ", "テス", "スト", "ト"]),
        ("ｶﾞﾗｽ", ["ガラ", "ラス", "ス"]),
        ("한국어 문서", ["한국", "국어", "어", "문서", "서"]),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", ["한국", "국"]),  # conjoining jamo
        ("cafe\u0301 CAFÉ", ["café", "café"]),
        ("Straße", ["strasse"]),
        ("ﬁle ㈱", ["file", "株"]),
        ("安全，什么是定义", ["安全", "全", "什么", "么是", "是定", "定义", "义"]),
        ("𠮷野家", ["𠮷野", "野家", "家"]),
        (" \n\t,.!?。、· ", []),
        ("", []),
    ],
)
def test_document_tokens(text: str, expected: list[str]) -> None:
    assert document_tokens(text) == expected


HARD = [
    "请查看 ERR-4021（见 ｶﾞｲﾄﾞ）：cafe\u0301、ﬁle、㈱、한국어 and \u1112\u1161\u11ab.",
    "傳感器-溫度-ＴＨ０１ 安裝說明；v1.10.2-beta https://a.b.cn/x_y?z=1",
    "Straße İstanbul ǅ ½ ℃ ㎏ ㍿ 𝔘𝔫𝔦 é e\u0301\u0323 ا\u064e",
    "\ud800 lone \udfff surrogates \x00 and controls \x1b[0m",
    "か\u3099き\u309a ハ\uff9f",
]


@pytest.mark.parametrize("text", HARD)
def test_spans_are_the_tokens_with_places_in_the_original(text: str) -> None:
    spans = document_spans(text)
    assert [span.token for span in spans] == document_tokens(text)
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)
        assert span.token in document_tokens(text[span.start : span.end])


def test_spans_point_at_what_was_written() -> None:
    text = "…ＥＲＲ－４０２１、ｶﾞﾗｽ"
    places = {span.token: text[span.start : span.end] for span in document_spans(text)}
    assert places["err-4021"] == "ＥＲＲ－４０２１"
    assert places["4021"] == "４０２１"
    assert places["ガラ"] == "ｶﾞﾗ"


def test_folding_does_not_depend_on_the_neighbours() -> None:
    sentence = "乾隆皇后在後面晾乾了頭髮發現臺灣的裏面"
    folded = fold(sentence)
    assert folded == "干隆皇后在后面晾干了头发发现台湾的里面"
    assert [fold(sentence[at : at + 2]) for at in range(len(sentence) - 1)] == [folded[at : at + 2] for at in range(len(folded) - 1)]


def test_every_pair_of_characters_of_a_text_is_among_its_tokens() -> None:
    text = "三码合一流程需要先完成人脸识别"
    held = set(document_tokens(text))
    assert all(set(query_tokens(text[at : at + 2]).tokens) <= held for at in range(len(text) - 1))


def test_no_token_can_break_the_word_index() -> None:
    everything = "".join(chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) != "Cn")
    for token in set(document_tokens(" ".join(everything[at : at + 3] for at in range(0, len(everything), 3)))):
        assert token
        assert not any(c.isspace() or c == '"' or c < " " or "\ud800" <= c <= "\udfff" for c in token)


def test_question_drops_duplicates_and_stop_words() -> None:
    assert query_tokens("What is the pump of the Pump?").tokens == ("pump",)
    assert query_tokens("如何安装").tokens == ("何安", "安装")


def test_question_of_stop_words_only_keeps_them() -> None:
    assert query_tokens("what is it").tokens == ("what", "is", "it")
    assert query_tokens("什么").tokens == ("什么",)


def test_lone_character_is_a_prefix_only_without_other_tokens() -> None:
    assert (query_tokens("税").tokens, query_tokens("税").prefix) == ((), "税")
    assert (query_tokens("税 rate").tokens, query_tokens("税 rate").prefix) == (("rate",), "")


def test_question_is_cut_at_the_cap() -> None:
    long = query_tokens(" ".join(f"word{i}x" for i in range(200)))
    assert len(long.tokens) == MAX_QUERY_TOKENS
    assert long.phrase == ()


@pytest.mark.parametrize("text", ["", "  ", "？！", "\x00", "\ud800", "***", "((("])
def test_question_without_words_is_falsy(text: str) -> None:
    assert not query_tokens(text)


@pytest.mark.parametrize(
    "word",
    ["ERR-4021", "err4021", "v1.10.2", "10.0.12.7", "TH01", "A/B-12", "a@b.cn", "load_bar", "snake_case_id", "C++", "c#", "node.js",
     "example.com", "2024-01-15", "13800138000", "138-0013-8000", "PPR-908", "H2O", "NodeJS"],
)  # fmt: skip
def test_codes(word: str) -> None:
    assert is_code(word)


@pytest.mark.parametrize("word", ["well-known", "don't", "and/or", "U.S", "19th", "1990s", "70's", "1945-1949", "3.5", "2016", "42", "e.g"])
def test_not_codes(word: str) -> None:
    assert not is_code(word)


def test_codes_of_a_question() -> None:
    asked = query_tokens("如何处理 ERR-4021 错误")
    assert asked.codes == (Code(("err-4021",), ("err", "4021"), "err4021"),)
    assert not asked.only_codes
    assert query_tokens("ERR-4021").only_codes


def test_code_with_chinese_in_it_is_a_sequence() -> None:
    whole = {code.whole for code in query_tokens("如何校准传感器-温度-TH01").codes}
    assert ("感器", "器", "温度", "度", "th01", "th", "01") in whole


@pytest.mark.parametrize(
    ("word", "singular"),
    [("policies", "policy"), ("boxes", "box"), ("classes", "class"), ("errors", "error"), ("status", "status"), ("class", "class"),
     ("ties", "tie"), ("bus", "bus"), ("analysis", "analysis"), ("th01s", "th01s")],
)  # fmt: skip
def test_stem(word: str, singular: str) -> None:
    assert stem(word) == singular


def test_works_without_opencc_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with_table = tokens.tokeniser_id()
    monkeypatch.setitem(sys.modules, "opencc", None)
    monkeypatch.setattr(tokens, "_FOLDED", tokens._FoldTable())
    tokens._simplifier.cache_clear()
    try:
        assert document_tokens("知識庫") == ["知識", "識庫", "庫"]
        assert tokens.tokeniser_id() != with_table
    finally:
        tokens._simplifier.cache_clear()
