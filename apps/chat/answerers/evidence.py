"""Whether what was found can answer the question: the gate before the built-in answerer, which would quote anything."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.retrieval.selectors import text_tokens, wanted_tokens

_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")

#: What the best passage must hold of the question, by writing, where words alone tell; measured in benchmarks/answering.py
ENOUGH_WIDE, ENOUGH_LATIN = 0.21, 0.34
#: The same where nearness in meaning tells as well: coverage + SLOPE * (cosine of the packaged embedder - CENTRE)
BOTH_WIDE, BOTH_LATIN = 0.24, 0.18
SLOPE, CENTRE = 4.0, 0.86
#: Where question and passage share no writing, nearness alone must do
NEAR_ACROSS = 0.775
COMPARED = 12
READ = 5  # passages looked at


@dataclass(frozen=True, slots=True)
class Source:
    """A passage as answerers see it: its number, its text, and what the search said of it."""

    number: int
    text: str
    exact: bool = False
    nearness: float | None = None
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """`coverage`: share of the question, by weight, that the best passage holds. `rule`: what decided."""

    enough: bool
    coverage: float
    rule: str


def is_wide(text: str) -> bool:
    """Whether a text is written mainly without spaces (Chinese, Japanese, Korean)."""
    return len(_WIDE.findall(text)) * 3 >= len(text.strip()) or len(_WIDE.findall(text)) >= 6


def weights(question: str, texts: Sequence[str]) -> dict[str, float]:
    """{word of the question: how much it tells}: words that stand in all the passages tell least, long ones more than short ones."""
    sets = [text_tokens(text) for text in texts]

    def weight(token: str) -> float:
        length = math.sqrt(min(len(token), 8)) if token.isascii() else 1.0
        return length / math.sqrt(max(1, sum(token in held for held in sets)))

    return {token: weight(token) for token in wanted_tokens(question)}


def coverage(weighed: Mapping[str, float], text: str) -> float:
    """The share of the weight that stands in a text. 0..1"""
    total = sum(weighed.values())
    held = text_tokens(text)
    return sum(weight for token, weight in weighed.items() if token in held) / total if total else 0.0


def judge(question: str, found: Sequence[Source], compared: Sequence[str] = ()) -> Evidence:
    """Whether `found`, best first, can answer; `compared`: further passages of the same search, which tell how common a word is here."""
    if not found:
        return Evidence(False, 0.0, "nothing")
    texts = [source.text for source in found]
    weighed = weights(question, [*texts, *compared][:COMPARED] if compared else texts[:COMPARED])
    best = max((coverage(weighed, text) for text in texts[:READ]), default=0.0)
    if any(source.explicit for source in found):
        return Evidence(True, best, "explicit")
    if any(source.exact for source in found):
        return Evidence(True, best, "exact")
    wide = is_wide(question)
    near = max((source.nearness for source in found if source.nearness is not None), default=None)
    if near is None:
        return Evidence(best >= (ENOUGH_WIDE if wide else ENOUGH_LATIN), best, "words")
    if best + SLOPE * (near - CENTRE) >= (BOTH_WIDE if wide else BOTH_LATIN):
        return Evidence(True, best, "both")
    across = [source.nearness or 0.0 for source in found[:READ] if is_wide(source.text) != wide]
    return Evidence(bool(across) and max(across) >= NEAR_ACROSS, best, "meaning" if across else "both")
