"""Question pairs among the hits: which of their questions was met, and when one of their negative questions keeps them out.

A negative question vetoes what means it, not only what repeats it: a pair is kept out when the question asked is closer to one of its
negatives than to any of its own questions. Cosines decide where all of these have vectors; where they are as good as equal, or vectors are
still being made, the share of tokens both texts have does. Cosines are only compared with each other, so the model does not matter.
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

#: Cosines that differ by less say nothing: of 33 questions that should or should not be kept out, the nearest call was 0.008 apart.
MARGIN = 0.005
#: By words alone a negative must share this much with what was asked (Dice); less is chance, and an entry is better shown than lost.
NEAR = 0.4


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


Compared = Mapping[str, Sequence[tuple[Vector, Vector]]]
"""{question of a pair: (vector of what was asked, vector of that question), one for each vector space}"""


def _cosine(text: str, vectors: Compared) -> float:
    return max((float(np.dot(one, other)) for one, other in vectors.get(text, ())), default=-1.0)


def nearest_question(asked: str, questions: Sequence[str], vectors: Compared | None = None) -> str:
    """The one of a pair's questions that is closest to what was asked; the first among equals."""
    known = vectors or {}
    has_all = all(known.get(text) for text in questions)
    return max(questions, key=lambda text: _cosine(text, known) if has_all else token_share(asked, text), default="")


def vetoed_by(asked: str, pair: PairFacts, vectors: Compared | None = None) -> str:
    """The negative question that keeps the pair out of the answers to `asked`; "" when none does."""
    if not pair.negatives:
        return ""
    key = question_key(asked)
    if exact := next((text for text in pair.negatives if question_key(text) == key), ""):
        return exact
    if any(question_key(text) == key for text in pair.questions):
        return ""
    known = vectors or {}
    if all(known.get(text) for text in (*pair.questions, *pair.negatives)):
        against, nearest = max((_cosine(text, known), text) for text in pair.negatives)
        best = max(_cosine(text, known) for text in pair.questions)
        if abs(against - best) > MARGIN:
            return nearest if against > best else ""
    shared, nearest = max((token_share(asked, text), text) for text in pair.negatives)
    own = max(token_share(asked, text) for text in pair.questions)
    return nearest if shared >= NEAR and shared > own else ""
