"""What every search engine finds, and what stands first."""

from __future__ import annotations

import numpy as np
import pytest

from apps.retrieval.plugins.protocol import Query, SearchBackend, Vector
from tests.support.exactness import NEAR, ODD
from tests.support.search_engines import SPACE, ask, doc, unit, world

PAIRS = [(key, question) for key, (_, questions) in enumerate(ODD, 1) for question in questions]


def fill_odd(backend: SearchBackend) -> None:
    texts = [text for text, _ in ODD] + NEAR + [f"无关的第 {n} 段 unrelated filler number {n}" for n in range(60)]
    backend.put([doc(key, text) for key, text in enumerate(texts, 1)])


def test_identifier_and_odd_questions_rank_first(backend: SearchBackend) -> None:
    fill_odd(backend)
    assert len(PAIRS) >= 43
    missed = {question: ask(backend, question)[:3] for key, question in PAIRS if ask(backend, question)[:1] != [key]}
    assert missed == {}


CODES = ["PPR-9087", "PPR-9078", "PPR-908", "v1.10.2", "v1.1.02", "10.0.12.7", "10.0.1.27", "snake_case_id", "A/B-12", "a@b.cn"]
SIXTY = CODES + [f"{prefix}-{number}" for prefix in ("PPR", "QX/T", "ERR_", "M.2", "传感-TH") for number in range(9080, 9090)]


def test_sixty_codes_each_first_with_and_without_misleading_vectors(backend: SearchBackend) -> None:
    """The vectors of every passage but the right one point exactly where the question points."""
    codes = list(dict.fromkeys(SIXTY))
    codes += [f"X{n}-{n * 7}" for n in range(60 - len(codes))]
    assert len(codes) == 60
    backend.put(
        [doc(key, f"单元 {key}：设备编号 {code} 的维护说明。", vectors=(unit(1, 0.01 * key, 0, 0),)) for key, code in enumerate(codes, 1)]
    )
    for mode in ("text", "hybrid"):
        for key, code in enumerate(codes, 1):
            for question in (code, f"{code} 的维护怎么做"):
                away = unit(-1, -0.01 * key, 0, 0)
                found = backend.search(Query(1, (1,), question, away, SPACE, mode=mode))
                assert (found[0].doc_id, found[0].exact) == (key, True), (mode, question)
    assert 1 in ask(backend, "9087")


def test_a_code_in_few_of_many_passages_is_first_in_a_long_question(backend: SearchBackend) -> None:
    """More passages hold the code than a leg lists, and near neighbours fit the rest of the question better."""
    held = [doc(key, f"日志 ERR-4021 出现，第 {key} 次") for key in range(1, 71)]
    near = [doc(key, "如何修复 ERR-4012 数据库连接错误：修复数据库连接", vectors=(unit(1, 0, 0, 0),)) for key in range(101, 110)]
    other = [doc(key, f"其他内容 {key} 不相关") for key in range(201, 500)]
    backend.put([*held, *near, *other])
    found = ask(backend, "如何修复 ERR-4021 数据库连接错误", mode="hybrid", vector=unit(1, 0, 0, 0), vector_space=SPACE, k=30)
    assert len(found) == 30 and all(key < 71 for key in found)


def test_a_code_that_most_passages_hold_singles_nothing_out(backend: SearchBackend) -> None:
    common = [doc(key, f"COVID-19 常见问题 {key}") for key in range(1, 40)]
    backend.put([*common, doc(50, "接种疫苗之后多久可以洗澡")])
    assert ask(backend, "COVID-19 疫苗接种之后可以洗澡吗")[0] == 50
    assert ask(backend, "COVID-19")[0] < 40


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("传感器-温度-TH01", 1),
        ("TH01", 1),
        ("安全", 2),
        ("三码", 3),
        ("ＴＨ０１", 1),
        ("傳感器", 1),
        ("三码合一流程", 3),
        ("什么是定义", 2),
    ],
)
def test_mixed_and_short_chinese(backend: SearchBackend, question: str, key: int) -> None:
    backend.put([doc(1, "传感器-温度-TH01 安装说明"), doc(2, "安全，什么是定义"), doc(3, "三码合一流程")])
    backend.put([doc(10 + n, f"传感器-湿度-TH0{n} 说明；安装全流程；三个号码") for n in range(2, 9)])
    assert ask(backend, question)[0] == key


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("这是一个测试文档", "测试"),
        ("これはテスト文書です", "テスト"),
        ("이것은 시험문서입니다", "시험문서"),
        ("税收政策", "税"),
        ("纳税人", "税人"),
    ],
)
def test_the_middle_of_a_sentence_is_found(backend: SearchBackend, sentence: str, question: str) -> None:
    places = [sentence, f"标题：{sentence}", f"问：{sentence}？\n答：好", f"标签 {sentence}", f"别名「{sentence}」"]
    backend.put([doc(key, text) for key, text in enumerate(places, 1)])
    backend.put([doc(key, f"别的内容 {key}") for key in range(10, 40)])
    assert sorted(ask(backend, question)) == [1, 2, 3, 4, 5]
    hits = backend.search(Query(1, (1,), question, mode="text"))
    assert all(hit.text_leg is not None and hit.text_leg.score > 0 for hit in hits)


def test_every_two_characters_of_a_passage_find_it(backend: SearchBackend) -> None:
    text = "人脸识别闸机与三码合一流程的对接说明"
    backend.put([doc(1, text)] + [doc(key, f"其他资料 {key}") for key in range(2, 30)])
    assert all(ask(backend, text[at : at + 2])[:1] == [1] for at in range(len(text) - 1))


@pytest.mark.parametrize("question", ["水泵启动前必须先灌水", "The pump must be primed", "年度报销与差旅制度（试行）"])
def test_a_question_quoted_word_for_word_is_first(backend: SearchBackend, question: str) -> None:
    """Other passages hold more of the words more often, and their vectors point where the question does."""
    backend.put([doc(1, "长文。" * 30 + question + "。还有很多别的内容 and other things here." * 5, vectors=(unit(-1, 0, 0, 0),))])
    scattered = " ".join(question[at : at + 3] for at in range(0, len(question), 2))
    backend.put([doc(key, f"{scattered} {scattered} pump primed must", vectors=(unit(1, 0, 0, 0),)) for key in range(2, 12)])
    found = backend.search(Query(1, (1,), question, unit(1, 0, 0, 0), SPACE))
    assert (found[0].doc_id, found[0].exact) == (1, True)


STRANGE = [
    "", " ", "\x00", "\ud800", "\U0010ffff", "'", '"', '""', '" OR 1=1', "a\"b", "(", ")", "*", "^a", "a*", "NEAR(a b)", "a AND", "OR", "NOT a",
    "{body}: x", "kb:k1_1", "k1_1", "k2_21", "-a", "+", "a:b", "--", ";", "%", "_", "\\", "a" * 10_000, "税" * 5_000, "a b " * 5_000, "？！。", "👩‍👩‍👧",
    "<script>", "\n\t\r", "ﷺ", "Z̷̡a̴l̶g̵o̸", "١٢٣", "नमस्ते", "1e999", "[[x]]", "C++++", "#", "@", "a--b__c..d",
]  # fmt: skip


@pytest.mark.parametrize("question", STRANGE)
def test_odd_questions_never_raise_and_never_widen_the_scope(backend: SearchBackend, question: str) -> None:
    world(backend)
    for mode in ("text", "hybrid"):
        found = ask(backend, question, mode=mode, vector=unit(1, 0, 0, 0), vector_space=SPACE)
        assert set(found) <= {1, 2}


@pytest.mark.parametrize("vector", [np.full(4, np.nan, np.float32), np.full(4, np.inf, np.float32), np.zeros(0, np.float32), None])
def test_odd_vectors_find_nothing(backend: SearchBackend, vector: Vector | None) -> None:
    world(backend)
    assert ask(backend, mode="vector", vector=vector, vector_space=SPACE) == []


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "\n", "👍", 'quote " and k2_21'])
def test_odd_passages_can_be_stored(backend: SearchBackend, text: str) -> None:
    backend.put([doc(1, (text, "pump")), doc(2, ())])
    assert ask(backend, "pump") == [1]
    assert set(backend.revisions()) == {1, 2}
    assert backend.check() == []


def test_k_bounds_the_answer(backend: SearchBackend) -> None:
    backend.put([doc(key, "pump") for key in range(1, 21)])
    assert [len(ask(backend, "pump", k=k, candidates=c)) for k, c in ((3, 50), (0, 50), (-1, 50), (15, 2), (5, -4))] == [3, 0, 0, 15, 5]


def test_scores_fall_and_ranks_count(backend: SearchBackend) -> None:
    fill_odd(backend)
    for hits in (
        backend.search(Query(1, (1,), "升级 错误 连接", mode="text")),
        backend.search(Query(1, (1,), "ERR-4021 连接", mode="text")),
    ):
        scores = [hit.score for hit in hits]
        assert len(hits) > 2
        assert scores == sorted(scores, reverse=True) and 0 <= scores[-1] and scores[0] <= 1
    leg = backend.text_leg(Query(1, (1,), "升级 错误 连接"))
    assert [hit.rank for hit in leg] == list(range(1, len(leg) + 1))
    assert [hit.score for hit in leg] == sorted((hit.score for hit in leg), reverse=True)
