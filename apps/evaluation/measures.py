"""Figures of retrieval and answers, each from 0 to 1, for one question.

Source: Jaervelin and Kekaelaeinen 2002 (nDCG, binary gains); Papineni et al. 2002 (BLEU, one sentence, no smoothing); Lin 2004 (ROUGE, F1).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

RETRIEVAL = ("recall1", "recall5", "recall", "precision", "mrr", "map", "ndcg3", "ndcg10")
ANSWER = ("decision", "citation_precision", "overlap", "bleu1", "bleu2", "bleu4", "rouge1", "rouge2", "rougel")
NAMES = (*RETRIEVAL, *ANSWER)
DEPTH = 10
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_WIDE = re.compile(r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")


def retrieval(gains: Sequence[int], wanted: int) -> dict[str, float]:
    """Figures of a ranking. `gains[i]`: how many wanted things come up first at place i; `wanted`: how many there are, at least one."""
    top = list(gains[:DEPTH])
    found = [sum(top[: place + 1]) for place in range(len(top))]
    first = next((place for place, gain in enumerate(top) if gain), None)
    precise = sum(found[place] / (place + 1) * gain for place, gain in enumerate(top) if gain)
    return {
        "recall1": min(1.0, sum(top[:1]) / wanted),
        "recall5": min(1.0, sum(top[:5]) / wanted),
        "recall": min(1.0, sum(top) / wanted),
        "precision": sum(1 for gain in top if gain) / len(top) if top else 0.0,
        "mrr": 1 / (first + 1) if first is not None else 0.0,
        "map": min(1.0, precise / min(wanted, DEPTH)),
        "ndcg3": _ndcg(top, wanted, 3),
        "ndcg10": _ndcg(top, wanted, 10),
    }


def _ndcg(gains: Sequence[int], wanted: int, depth: int) -> float:
    gained = sum(gain / math.log2(place + 2) for place, gain in enumerate(gains[:depth]))
    ideal = sum(1 / math.log2(place + 2) for place in range(min(wanted, depth)))
    return min(1.0, gained / ideal)


def words(text: str) -> list[str]:
    """Words of a text in small letters; a Chinese, Japanese or Korean character is a word."""
    return _WORD.findall(_WIDE.sub(r" \1 ", text.lower()))


def answer(text: str, expected: Sequence[str]) -> dict[str, float]:
    """How near an answer is to the nearest of those expected; `overlap` is the share of the expected words that it says."""
    best: dict[str, float] = {}
    said = words(text)
    for each in expected:
        wanted = words(each)
        shared = sum((Counter(said) & Counter(wanted)).values())
        figures = {
            "overlap": shared / len(wanted) if wanted else 0.0,
            **{f"bleu{order}": _bleu(said, wanted, order) for order in (1, 2, 4)},
            **{f"rouge{order}": _rouge(said, wanted, order) for order in (1, 2)},
            "rougel": _f1(_longest(said, wanted), len(said), len(wanted)),
        }
        best = {name: max(value, best.get(name, 0.0)) for name, value in figures.items()}
    return best


def _grams(text: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(text[at : at + order]) for at in range(len(text) - order + 1))


def _bleu(said: Sequence[str], wanted: Sequence[str], most: int) -> float:
    """Up to as many words at a time as the shorter of the two has."""
    most = min(most, len(said), len(wanted))
    logs = 0.0
    for order in range(1, most + 1):
        grams = _grams(said, order)
        shared = sum((grams & _grams(wanted, order)).values())
        if not shared:
            return 0.0
        logs += math.log(shared / sum(grams.values()))
    if not most:
        return 0.0
    brief = min(0.0, 1 - len(wanted) / len(said))
    return math.exp(brief + logs / most)


def _rouge(said: Sequence[str], wanted: Sequence[str], order: int) -> float:
    ours, theirs = _grams(said, order), _grams(wanted, order)
    return _f1(sum((ours & theirs).values()), sum(ours.values()), sum(theirs.values()))


def _f1(shared: int, ours: int, theirs: int) -> float:
    return 2 * shared / (ours + theirs) if shared else 0.0


def _longest(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(theirs) + 1)
    for word in ours:
        before = 0
        for at, other in enumerate(theirs, 1):
            before, row[at] = row[at], before + 1 if word == other else max(row[at], row[at - 1])
    return row[-1]


def means(rows: Iterable[Mapping[str, float | None]]) -> dict[str, float]:
    """{figure: its mean over the questions it means something for}."""
    held: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if value is not None:
                held.setdefault(name, []).append(value)
    return {name: round(sum(held[name]) / len(held[name]), 4) for name in NAMES if name in held}
