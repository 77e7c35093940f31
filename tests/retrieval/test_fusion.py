"""How the legs become one ranking."""

from __future__ import annotations

import pytest

from apps.retrieval.fusion import beyond, evidence, fuse, leg_weights
from apps.retrieval.plugins.protocol import ExactHit, LegHit


def leg(*scores: tuple[int, float]) -> list[LegHit]:
    return [LegHit(chunk, chunk * 100, score, rank) for rank, (chunk, score) in enumerate(scores, 1)]


def test_minmax_scores_are_half_and_half_with_absent_as_zero() -> None:
    hits = fuse(leg((1, 8.0), (2, 4.0)), leg((2, 0.9), (3, 0.85), (4, 0.8)))
    assert [(h.chunk_id, round(h.score, 6)) for h in hits] == [(2, 0.75), (1, 0.5), (3, 0.25), (4, 0.0)]
    assert [h.doc_id for h in hits] == [200, 100, 300, 400]


def test_each_hit_keeps_what_each_leg_said() -> None:
    first = fuse(leg((1, 8.0), (2, 4.0)), leg((2, 0.9), (3, 0.8)))[0]
    assert first.text_leg == LegHit(2, 200, 4.0, 2)
    assert first.vector_leg == LegHit(2, 200, 0.9, 1)
    assert not first.exact


def test_weights_are_proportions() -> None:
    hits = fuse(leg((1, 8.0)), leg((2, 0.9), (1, 0.8)), weights=(3, 1))
    assert {h.chunk_id: h.score for h in hits} == {1: 0.75, 2: 0.25}


def test_rank_fusion() -> None:
    hits = fuse(leg((1, 8.0), (2, 4.0)), leg((2, 0.9), (1, 0.8), (3, 0.7)), method="rrf")
    assert [h.chunk_id for h in hits] == [1, 2, 3]
    assert hits[0].score == pytest.approx(hits[1].score) == pytest.approx(0.5 + 0.5 * 11 / 12)
    assert hits[2].score == pytest.approx(0.5 * 11 / 13)


def test_one_leg_alone_keeps_its_order_and_whole_range() -> None:
    assert [(h.chunk_id, h.score) for h in fuse(leg((5, 3.0), (4, 1.5)), [], known=0.1)] == [(5, 1.0), (4, 0.5)]
    assert [(h.chunk_id, h.score) for h in fuse([], leg((5, 0.9), (4, 0.8)))] == [(5, 1.0), (4, 0.0)]
    assert fuse([], []) == []


def test_words_that_hardly_know_the_question_do_not_drown_the_vectors() -> None:
    text, vector = leg((9, 2.0)), leg((1, 0.9), (2, 0.88), (3, 0.8))
    assert [h.chunk_id for h in fuse(text, vector, known=0.05)][:3] == [1, 2, 9]
    assert [h.chunk_id for h in fuse(text, vector, known=1.0)][:2] == [1, 9]


@pytest.mark.parametrize(
    ("weights", "known", "expected"),
    [
        ((0.5, 0.5), 1.0, (0.5, 0.5)),
        ((0.5, 0.5), 0.5, (0.5, 0.5)),
        ((0.5, 0.5), 0.25, (0.25, 0.75)),
        ((0.5, 0.5), 0.0, (0.0, 1.0)),
        ((2.0, 2.0), 1.0, (0.5, 0.5)),
        ((1.0, 0.0), 0.0, (1.0, 0.0)),
        ((0.0, 1.0), 1.0, (0.0, 1.0)),
        ((0.0, 0.0), 1.0, (0.5, 0.5)),
        ((-1.0, 1.0), 1.0, (0.0, 1.0)),
    ],
)
def test_leg_weights(weights: tuple[float, float], known: float, expected: tuple[float, float]) -> None:
    assert leg_weights(weights, known) == pytest.approx(expected)


def test_exact_matches_stand_first_by_grade_and_the_scores_fall() -> None:
    text, vector = leg((1, 9.0), (2, 3.0), (3, 1.0)), leg((4, 0.95), (1, 0.9), (3, 0.7))
    hits = fuse(text, vector, exact=[ExactHit(3, 300, 6), ExactHit(2, 200, 2), ExactHit(7, 700, 2)])
    assert [(h.chunk_id, h.exact) for h in hits] == [(3, True), (2, True), (7, True), (1, False), (4, False)]
    scores = [h.score for h in hits]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= min(scores) and max(scores) <= 1


def test_ties_are_broken_by_id_and_equal_scores_count_as_best() -> None:
    assert [h.chunk_id for h in fuse(leg((2, 0.0), (1, 0.0)), [])] == [1, 2]
    assert [(h.chunk_id, h.score) for h in fuse([], leg((2, 0.8), (1, 0.8)))] == [(1, 1.0), (2, 1.0)]


def test_evidence_is_what_the_best_of_three_word_hits_holds() -> None:
    text = [LegHit(chunk, chunk, 1.0, rank, held) for rank, (chunk, held) in enumerate([(1, 0.25), (2, 0.75), (3, 0.5), (4, 1.0)], 1)]
    assert evidence(text) == 0.75
    assert evidence([]) == 1.0


def test_what_stands_beyond_the_fused_follows_by_its_better_rank() -> None:
    text, vector = leg((1, 9.0), (2, 8.0), (3, 7.0)), leg((4, 0.9), (3, 0.8), (1, 0.7), (5, 0.6))
    hits = fuse(text[:1], vector[:1])
    more = beyond(hits, text, vector)
    assert [hit.chunk_id for hit in hits] == [1, 4]
    assert [(hit.chunk_id, hit.score) for hit in more] == [(2, 0.0), (3, 0.0), (5, 0.0)]
    assert more[1].text_leg == LegHit(3, 300, 7.0, 3) and more[1].vector_leg == LegHit(3, 300, 0.8, 2)
    assert [hit.chunk_id for hit in beyond(hits, text[:2], vector[:3])] == [2, 3]
