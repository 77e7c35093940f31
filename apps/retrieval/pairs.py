"""Question pairs among the hits: which of their questions was met, and when one of their negative questions keeps them out.

A negative question vetoes what means it, not only what repeats it: the pair is kept out when the question asked is closer to one of its
negatives than to any of its own questions. How close is the mean of two figures: the share of tokens both have (Dice), and, where both
texts have a vector, their cosine, spread over the range in which questions of one subject differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from apps.knowledge.models import Chunk
from apps.retrieval.plugins.protocol import Vector
from apps.retrieval.tokens import document_tokens, fold

_EDGES = " .,;:!?…'\"()[]{}<>~·、。，；：！？“”‘’「」『』（）《》〈〉【】"
_SPACES = re.compile(r"\s+")
_SPACE_BESIDE = re.compile(r"(?<![a-z0-9]) | (?![a-z0-9])")

#: Below this a negative is about something else, however far away the pair's own questions are.
NEAR = 0.5
#: Cosines of questions below the first figure have nothing in common, at the second they say the same.
COSINE_RANGE = (0.80, 0.97)


@dataclass(frozen=True, slots=True)
class PairFacts:
    """What a pair's first passage knows of it."""

    question: str
    questions: tuple[str, ...]
    negatives: tuple[str, ...]


def facts_of(chunk: Chunk) -> dict[str, object]:
    found = (chunk.metadata or {}).get("faq")
    return found if isinstance(found, dict) else {}


def indexed_text(chunk: Chunk) -> str:
    """The text a passage of a question pair is found by."""
    return str(facts_of(chunk).get("indexed") or chunk.content)


def pair_of(head: Chunk) -> PairFacts:
    """The questions of a pair, by its first passage."""
    facts = facts_of(head)
    questions = tuple(str(each) for each in _list(facts.get("questions"))) or (head.document.title,)
    return PairFacts(questions[0], questions, tuple(str(each) for each in _list(facts.get("negatives"))))


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def compared_texts(chunk: Chunk) -> list[str]:
    """Texts beside the passage itself that need vectors of their own: all questions of a pair that has negative ones."""
    facts = facts_of(chunk)
    negatives = [str(each) for each in _list(facts.get("negatives"))]
    return [*[str(each) for each in _list(facts.get("questions"))], *negatives] if negatives else []


def question_key(text: str) -> str:
    """A question without what does not tell questions apart: case, width, script, punctuation at its ends, spaces beside Chinese.

    Source: contract content 11.4. Never empty for a text that is not.
    """
    folded = _SPACES.sub(" ", fold(text).casefold()).strip()
    bare = _SPACE_BESIDE.sub("", folded.strip(_EDGES))
    return bare or folded


def token_share(first: str, second: str) -> float:
    """How many tokens two texts share, 0 to 1 (Dice)."""
    one, other = set(document_tokens(first)), set(document_tokens(second))
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def closeness(asked: str, text: str, pairs: Sequence[tuple[Vector, Vector]] = ()) -> float:
    """How close a question asked is to one of a pair, 0 to 1. `pairs`: (vector of the first, of the second), one for each vector space."""
    shared = token_share(asked, text)
    if not pairs:
        return shared
    low, high = COSINE_RANGE
    cosine = max(float(np.dot(one, other)) for one, other in pairs)
    return (shared + min(1.0, max(0.0, (cosine - low) / (high - low)))) / 2


def nearest_question(asked: str, questions: Sequence[str], vectors: Mapping[str, Sequence[tuple[Vector, Vector]]] | None = None) -> str:
    """The one of a pair's questions that is closest to what was asked; the first among equals."""
    return max(questions, key=lambda text: closeness(asked, text, (vectors or {}).get(text, ())), default="")


def vetoed_by(asked: str, pair: PairFacts, vectors: Mapping[str, Sequence[tuple[Vector, Vector]]] | None = None) -> str:
    """The negative question that keeps the pair out of the answers to `asked`; "" when none does.

    `vectors`: {question of the pair: (vector of what was asked, vector of that question), one for each vector space}. Where some question
    has no vector yet, only words are compared, so that both sides are measured alike.
    """
    if not pair.negatives:
        return ""
    key = question_key(asked)
    if exact := next((text for text in pair.negatives if question_key(text) == key), ""):
        return exact
    if any(question_key(text) == key for text in pair.questions):
        return ""
    known = vectors or {}
    if not all(known.get(text) for text in (*pair.questions, *pair.negatives)):
        known = {}
    against, nearest = max((closeness(asked, text, known.get(text, ())), text) for text in pair.negatives)
    best = max(closeness(asked, text, known.get(text, ())) for text in pair.questions)
    return nearest if against >= NEAR and against > best else ""
