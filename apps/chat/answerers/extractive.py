"""The built-in answerer: the sentences of what was found that answer best, word for word, each with its source. No model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apps.chat.answerers.evidence import Source, is_wide, weights
from apps.chat.answerers.sentences import Sentence, plain, sentences
from apps.retrieval.selectors import text_tokens

MAX_SENTENCES = 4
MAX_PARTS = 4  # questions in one message
_PARTS = re.compile(r"[？?；;\n]+")
MAX_CHARS = 700
MAX_SENTENCE = 320
LEAST = 0.45  # of what the best sentence has
REPEATED = 0.25  # what a word counts that was said already


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of an answer; `number`: the passage it stands in."""

    text: str
    number: int
    start: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    source: Source
    sentence: Sentence
    tokens: frozenset[str]
    rank: int


def extract(question: str, found: Sequence[Source], *, general: bool = False) -> list[Piece]:
    """The best sentences in reading order: passages by number, sentences as they stand. With `general`, how each passage begins."""
    if general:
        return _openings(found)
    asked = [part for part in _PARTS.split(question) if len(part.strip()) > 1] or [question]
    chosen: dict[tuple[int, int], Piece] = {}
    for part in asked[:MAX_PARTS]:
        for piece in _best(part, found, MAX_SENTENCES if len(asked) == 1 else 2):
            chosen.setdefault((piece.number, piece.start), piece)
    return [chosen[key] for key in sorted(chosen)] or _openings(found[:1])


def _best(question: str, found: Sequence[Source], most: int) -> list[Piece]:
    """At most `most` sentences for one question."""
    candidates = [
        _Candidate(source, sentence, frozenset(text_tokens(sentence.text)), rank)
        for rank, source in enumerate(found)
        for sentence in sentences(source.text)
        if len(sentence.text) > 3
    ]
    if not candidates:
        return []
    weighed = weights(question, [candidate.sentence.text for candidate in candidates])
    chosen: list[_Candidate] = []
    said: set[str] = set()
    first = length = 0.0
    while len(chosen) < most and length < MAX_CHARS:
        scored = [(_gain(candidate, weighed, said), -at) for at, candidate in enumerate(candidates) if candidate not in chosen]
        if not scored:
            break
        gain, at = max(scored)
        if gain <= 0 or (chosen and gain < LEAST * first):
            break
        first = first or gain
        candidate = candidates[-at]
        chosen.append(candidate)
        said |= candidate.tokens
        length += len(candidate.sentence.text)
    return [Piece(_short(plain(c.sentence.text)), c.source.number, c.sentence.start) for c in chosen]


def _gain(candidate: _Candidate, weighed: dict[str, float], said: set[str]) -> float:
    """What a sentence adds: words asked for that were not said yet; the search's order breaks ties, long sentences pay a little."""
    held = sum(weight * (REPEATED if token in said else 1.0) for token, weight in weighed.items() if token in candidate.tokens)
    if held <= 0:
        return 0.0
    length = max(len(candidate.sentence.text), 20)
    return held * (1.0 + 0.15 / (1 + candidate.rank)) / (1.0 + max(0.0, (length - 160) / 800))


def _openings(found: Sequence[Source]) -> list[Piece]:
    pieces = []
    for source in found:
        first = next((sentence for sentence in sentences(source.text) if len(sentence.text) > 3), None)
        if first is not None:
            pieces.append(Piece(_short(plain(first.text)), source.number, first.start))
    return pieces


def _short(text: str) -> str:
    return text if len(text) <= MAX_SENTENCE else text[: MAX_SENTENCE - 1].rstrip() + "…"


def written(pieces: Sequence[Piece]) -> str:
    """The pieces as Markdown: sentences of one passage make a paragraph, each with its mark; several passages make a list."""
    groups: dict[int, list[str]] = {}
    for piece in pieces:
        groups.setdefault(piece.number, []).append(f"{piece.text} [{piece.number}]")
    paragraphs = [("" if is_wide(lines[0]) else " ").join(lines) for lines in groups.values()]
    return "\n".join(f"- {paragraph}" for paragraph in paragraphs) if len(paragraphs) > 1 else "".join(paragraphs)
