"""Figures against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from apps.evaluation import measures


def test_a_ranking_with_one_of_two_at_the_second_place() -> None:
    found = measures.retrieval([0, 1, 0, 0], wanted=2)
    ideal = 1 + 1 / math.log2(3)
    assert found == {
        "recall1": 0.0,
        "recall5": 0.5,
        "recall": 0.5,
        "precision": 0.25,
        "mrr": 0.5,
        "map": 0.25,
        "ndcg3": pytest.approx((1 / math.log2(3)) / ideal),
        "ndcg10": pytest.approx((1 / math.log2(3)) / ideal),
    }


def test_nothing_found_is_zero_throughout_and_everything_first_is_one() -> None:
    assert set(measures.retrieval([], wanted=1).values()) == {0.0}
    assert set(measures.retrieval([1], wanted=1).values()) == {1.0}


def test_what_stands_below_the_tenth_place_does_not_count() -> None:
    assert measures.retrieval([0] * 10 + [1], wanted=1)["recall"] == 0.0


def test_words_are_characters_in_chinese() -> None:
    assert measures.words("每季度 calibrate TH01，一次") == ["每", "季", "度", "calibrate", "th01", "一", "次"]


def test_an_answer_is_compared_with_the_nearest_of_those_expected() -> None:
    found = measures.answer("the cat sat", ["a dog ran", "the cat sat on"])
    assert found["overlap"] == 0.75
    assert found["bleu1"] == pytest.approx(math.exp(1 - 4 / 3))
    assert found["rouge1"] == pytest.approx(6 / 7) and found["rougel"] == pytest.approx(6 / 7)
    assert found["rouge2"] == pytest.approx(4 / 5)


def test_the_same_words_in_another_order_share_no_pairs() -> None:
    found = measures.answer("sat cat the", ["the cat sat"])
    assert found["overlap"] == 1.0 and found["rouge2"] == 0.0 and found["bleu2"] == 0.0 and found["rougel"] == pytest.approx(1 / 3)


def test_a_silent_answer_scores_nothing() -> None:
    assert set(measures.answer("", ["the cat"]).values()) == {0.0}


def test_means_leave_out_what_means_nothing_for_a_question() -> None:
    assert measures.means([{"recall": 1.0, "overlap": None}, {"recall": 0.0, "overlap": 0.5}]) == {"recall": 0.5, "overlap": 0.5}
