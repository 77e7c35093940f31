"""Why a passage was found: the words of the question in it, where they stand, and the excerpt that shows them best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from apps.knowledge.selectors import without_references
from apps.retrieval.tokens import CONNECTORS, QueryTokens, Span, document_spans, document_tokens, is_code, query_tokens

SNIPPET_WIDTH = 160
_BREAKS = "。！？；!?;\n"
_LEAD = 24  # how far an excerpt may begin before its first match to begin with a sentence

Range = tuple[int, int]
TermKind = Literal["exact", "part"]


@dataclass(frozen=True, slots=True)
class Term:
    """One piece of the question that the passage holds, as the passage writes it.

    `exact`: a whole word, code or run of Chinese characters of the question; `part`: a piece of one (`4021` of `ERR-4021`), or a
    code that the passage has only inside a longer one (`ERR-4021-B`).
    """

    text: str
    kind: TermKind


@dataclass(frozen=True, slots=True)
class Explanation:
    """`spans`: what to highlight, [start, end) in characters of the passage, in order, never touching. `terms`: without duplicates,
    exact ones first. `quoted`: the passage holds the question word for word."""

    spans: tuple[Range, ...]
    terms: tuple[Term, ...]
    quoted: bool


@dataclass(frozen=True, slots=True)
class Snippet:
    """`text` is passage[start : start + len(text)], white space at its ends removed; `spans` count from the beginning of `text`."""

    text: str
    spans: tuple[Range, ...]
    start: int


def explain(text: str, query: str) -> Explanation:
    """What a passage has of a question. Codes are covered whole; pairs of Chinese characters are merged into the words they make."""
    wanted = query_tokens(query)
    spans = document_spans(text)
    matched = _matched(spans, wanted)
    merged = _merge(text, ((span.start, span.end) for span in matched))
    whole = _whole_pieces(query)
    terms: dict[str, Term] = {}
    for start, end in merged:
        piece = text[start:end]
        inside = is_code(piece) and any(span.start <= start and end <= span.end and span.end - span.start > end - start for span in spans)
        kind: TermKind = "exact" if whole & _forms(piece) and not inside else "part"
        terms.setdefault(piece.casefold(), Term(piece, kind))
    ordered = sorted(terms.values(), key=lambda term: term.kind != "exact")
    return Explanation(tuple(merged), tuple(ordered), _holds(spans, wanted.phrase))


def highlights(text: str, query: str) -> tuple[Range, ...]:
    """[start, end) of what to highlight in `text`, in order, never touching."""
    return explain(text, query).spans


def why(text: str, query: str) -> tuple[Term, ...]:
    """The words of the question that a passage holds, exact ones first."""
    return explain(text, query).terms


def snippet(text: str, query: str, width: int = SNIPPET_WIDTH) -> Snippet:
    """The excerpt of at most `width` characters that holds the most different words of the question; the beginning if it holds none.

    A match is never cut in two unless it is longer than the excerpt. Pictures named in the text are left to their words.
    """
    width = max(width, 1)
    text = without_references(text)
    spans = document_spans(text)
    wanted = query_tokens(query)
    matched = _matched(spans, wanted)
    ranges = _merge(text, ((span.start, span.end) for span in matched))
    start = _window_start(text, matched, ranges, width)
    end = min(len(text), start + width)
    for low, high in ranges:
        if low < end < high and low > start:
            end = low
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    inside = tuple((max(low, start) - start, min(high, end) - start) for low, high in ranges if low < end and high > start)
    return Snippet(text[start:end], inside, start)


def _matched(spans: Sequence[Span], wanted: QueryTokens) -> list[Span]:
    """The spans whose token was asked for; where a whole code stands in the passage, stray pieces of it elsewhere do not count."""
    if wanted.prefix:
        return [Span(s.token, s.start, s.start + 1) for s in spans if s.token.startswith(wanted.prefix)]
    asked = set(wanted.tokens)
    present = {span.token for span in spans}
    for code in wanted.codes:
        if len(code.whole) == 1 and code.whole[0] in present:
            asked.difference_update(set(document_tokens(code.whole[0])) - set(wanted.words))
    return [span for span in spans if span.token in asked]


def _merge(text: str, ranges: Iterable[Range], *, bridge: bool = True) -> list[Range]:
    """The union of the ranges; with `bridge`, two with nothing but a connector between them (`传感器-TH01`) become one."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged:
            low, high = merged[-1]
            gap = text[high:start]
            if start < high or (bridge and len(gap) <= 3 and not gap.strip(CONNECTORS)):
                merged[-1] = (low, max(high, end))
                continue
        merged.append((start, end))
    return merged


def _forms(piece: str) -> set[str]:
    """The tokens of a piece of text that stand for all of it."""
    spans = document_spans(piece)
    covering = {span.token for span in spans if span.start == 0 and span.end == len(piece)}
    return covering | {" ".join(span.token for span in spans)}


def _whole_pieces(query: str) -> set[str]:
    """The forms of every piece of the question that stands between spaces, and of every word and run of characters in it."""
    ranges = [(span.start, span.end) for span in document_spans(query)]
    pieces = {query.strip(), *query.split()}
    for bridge in (True, False):
        pieces |= {query[low:high] for low, high in _merge(query, ranges, bridge=bridge)}
    return set().union(*map(_forms, pieces))


def _holds(spans: Sequence[Span], phrase: Sequence[str]) -> bool:
    tokens, size = [span.token for span in spans], len(phrase)
    return bool(size) and any(tokens[at] == phrase[0] and tuple(tokens[at : at + size]) == tuple(phrase) for at in range(len(tokens)))


def _window_start(text: str, matched: Sequence[Span], ranges: Sequence[Range], width: int) -> int:
    """Where the best excerpt begins: it holds the most different tokens, longer ones counting more, and starts at a sentence if near."""
    if not matched or len(text) <= width:
        return 0
    best, best_score, best_end = 0, -1.0, 0
    for low, _ in ranges:
        inside = [span for span in matched if low <= span.start and span.end <= low + width]
        score = sum(len(token) ** 0.5 for token in {span.token for span in inside}) + 0.01 * len(inside)
        if score > best_score:
            best, best_score, best_end = low, score, max((span.end for span in inside), default=low)
    room = min(_LEAD, width - (best_end - best))
    floor = max(0, best - max(room, 0))
    start = best - max(room, 0) // 2 if floor else 0
    for at in range(best, floor, -1):
        if text[at - 1] in _BREAKS or (text[at - 1].isspace() and at > 1 and text[at - 2] in ".!?"):
            return at
    start = max(0, start)
    around = next((low for low, high in ranges if low < start < high), None)
    if around is not None:
        return around
    while 0 < start < best and text[start - 1].isascii() and text[start - 1].isalnum() and text[start].isascii() and text[start].isalnum():
        start += 1
    return min(start, max(0, best))
