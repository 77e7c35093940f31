"""What every search engine promises; the suite runs over each registered backend."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from apps.common.errors import InvalidInput, TransientError, Unavailable
from apps.retrieval.plugins import sqlite_engine  # noqa: F401 - registers the backend
from apps.retrieval.plugins.postgres_engine import PostgresBackend
from apps.retrieval.plugins.protocol import (
    Filing,
    IndexChunk,
    IndexDocument,
    IndexOutdated,
    Query,
    SearchBackend,
    Vector,
    backends,
    folder_key,
)
from tests.support.exactness import NEAR, ODD

SPACE = "hand:4"
ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("sqlite", "postgres", "postgres-plain")


@pytest.fixture(params=ENGINES)
def options(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Name and options of an empty store of each engine and mode."""
    yield from store_options(request, tmp_path, request.param)


def store_options(request: pytest.FixtureRequest, folder: Path, engine: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    name, _, mode = engine.partition("-")
    if name == "sqlite":
        yield name, {"path": str(folder / "search.sqlite3")}
        return
    schema = f"kb_index_{secrets.token_hex(4)}"
    options = {"dsn": request.getfixturevalue("index_database"), "schema": schema, "mode": mode or "auto"}
    yield name, options
    PostgresBackend(options["dsn"], schema=schema).drop()


def test_no_engine_goes_untested() -> None:
    assert {engine.partition("-")[0] for engine in ENGINES} == set(backends.names())


@pytest.fixture
def backend(options: tuple[str, Mapping[str, str]]) -> SearchBackend:
    made = backends.get(options[0])(options[1])
    made.ensure()
    return made


def unit(*values: float) -> Vector:
    made = np.array(values, dtype=np.float32)
    return made / np.linalg.norm(made)


def doc(key: int, text: str | tuple[str, ...], *, vectors: tuple[Vector | None, ...] = (), **fields: object) -> IndexDocument:
    """A document of one chunk a text, chunk ids key * 100 + n."""
    texts = (text,) if isinstance(text, str) else text
    chunks = tuple(IndexChunk(key * 100 + at, t, vectors[at] if vectors else None) for at, t in enumerate(texts))
    values = {"tenant_id": 1, "kb_id": 1, "rev": 1, "folder_id": 0, "vector_space": SPACE if vectors else "", **fields}
    return IndexDocument(id=key, chunks=chunks, **values)  # type: ignore[arg-type]


def ask(backend: SearchBackend, text: str = "", **fields: object) -> list[int]:
    """Document ids found, best first."""
    values = {"tenant_id": 1, "kb_ids": (1,), "mode": "text", **fields}
    return [hit.doc_id for hit in backend.search(Query(text=text, **values))]  # type: ignore[arg-type]


# -- isolation and filters ----------------------------------------------------------------------------------------------------------


def world(backend: SearchBackend) -> None:
    """Two spaces with twin data: every document says the same and points the same way."""
    same = unit(1, 0, 0, 0)
    backend.put(
        [
            doc(1, "水泵手册 pump manual", vectors=(same,), tag_ids=(7,), folder_id=folder_key("a/b")),
            doc(2, "水泵手册 pump manual", vectors=(same,), tag_ids=(8,)),
            doc(3, "水泵手册 pump manual", vectors=(same,), kb_id=2, tag_ids=(7, 8)),
            doc(4, "水泵手册 pump manual", vectors=(same,), enabled=False),
            doc(11, "水泵手册 pump manual", vectors=(same,), tenant_id=2, kb_id=21, tag_ids=(7,), folder_id=folder_key("a/b")),
        ]
    )


CASES = [
    ({}, [1, 2]),
    ({"kb_ids": (1, 2)}, [1, 2, 3]),
    ({"kb_ids": (2,)}, [3]),
    ({"kb_ids": ()}, []),
    ({"kb_ids": (21,)}, []),  # another space's base
    ({"kb_ids": (1, 21)}, [1, 2]),
    ({"kb_ids": tuple(range(1, 200))}, [1, 2, 3]),  # more bases than are pushed into the word index
    ({"kb_ids": (21, *range(300, 400))}, []),
    ({"tenant_id": 2, "kb_ids": (1, 2, 21)}, [11]),
    ({"tenant_id": 2, "kb_ids": tuple(range(1, 200))}, [11]),
    ({"tenant_id": 3, "kb_ids": (1, 2, 21)}, []),
    ({"tag_ids": (7,)}, [1]),
    ({"tag_ids": (7, 8)}, [1, 2]),
    ({"tag_ids": (9,)}, []),
    ({"tag_ids": ()}, []),
    ({"folder_ids": (folder_key("a/b"),)}, [1]),
    ({"folder_ids": (0,)}, [2]),
    ({"folder_ids": ()}, []),
    ({"doc_ids": (2, 3, 11)}, [2]),
    ({"doc_ids": ()}, []),
    ({"tag_ids": (7,), "folder_ids": (folder_key("a/b"),), "doc_ids": (1, 2)}, [1]),
    ({"tag_ids": (8,), "folder_ids": (folder_key("a/b"),)}, []),
    ({"kb_ids": (2**70, -1)}, []),
    ({"kb_ids": (1,), "doc_ids": (2**70,)}, []),
]


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
@pytest.mark.parametrize(("fields", "expected"), CASES)
def test_a_query_sees_its_scope_and_nothing_else(backend: SearchBackend, mode: str, fields: dict, expected: list[int]) -> None:
    world(backend)
    found = ask(backend, "水泵 pump", mode=mode, vector=unit(1, 0, 0, 0), vector_space=SPACE, **fields)
    assert sorted(found) == expected


def test_legs_and_matched_terms_keep_to_the_scope(backend: SearchBackend) -> None:
    world(backend)
    query = Query(tenant_id=2, kb_ids=(1, 21), text="水泵 pump manual", vector=unit(1, 0, 0, 0), vector_space=SPACE)
    assert [h.doc_id for h in backend.text_leg(query)] == [11]
    assert [h.doc_id for h in backend.vector_leg(query)] == [11]
    assert [h.doc_id for h in backend.exact_leg(query)] == []
    assert backend.matched_terms(query, [100, 1100, 2**70]) == {1100: frozenset({"水泵", "pump", "manual"})}


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
@pytest.mark.parametrize(
    "fields",
    [{"tag_ids": (5,)}, {"folder_ids": (folder_key("x"),)}, {"doc_ids": (500,)}, {"kb_ids": (2,)}, {"kb_ids": tuple(range(2, 90))}],
)
def test_filters_come_before_the_best_are_taken(backend: SearchBackend, mode: str, fields: dict) -> None:
    """The one allowed document is worse than 80 others in both legs, with 5 candidates a leg."""
    better = [doc(key, "pump pump pump", vectors=(unit(1, 0.001 * key, 0, 0),)) for key in range(1, 81)]
    worst = doc(
        500, "a very long text about many things and one pump " * 3, vectors=(unit(0.2, 0, 1, 0),), tag_ids=(5,), folder_id=folder_key("x")
    )
    backend.put(better)
    backend.put([worst if "kb_ids" not in fields else doc(500, worst.chunks[0].text, vectors=(unit(0.2, 0, 1, 0),), kb_id=2)])
    assert ask(backend, "pump", mode=mode, vector=unit(1, 0, 0, 0), vector_space=SPACE, candidates=5, k=5, **fields) == [500]


def test_disabled_passages_are_hidden_before_the_best_are_taken(backend: SearchBackend) -> None:
    chunks = tuple(IndexChunk(at, "pump", unit(1, 0, 0, 0), enabled=at == 79) for at in range(80))
    backend.put([IndexDocument(id=1, tenant_id=1, kb_id=1, rev=1, folder_id=0, vector_space=SPACE, chunks=chunks)])
    for mode in ("text", "vector", "hybrid"):
        hits = backend.search(Query(1, (1,), "pump", unit(1, 0, 0, 0), SPACE, mode=mode, candidates=3, k=3))
        assert [hit.chunk_id for hit in hits] == [79]


# -- writes -------------------------------------------------------------------------------------------------------------------------


def test_put_replaces_the_whole_document(backend: SearchBackend) -> None:
    backend.put([doc(1, ("old words", "second passage"), vectors=(unit(1, 0, 0, 0), unit(0, 1, 0, 0)), tag_ids=(3,), rev=1)])
    backend.put([doc(1, "new words", kb_id=2, rev=2)])
    assert ask(backend, "old") == ask(backend, "second") == ask(backend, "new") == []
    assert ask(backend, "new", kb_ids=(2,)) == [1]
    assert ask(backend, "new", kb_ids=(2,), tag_ids=(3,)) == []
    assert ask(backend, mode="vector", vector=unit(1, 0, 0, 0), vector_space=SPACE, kb_ids=(1, 2)) == []
    assert backend.revisions(1) == {1: 2}
    stats = backend.stats(1)
    assert (stats.documents, stats.chunks, stats.vectors) == (1, 1, 0)
    assert backend.check() == []


def test_an_older_revision_is_ignored_and_the_same_one_replaces(backend: SearchBackend) -> None:
    backend.put([doc(1, "second version", rev=5)])
    backend.put([doc(1, "first version", rev=4)])
    assert ask(backend, "first") == []
    assert ask(backend, "second") == [1]
    backend.put([doc(1, "second again", rev=5)])
    assert ask(backend, "again") == [1]
    assert backend.revisions() == {1: 5}


def test_a_document_of_another_space_cannot_be_overwritten_or_deleted(backend: SearchBackend) -> None:
    backend.put([doc(1, "mine")])
    with pytest.raises(InvalidInput):
        backend.put([doc(1, "stolen", tenant_id=2, rev=9)])
    backend.delete(2, doc_ids=[1])
    backend.delete(2, kb_ids=[1])
    backend.set_flags(2, [1], enabled=False, kb_id=9, folder_id=5, tag_ids=[1])
    backend.set_chunk_enabled(2, [100], False)
    assert backend.set_vectors(2, 1, 1, SPACE, {100: unit(1, 0, 0, 0)}) is False
    assert ask(backend, "mine") == [1]


def test_delete_by_document_and_by_base(backend: SearchBackend) -> None:
    backend.put([doc(key, "pump", kb_id=1 + key % 2, vectors=(unit(1, 0, 0, 0),), tag_ids=(1,)) for key in range(1, 451)])
    backend.delete(1, doc_ids=[2, 4, 999])
    assert set(backend.revisions(1)) == set(range(1, 451)) - {2, 4}
    backend.delete(1, kb_ids=[1])
    assert set(backend.revisions(1)) == set(range(1, 451, 2))
    assert ask(backend, "pump", tag_ids=(1,)) == []
    assert len(ask(backend, "pump", kb_ids=(1, 2), k=10)) == 10
    backend.delete(1)
    assert len(backend.revisions(1)) == 225
    assert backend.check() == []


@pytest.mark.parametrize("mode", ["text", "vector"])
def test_flags_change_what_filters_see(backend: SearchBackend, mode: str) -> None:
    backend.put([doc(1, ("pump", "pump"), vectors=(unit(1, 0, 0, 0), unit(1, 0, 0, 0)), tag_ids=(1,))])

    def seen(**fields: object) -> int:
        return len(ask(backend, "pump", mode=mode, vector=unit(1, 0, 0, 0), vector_space=SPACE, **fields))

    backend.set_chunk_enabled(1, [101], False)
    assert seen() == 1
    backend.set_flags(1, [1], enabled=False)
    assert seen() == 0
    backend.set_chunk_enabled(1, [100], True)  # the document is off, so this stays hidden
    assert seen() == 0
    backend.set_flags(1, [1], enabled=True)
    assert seen() == 1  # and the passage that was off by itself stays off
    backend.set_chunk_enabled(1, [101], True)
    assert seen() == 2
    backend.set_flags(1, [1], tag_ids=[2, 3], folder_id=77)
    assert (seen(tag_ids=(1,)), seen(tag_ids=(2,)), seen(folder_ids=(0,)), seen(folder_ids=(77,))) == (0, 2, 0, 2)
    backend.set_flags(1, [1], tag_ids=[])
    assert (seen(tag_ids=(2, 3)), seen()) == (0, 2)


def test_a_moved_document_is_found_in_its_new_base_only(backend: SearchBackend) -> None:
    backend.put([doc(1, "pump ERR-4021", vectors=(unit(1, 0, 0, 0),)), doc(2, "valve", kb_id=2)])
    fields = {"mode": "hybrid", "vector": unit(1, 0, 0, 0), "vector_space": SPACE}
    backend.set_flags(1, [1], kb_id=2)
    assert ask(backend, "pump", **fields) == []
    assert ask(backend, "ERR-4021", kb_ids=(2,), **fields) == [1]
    assert ask(backend, "pump", kb_ids=(2, *range(50, 120))) == [1]
    backend.set_flags(1, [1], kb_id=3)
    assert ask(backend, "pump", kb_ids=(1, 2), **fields) == []
    assert ask(backend, "pump", kb_ids=(3,), **fields) == [1]
    backend.set_flags(1, [1], kb_id=1)
    assert ask(backend, "pump") == [1]
    backend.set_flags(1, [1], kb_id=3)
    backend.put([doc(1, "pump again", kb_id=3, rev=2)])
    assert ask(backend, "again", kb_ids=(3,)) == [1]
    assert ask(backend, "pump again") == []
    assert backend.check() == []


def test_refiled_documents_keep_their_words_and_vectors_and_take_new_heads(backend: SearchBackend) -> None:
    fields = {"mode": "hybrid", "vector": unit(1, 0, 0, 0), "vector_space": SPACE}
    texts, vectors = ("pump redtag", "valve"), (unit(1, 0, 0, 0), unit(0, 1, 0, 0))
    backend.put([doc(key, texts, vectors=vectors, tag_ids=(1,), rev=4) for key in (1, 2, 3, 4)])
    backend.put([doc(5, "pump", tenant_id=2, rev=4)])
    backend.set_chunk_enabled(1, [101], False)
    filings = [
        Filing(1, 5, 77, (2, 3, 2), (IndexChunk(100, "pump bluetag"),)),
        Filing(2, 6, 77, (2,)),  # the index is a revision behind
        Filing(3, 4, 77, (2,)),  # it has this one
        Filing(4, 3, 77, (2,)),  # and here a newer one
        Filing(9, 1, 77, (2,)),  # it never heard of this
        Filing(5, 5, 77, (2,)),  # another space's
    ]
    assert sorted(backend.refile(1, filings)) == [2, 5, 9]
    assert backend.revisions() == {1: 5, 2: 4, 3: 4, 4: 4, 5: 4}
    assert ask(backend, "bluetag") == [1] and sorted(ask(backend, "redtag")) == [2, 3, 4]
    assert ask(backend, "pump", folder_ids=(77,)) == [1] and ask(backend, "pump", folder_ids=(0,), doc_ids=(1,)) == []
    assert (ask(backend, "pump", tag_ids=(3,)), ask(backend, "pump", tag_ids=(1,), doc_ids=(1,))) == ([1], [])
    assert ask(backend, "nothing of it", folder_ids=(77,), **fields) == [1], "vectors stay, and are filtered alike"
    assert ask(backend, "valve", doc_ids=(1,)) == [], "a passage that was off stays off"
    backend.set_flags(1, [1], kb_id=2)
    assert backend.refile(1, [Filing(1, 6, 0, (), (IndexChunk(100, "pump greentag"),))]) == []
    assert (ask(backend, "greentag", kb_ids=(2,)), ask(backend, "greentag"), ask(backend, "bluetag", kb_ids=(2,))) == ([1], [], [])
    assert backend.refile(1, []) == [] and backend.check() == []


def test_vectors_may_follow_later_and_only_for_the_same_revision(backend: SearchBackend) -> None:
    backend.put([doc(1, ("one", "two"), rev=3)])
    assert backend.set_vectors(1, 1, 2, SPACE, {100: unit(1, 0, 0, 0)}) is False
    assert backend.set_vectors(1, 9, 3, SPACE, {900: unit(1, 0, 0, 0)}) is False
    assert backend.stats().vectors == 0
    assert backend.set_vectors(1, 1, 3, SPACE, {100: unit(1, 0, 0, 0)}) is True
    assert backend.set_vectors(1, 1, 3, SPACE, {101: unit(0, 1, 0, 0), 999: unit(0, 0, 1, 0)}) is True
    hits = backend.vector_leg(Query(1, (1,), vector=unit(0.1, 1, 0, 0), vector_space=SPACE))
    assert [(h.chunk_id, h.rank) for h in hits] == [(101, 1), (100, 2)]
    assert hits[0].score == pytest.approx(float(unit(0.1, 1, 0, 0) @ unit(0, 1, 0, 0)), abs=0.01)
    assert backend.stats().vectors == 2
    assert ask(backend, "two") == [1]


def test_vectors_of_another_space_are_never_compared(backend: SearchBackend) -> None:
    backend.put([doc(1, "one", vectors=(unit(1, 0, 0, 0),))])
    assert ask(backend, mode="vector", vector=unit(1, 0, 0, 0), vector_space="other:4") == []
    assert ask(backend, mode="vector", vector=unit(1, 0, 0), vector_space=SPACE) == []
    assert backend.set_vectors(1, 1, 1, "other:3", {100: unit(1, 0, 0)}) is True
    assert ask(backend, mode="vector", vector=unit(1, 0, 0, 0), vector_space=SPACE) == []
    assert ask(backend, mode="vector", vector=unit(1, 0, 0), vector_space="other:3") == [1]


@pytest.mark.parametrize(
    "vectors",
    [
        (unit(1, 0, 0),),  # the space has four dimensions
        (np.array([np.nan, 0, 0, 0], dtype=np.float32),),
        (np.zeros((2, 2), dtype=np.float32),),
    ],
)
def test_wrong_vectors_are_refused_and_change_nothing(backend: SearchBackend, vectors: tuple[Vector, ...]) -> None:
    backend.put([doc(1, "one", vectors=(unit(1, 0, 0, 0),))])
    with pytest.raises(InvalidInput):
        backend.put([doc(1, "changed", vectors=vectors, rev=2)])
    assert (ask(backend, "one"), ask(backend, "changed")) == ([1], [])


def test_bytes_keep_the_order_of_cosines(backend: SearchBackend) -> None:
    random = np.random.default_rng(7)
    made = random.normal(size=(400, 64)).astype(np.float32) + 2.0  # squeezed together, as real embeddings are
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    backend.put([doc(key, "", vectors=(made[key],), vector_space="random:64") for key in range(400)])
    recalled = 0
    for at in range(0, 400, 20):
        question = made[at] + 0.02 * random.normal(size=64).astype(np.float32)
        best = set(np.argsort(-(made @ question))[:50].tolist())
        found = backend.vector_leg(Query(1, (1,), vector=question, vector_space="random:64"))
        assert found[0].doc_id == at
        recalled += len(best & {hit.doc_id for hit in found})
    assert recalled / (20 * 50) > 0.97


# -- what is found ------------------------------------------------------------------------------------------------------------------

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


# -- processes, threads, versions, rebuilding ---------------------------------------------------------------------------------------

READER = """
import json, sys
from apps.retrieval.plugins import postgres_engine, sqlite_engine
from apps.retrieval.plugins.protocol import Query, backends
name, options = json.loads(sys.argv[1])
backend = backends.get(name)(options)
for line in sys.stdin:
    print(json.dumps([hit.doc_id for hit in backend.search(Query(1, (1,), json.loads(line), mode="text"))]), flush=True)
"""


@contextmanager
def reader(options: tuple[str, Mapping[str, str]]) -> Iterator[Callable[[str], list[int]]]:
    """A function that searches in another process, which keeps its backend open between calls."""
    process = subprocess.Popen(
        [sys.executable, "-c", READER, json.dumps(options)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout

    def search(text: str) -> list[int]:
        process.stdin.write(json.dumps(text) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    try:
        yield search
    finally:
        process.stdin.close()
        process.wait(20)


def test_another_process_sees_every_write_at_once(backend: SearchBackend, options: tuple[str, Mapping[str, str]]) -> None:
    with reader(options) as elsewhere:
        assert elsewhere("pump") == []
        backend.put([doc(1, "pump")])
        assert elsewhere("pump") == [1]
        backend.put([doc(1, "valve", rev=2)])
        assert (elsewhere("pump"), elsewhere("valve")) == ([], [1])
        backend.set_flags(1, [1], enabled=False)
        assert elsewhere("valve") == []
        backend.set_flags(1, [1], enabled=True)
        assert elsewhere("valve") == [1]
        backend.delete(1, doc_ids=[1])
        assert elsewhere("valve") == []


def test_rebuilding_goes_on_beside_searching_and_is_swapped_in_for_everyone(
    backend: SearchBackend, options: tuple[str, Mapping[str, str]]
) -> None:
    backend.put([doc(1, "old pump"), doc(2, "orphan pump")])
    with reader(options) as elsewhere:
        assert sorted(elsewhere("pump")) == [1, 2]
        new = backend.begin_rebuild()
        new.put([doc(1, "new pump"), doc(5, "stale pump", rev=1)])
        assert (elsewhere("old"), elsewhere("new")) == ([1], [])
        backend.put([doc(3, "written meanwhile pump"), doc(5, "fresh pump", rev=2)])
        new.put([doc(5, "stale pump", rev=1)])
        backends.get(options[0])(options[1]).delete(1, doc_ids=[1])
        assert sorted(elsewhere("pump")) == [2, 3, 5]
        backend.swap(new)
        assert sorted(elsewhere("pump")) == [3, 5]
        assert (elsewhere("orphan"), elsewhere("stale"), elsewhere("fresh")) == ([], [], [5])
        backend.put([doc(4, "after pump")])
        assert elsewhere("after") == [4]
    assert backend.revisions() == {3: 1, 5: 2, 4: 1}
    assert backend.check() == []


def test_a_rebuild_that_was_given_up_cannot_be_swapped_in(backend: SearchBackend) -> None:
    backend.put([doc(1, "pump")])
    first = backend.begin_rebuild()
    second = backend.begin_rebuild()
    with pytest.raises(IndexOutdated):
        backend.swap(first)
    second.put([doc(2, "valve")])
    backend.swap(second)
    assert (ask(backend, "pump"), ask(backend, "valve")) == ([], [2])


def test_threads_search_and_write_together(backend: SearchBackend) -> None:
    backend.put([doc(key, f"pump number{key}") for key in range(1, 51)])
    failures: list[BaseException] = []

    def work(offset: int) -> None:
        try:
            for step in range(12):
                key = 1 + (offset * 12 + step) % 50
                backend.put([doc(key, f"pump number{key}", rev=2 + step)])
                assert key in ask(backend, f"number{key}")
        except BaseException as error:  # noqa: BLE001 - whatever a thread meets must reach the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert backend.check() == []


WRITER = """
import json, sys
from apps.retrieval.plugins import postgres_engine, sqlite_engine
from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, backends
name, options = json.loads(sys.argv[1])
backend, key = backends.get(name)(options), int(sys.argv[2])
while True:
    key += 1
    chunks = tuple(IndexChunk(key * 100 + n, f"pump number{key} passage {n}") for n in range(5))
    backend.put([IndexDocument(id=key, tenant_id=1, kb_id=1, rev=1, folder_id=0, chunks=chunks)])
    print(key, flush=True)
"""


def test_killing_a_writer_loses_nothing_it_acknowledged(backend: SearchBackend, options: tuple[str, Mapping[str, str]]) -> None:
    acknowledged: set[int] = set()
    for turn in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, json.dumps(options), str(turn * 1000)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        acknowledged |= {int(process.stdout.readline()) for _ in range(15 + turn * 7)}
        os.kill(process.pid, signal.SIGKILL)
        acknowledged |= {int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")}
        process.wait(20)
        assert acknowledged <= set(backend.revisions(1))
        assert backend.check() == []
    some = max(acknowledged)
    assert ask(backend, f"number{some}")[:5] == [some] * 5
    backend.put([doc(9000, "still writable")])
    assert ask(backend, "writable") == [9000]


def test_a_forked_child_searches_and_writes(backend: SearchBackend) -> None:
    backend.put([doc(1, "pump")])
    assert ask(backend, "pump") == [1]
    pid = os.fork()
    if pid == 0:
        try:
            backend.put([doc(2, "pump")])
            os._exit(0 if ask(backend, "pump") == [1, 2] else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ask(backend, "pump") == [1, 2]


def test_an_index_of_another_version_says_so_and_can_be_built_again(
    backend: SearchBackend, options: tuple[str, Mapping[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.put([doc(1, "pump")])
    for module in ("sqlite_store", "postgres_store", "postgres_schema"):
        monkeypatch.setattr(f"apps.retrieval.plugins.{module}.tokeniser_id", lambda: "another")
    later = backends.get(options[0])(options[1])
    for call in (later.ensure, lambda: ask(later, "pump"), lambda: later.put([doc(2, "x")]), later.stats):
        with pytest.raises(IndexOutdated, match="rebuild_index"):
            call()
    new = later.begin_rebuild()
    new.put([doc(1, "pump")])
    later.put([doc(2, "pump, written while the old index cannot be used")])
    later.swap(new)
    assert sorted(ask(later, "pump")) == [1, 2]


def test_a_file_that_this_sqlite_cannot_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backends.get("sqlite")({"path": str(tmp_path / "search.sqlite3")})
    backend.ensure()
    (file,) = tmp_path.glob("search-*.sqlite3")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE meta SET value = 'contentless' WHERE name = 'words'")
    connection.close()
    monkeypatch.setattr("apps.retrieval.plugins.sqlite_store.CONTENTLESS", False)
    with pytest.raises(IndexOutdated, match="rebuild_index"):
        ask(backends.get("sqlite")({"path": str(tmp_path / "search.sqlite3")}), "pump")


def test_a_damaged_file_says_so_and_can_be_built_again(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "search.sqlite3")}
    backend = backends.get("sqlite")(options)
    backend.ensure()
    backend.put([doc(1, "pump")])
    (file,) = tmp_path.glob("search-*.sqlite3")
    file.write_bytes(b"not a database at all" * 500)
    later = backends.get("sqlite")(options)
    for call in (lambda: ask(later, "pump"), lambda: later.put([doc(2, "x")]), later.revisions):
        with pytest.raises(Unavailable, match="rebuild_index") as failed:
            call()
        assert failed.value.code == "index_damaged"
    new = later.begin_rebuild()
    new.put([doc(1, "pump")])
    later.put([doc(2, "pump, written while the old index cannot be used")])
    later.swap(new)
    assert sorted(ask(later, "pump")) == [1, 2]
    assert later.check() == []


def test_an_index_deleted_by_hand_comes_back_empty(tmp_path: Path) -> None:
    backend = backends.get("sqlite")({"path": str(tmp_path / "search.sqlite3")})
    backend.ensure()
    backend.put([doc(1, "pump")])
    for file in tmp_path.glob("search-*"):
        file.unlink()
    later = backends.get("sqlite")({"path": str(tmp_path / "search.sqlite3")})
    with pytest.raises(TransientError) as failed:
        ask(later, "pump")
    assert failed.value.code == "index_busy"
    later.ensure()
    assert ask(later, "pump") == []
    later.put([doc(1, "pump")])
    assert ask(later, "pump") == [1]


def test_a_missing_index_says_so(options: tuple[str, Mapping[str, str]]) -> None:
    fresh = backends.get(options[0])(options[1])
    with pytest.raises(IndexOutdated, match="rebuild_index"):
        ask(fresh, "pump")
    fresh.ensure()
    fresh.ensure()
    assert ask(fresh, "pump") == []


def test_missing_options_are_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        backends.get("sqlite")({})
    assert refused.value.field == "path"


def test_stats_count_and_measure(backend: SearchBackend) -> None:
    world(backend)
    mine, all_of_it = backend.stats(1), backend.stats()
    assert (mine.documents, mine.chunks, mine.vectors) == (4, 4, 4)
    assert (all_of_it.documents, all_of_it.chunks, all_of_it.vectors) == (5, 5, 5)
    assert all_of_it.size_bytes > 0
    assert backend.revisions(2) == {11: 1}


def test_folder_key_is_stable_and_ignores_surplus_slashes() -> None:
    assert folder_key("") == folder_key("/") == 0
    assert folder_key("/a//b/") == folder_key("a/b") != folder_key("a/c")
    assert 0 < folder_key("a/b") < 2**63
    assert folder_key("财务") == folder_key("财务/")
