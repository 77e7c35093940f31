"""Every search engine counts words over the bases that are asked: nothing that stands elsewhere changes a score or an order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from apps.retrieval.plugins.protocol import Hit, IndexChunk, IndexDocument, LegHit, Query, SearchBackend, Vector
from tests.support.search_engines import ask, doc

WORDS = "pump valve sensor motor seal bearing shaft filter gauge hose 水泵 阀门 传感器 电机 轴承 过滤器 压力表 软管".split()
QUESTIONS = ["pump seal", "压力表 传感器", "valve gauge bearing hose", "轴承", "how is the motor filter cleaned", "水", "ERR-41 pump"]
SPACE = "hand:8"


def passage(chance: random.Random, words: Sequence[str], length: int) -> str:
    return " ".join([*chance.choices(words, weights=range(len(words), 0, -1), k=length), f"ERR-{chance.randint(1, 60)}"])


def meaning(key: int) -> Vector:
    made = np.random.default_rng(key).normal(size=8).astype(np.float32)
    return made / np.linalg.norm(made)


def fill(backend: SearchBackend, documents: int = 80) -> None:
    chance = random.Random(3)
    made = []
    for key in range(1, documents + 1):
        parts = tuple(IndexChunk(key * 10 + n, passage(chance, WORDS, chance.randint(2, 20)), meaning(key * 10 + n)) for n in range(4))
        made.append(IndexDocument(key, 1, 1, 1, 0, (key % 3,), True, SPACE, parts))
    backend.put(made)


def beside(backend: SearchBackend, tenant_id: int, kb_id: int, first: int) -> None:
    """5,000 passages that use the same words quite differently."""
    chance = random.Random(kb_id)
    words = [*reversed(WORDS), "elsewhere"]
    backend.put(
        IndexDocument(
            first + key,
            tenant_id,
            kb_id,
            1,
            0,
            chunks=tuple(IndexChunk((first + key) * 1000 + n, passage(chance, words, 3)) for n in range(250)),
        )
        for key in range(20)
    )


def answers(backend: SearchBackend, **fields: object) -> list[tuple[list[Hit], list[LegHit]]]:
    asked = [Query(1, (1,), text, meaning(at), SPACE, k=200, **fields) for at, text in enumerate(QUESTIONS)]  # type: ignore[arg-type]
    return [(backend.search(query), backend.text_leg(query)) for query in asked]


def counted_in_large_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PostgreSQL take 320 passages for many."""
    monkeypatch.setattr("apps.retrieval.plugins.postgres_words.ALL_COUNTED", 100)
    monkeypatch.setattr("apps.retrieval.plugins.postgres_words.LEAST_SAMPLE", 20)
    monkeypatch.setattr("apps.retrieval.plugins.postgres_words.SURE", 3)
    monkeypatch.setattr("apps.retrieval.plugins.postgres_words.REMEMBERED_S", 0.0)


@pytest.mark.parametrize("prepare", [lambda _patch: None, counted_in_large_bases], ids=["all", "sampled"])
def test_what_stands_in_other_spaces_and_bases_changes_no_score_and_no_order(
    backend: SearchBackend, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[pytest.MonkeyPatch], None]
) -> None:
    prepare(monkeypatch)
    fill(backend)
    before = answers(backend), answers(backend, tag_ids=(1,))
    assert all(hits and words for hits, words in before[0])
    beside(backend, tenant_id=2, kb_id=21, first=1000)
    assert (answers(backend), answers(backend, tag_ids=(1,))) == before
    beside(backend, tenant_id=1, kb_id=2, first=2000)
    assert (answers(backend), answers(backend, tag_ids=(1,))) == before


def test_scores_are_bm25_over_the_bases_asked(backend: SearchBackend) -> None:
    backend.put([doc(1, "pump pump valve"), doc(2, "pump"), doc(3, "valve hose gauge"), doc(4, "seal"), doc(5, "pump", kb_id=2)])

    def scores(*kb_ids: int) -> dict[int, float]:
        return {hit.doc_id: hit.score for hit in backend.text_leg(Query(1, kb_ids, "pump valve"))}

    def bm25(passages: int, holding: int, times: int, length: int, average: float) -> float:
        rarity = np.log(1 + (passages - holding + 0.5) / (holding + 0.5))
        return float(rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / average)))

    one = {1: bm25(4, 2, 2, 3, 2.0) + bm25(4, 2, 1, 3, 2.0), 2: bm25(4, 2, 1, 1, 2.0), 3: bm25(4, 2, 1, 3, 2.0)}
    assert scores(1) == pytest.approx(one, abs=1e-8)
    both = {1: bm25(5, 3, 2, 3, 1.8) + bm25(5, 2, 1, 3, 1.8), 2: bm25(5, 3, 1, 1, 1.8), 3: bm25(5, 2, 1, 3, 1.8)}
    assert scores(1, 2) == pytest.approx({**both, 5: both[2]}, abs=1e-8)
    assert scores(2) == pytest.approx({5: bm25(1, 1, 1, 1, 1.0)}, abs=1e-8)


def test_counts_follow_every_write(backend: SearchBackend) -> None:
    """A document that was replaced, deleted or moved counts where it is now, and nowhere else."""

    def scores(kb_id: int = 1) -> list[tuple[int, float]]:
        return [(hit.doc_id, hit.score) for hit in backend.text_leg(Query(1, (kb_id,), "pump valve"))]

    kept = [doc(1, "pump"), doc(2, "valve"), doc(3, "hose pump")]
    backend.put(kept)
    expected = scores()
    backend.put([doc(4, ("pump valve", "valve valve"))])
    assert scores()[-2:] != expected[-2:]
    backend.put([doc(4, "nothing of it", rev=2)])
    backend.delete(1, doc_ids=[4])
    assert scores() == expected
    backend.put([doc(5, "valve valve gauge")])
    backend.set_flags(1, [5], kb_id=2)
    assert scores() == expected
    assert [key for key, _ in scores(2)] == [5]
    backend.set_flags(1, [5], kb_id=1)
    backend.set_flags(1, [5], enabled=False)
    assert {key for key, _ in scores()} == {1, 2, 3}  # it is hidden, but its words count
    assert dict(scores())[2] < dict(expected)[2]


def test_the_share_held_tells_rare_words_from_common_ones(backend: SearchBackend) -> None:
    backend.put([doc(key, "pump") for key in range(1, 10)] + [doc(10, "seal")])
    held = {hit.doc_id: hit.held for hit in backend.text_leg(Query(1, (1,), "pump seal"))}
    assert held[10] > 0.9 and held[1] == pytest.approx(1 - held[10], abs=1e-8)
    assert [hit.held for hit in backend.text_leg(Query(1, (1,), "unknown seal"))] == [
        pytest.approx(np.log(1 + 9.5 / 1.5) / (np.log(1 + 9.5 / 1.5) + np.log(1 + 10.5 / 0.5)), abs=1e-8)
    ]


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
def test_how_many_are_asked_for_changes_no_order_and_no_score(backend: SearchBackend, mode: str) -> None:
    fill(backend)
    for at, text in enumerate(QUESTIONS):
        query = [Query(1, (1,), text, meaning(at), SPACE, mode=mode, k=k) for k in (5, 40, 110, 1000)]  # type: ignore[arg-type]
        few, some, many, all_of_them = map(backend.search, query)
        assert few == all_of_them[:5]
        assert some == all_of_them[:40]
        # Beyond what is fused, a hit that both legs list far down may learn of its second leg only when more is read.
        assert [(hit.chunk_id, hit.score) for hit in many] == [(hit.chunk_id, hit.score) for hit in all_of_them[:110]]
        assert len(few) == 5 and len({hit.chunk_id for hit in all_of_them}) == len(all_of_them)
    if mode == "vector":
        assert len(all_of_them) == 320


def test_a_base_of_one_passage_has_scores(backend: SearchBackend) -> None:
    backend.put([doc(1, "pump")])
    assert backend.text_leg(Query(1, (1,), "pump"))[0].score == pytest.approx(np.log(1 + 0.5 / 1.5), abs=1e-8)
    assert ask(backend, "pump") == [1]
