"""The smallest spans a passage is put together from, and how good it is to cut between them.

A unit starts where a cut may be made; it runs to the next unit's start. `strength` rates the cut before it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from apps.ingestion.chunking.markdown_blocks import is_item
from apps.ingestion.plugins.protocol import Block, ChunkingConfig

HEADING, EDGE, FIRST_SEPARATOR, LAST_SEPARATOR, ITEM, PARAGRAPH, LINE, CONTINUED, SENTENCE, WRAPPED, CLAUSE, WORD = (
    100, 95, 90, 70, 78, 60, 55, 45, 40, 30, 20, 10,
)  # fmt: skip
_DEEPEST_INDENT = 400
_LONGEST_CLUSTER = 64
DEFAULT_SEPARATORS = ("\n\n", "\n", "。")

_SPACE = re.compile(r"\s*")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_CLAUSE = re.compile(r"[，,；;：:、][”’」』）)\]\"']*\s*")
_CLAUSE_OR_SPACE = re.compile(r"[，,；;：:、][”’」』）)\]\"']*\s*|\s+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:[A-Za-z]|[zZ]\.\s?B|[dD]\.\s?h|[eE]\.g|[iI]\.e|Dr|Prof|Mr|Mrs|Ms|St|No|Nr|Fig|Abb|Tab|Eq|vs|bzw|ca|cf|approx|Inc|Ltd|Co)$"
)
_ENDS_SENTENCE = tuple("。！？!?；;.:：…”’」』）)|")


@lru_cache(maxsize=64)
def _boundary_pattern(separators: tuple[str, ...]) -> re.Pattern[str]:
    own = "|".join(re.escape(item) for item in sorted(separators, key=len, reverse=True))
    parts = [f"(?P<own>{own})"] if own else []
    parts += [
        r"(?P<para>\n[^\S\n]*\n)",
        r"(?P<feed>\f)",
        r"(?P<line>\n)",
        r"(?P<zh>[。！？…；]+[”’」』）)\]\"']*)",
        r"(?P<en>[.!?]+[”’\")\]]*)",
    ]
    return re.compile("|".join(parts))


@dataclass(slots=True)
class Unit:
    start: int
    stop: int  # end without trailing white space
    strength: int
    kind: str = "text"  # text table code image
    glue: bool = False  # must not end a passage: headings
    item: int = -1  # start of the list item it continues
    tokens: int = -1


@dataclass(slots=True)
class Limits:
    """What one passage may hold. Units: characters, tokens (0 = no limit)."""

    size: int
    overlap: int
    tokens: int
    count: Callable[[str], int]
    check: Callable[[], None] = field(default=lambda: None)

    def fits(self, text: str) -> bool:
        return len(text) <= self.size and (not self.tokens or self.count(text) <= self.tokens)


def separator_strengths(separators: tuple[str, ...]) -> dict[str, int]:
    """First separator strongest; a list of only one gets the top."""
    step = (FIRST_SEPARATOR - LAST_SEPARATOR) / max(1, len(separators) - 1)
    return {item: round(FIRST_SEPARATOR - step * at) for at, item in reversed(list(enumerate(separators)))}


def _cut_in_separator(found: str) -> int:
    """Where inside a separator the cut falls: behind it, but before a mark that opens the next line (`\\n## `, `# `)."""
    line = found.rfind("\n")
    tail = found[line + 1 :]
    if line >= 0 and tail.strip():
        return line + 1
    return 0 if found.strip() and not found.strip().strip("#") else len(found)


class UnitMaker:
    """Turns spans of one text into units."""

    def __init__(self, text: str, config: ChunkingConfig, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        separators = config.separators or DEFAULT_SEPARATORS
        self.strengths = separator_strengths(separators)
        self.plain = tuple(separators) == DEFAULT_SEPARATORS
        self.pattern = _boundary_pattern(separators)
        self.sentence = self.strengths.get("。", SENTENCE)

    def _sentence_ends(self, at: int, end: int) -> bool:
        """Whether a `.` at [at, end) closes a sentence: white space follows, the next word is not lower case, the last no abbreviation."""
        if end < len(self.text) and not self.text[end].isspace():
            return False
        following = _SPACE.match(self.text, end).end()  # type: ignore[union-attr]
        if following < len(self.text) and self.text[following].islower():
            return False
        return self.text[at] != "." or not _ABBREVIATION.search(self.text, max(0, at - 8), at)

    def boundaries(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """(offset, strength) of the places to cut inside [start, end), in order; several may be at one place once spaces are skipped."""
        previous_line = start
        for match in self.pattern.finditer(self.text, start, end):
            kind = match.lastgroup
            at = match.end()
            if kind == "own":
                found = match.group()
                at = match.start() + _cut_in_separator(found)
                strength = self.strengths[found]
                if found == "\n" and self.plain:
                    strength = self._line_strength(previous_line, match.start(), strength)
            elif kind == "para":
                strength = PARAGRAPH
            elif kind == "feed":
                strength = EDGE
            elif kind == "line":
                strength = self._line_strength(previous_line, match.start(), LINE)
            elif kind == "zh":
                strength = self.sentence
            elif self._sentence_ends(match.start(), match.end()):
                strength = self.sentence
            else:
                continue
            if kind in ("own", "para", "line") and "\n" in match.group():
                previous_line = at
            yield at, strength

    def _line_strength(self, line: int, end: int, strength: int) -> int:
        """A line break is weak where a long line was wrapped in the middle of a sentence."""
        if end - line < 40:
            return strength
        tail = self.text[max(line, end - 2) : end].rstrip()
        return strength if tail.endswith(_ENDS_SENTENCE) else WRAPPED

    def units(self, start: int, end: int, first: int, *, lines_only: bool = False) -> list[Unit]:
        """Units of [start, end), the first one with the strength `first`. `lines_only`: cut at lines, keep indentation."""
        places: dict[int, int] = {}
        skip = _BLANK_LINES if lines_only else _SPACE
        found = self._lines(start, end) if lines_only else self.boundaries(start, end)
        reach = start  # blank text already skipped: a run of blank lines is looked at once
        for at, strength in found:
            if at < reach:
                at = reach
            elif at < end and self.text[at].isspace():
                at = reach = skip.match(self.text, at, end).end()  # type: ignore[union-attr]
            if start < at < end:
                places[at] = max(places.get(at, 0), strength)
        at, strength = skip.match(self.text, start, end).end(), first  # type: ignore[union-attr]
        made: list[Unit] = []
        for place in [*sorted(places), end]:
            if place <= at:
                strength = max(strength, places.get(place, 0)) if place == at else strength
                continue
            stop = at + len(self.text[at:place].rstrip())
            if stop > at:
                made.append(Unit(at, stop, strength))
            at, strength = place, places.get(place, 0)
        return self._shatter(made, self.limits.size * 4 if lines_only else self.limits.size)

    def _lines(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        at = self.text.find("\n", start, end)
        while at >= 0:
            after = _BLANK_LINES.match(self.text, at + 1, end).end()  # type: ignore[union-attr]
            yield after, PARAGRAPH if after > at + 1 else LINE
            at = self.text.find("\n", max(after, at + 1), end)

    def list_units(self, start: int, end: int, first: int) -> list[Unit]:
        """Units of a list: cuts before items are good, inside an item poor; separators the user chose keep their strength."""
        made = self.units(start, end, first)
        item = made[0].start if made else start
        for at, unit in enumerate(made):
            near = max(start, unit.start - _DEEPEST_INDENT)
            line = max(near, self.text.rfind("\n", near, unit.start) + 1)
            opens = not self.text[line : unit.start].strip() and is_item(self.text[line : unit.stop].split("\n", 1)[0])
            if opens or at == 0:
                item = unit.start
                unit.strength = max(unit.strength, ITEM) if at else unit.strength
                continue
            unit.item = item
            if self.plain:
                unit.strength = min(unit.strength, CONTINUED)
        return made

    def block_units(self, block: Block, start: int, end: int) -> list[Unit]:
        """Units of the part [start, end) of one block (tables that fit are one unit)."""
        if block.kind == "heading" and self.limits.fits(self.text[start:end]):
            return [Unit(start, start + len(self.text[start:end].rstrip()), HEADING, glue=True)]
        if block.kind == "image" and self.limits.fits(self.text[start:end]):
            return [Unit(start, start + len(self.text[start:end].rstrip()), self.strengths.get("\n\n", PARAGRAPH), "image")]
        if block.kind == "table":
            return [Unit(start, start + len(self.text[start:end].rstrip()), EDGE, "table")]
        first = HEADING if block.kind == "heading" else self.strengths.get("\n\n", PARAGRAPH)
        if block.kind == "list":
            return self.list_units(start, end, first)
        made = self.units(start, end, EDGE if block.kind == "code" else first, lines_only=block.kind == "code")
        if block.kind in ("code", "image"):
            for unit in made:
                unit.kind = block.kind
        return made

    def _shatter(self, units: list[Unit], size: int) -> list[Unit]:
        made: list[Unit] = []
        for unit in units:
            if unit.stop - unit.start <= size and not self._too_many_tokens(unit):
                made.append(unit)
                continue
            made.extend(self.pieces(unit, size))
        return made

    def _too_many_tokens(self, unit: Unit) -> bool:
        if not self.limits.tokens:
            return False
        unit.tokens = self.limits.count(self.text[unit.start : unit.stop])
        return unit.tokens > self.limits.tokens

    def pieces(self, unit: Unit, size: int) -> Iterator[Unit]:
        """One over-long sentence as clauses, those as words, those as whole characters (grapheme clusters)."""
        wanted = max(1, min(size, max(16, size // 8)))
        if unit.tokens > 0 and self.limits.tokens:
            per_token = (unit.stop - unit.start) / unit.tokens
            wanted = max(1, min(wanted, int(per_token * self.limits.tokens * 0.5)))
        strength = unit.strength
        edges = [match.end() for match in _CLAUSE.finditer(self.text, unit.start, unit.stop)]
        at = unit.start
        for edge in [*edges, unit.stop]:
            if edge - at < wanted and edge != unit.stop:
                continue
            if edge - at <= size // 2 and not self.limits.tokens:
                stop = at + len(self.text[at:edge].rstrip())
                if stop == at:
                    continue
                yield Unit(at, stop, strength)
            else:
                for offset, word in enumerate(word_spans(self.text, at, edge, wanted)):
                    yield from self._checked(Unit(*word, WORD if offset else strength))
            at, strength = edge, CLAUSE

    def _checked(self, unit: Unit) -> Iterator[Unit]:
        """The unit, or its halves until each keeps the token limit (one character always stays whole)."""
        if unit.stop - unit.start > 1 and self._too_many_tokens(unit):
            spans = list(word_spans(self.text, unit.start, unit.stop, (unit.stop - unit.start + 1) // 2))
            if len(spans) > 1:
                for at, span in enumerate(spans):
                    yield from self._checked(Unit(*span, WORD if at else unit.strength))
                return
        yield unit


def word_spans(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """[start, end) in spans of at most `size` characters, cut between words where there are any, never inside a grapheme cluster."""
    at = start
    while at < end:
        stop = _word_cut(text, at, end, size)
        bare = text[at:stop]
        first = at + len(bare) - len(bare.lstrip())
        last = at + len(bare.rstrip())
        if first < last:
            yield first, last
        at = stop


def _word_cut(text: str, at: int, end: int, size: int) -> int:
    """Where the span from `at` ends: behind a space, else before a code or Latin word, else between two clusters."""
    stop = at + size
    if stop >= end:
        return end
    space = max(text.rfind(mark, at + size // 4, stop + 1) for mark in (" ", "\n", "\t", "\u3000"))
    if space >= at and not joined(text, space + 1):
        return space + 1
    back = stop
    while back > at + size // 2 and _in_word(text[back]) and _in_word(text[back - 1]):
        back -= 1
    return cluster_edge(text, back if back > at + size // 2 else stop, at, end)


def _in_word(char: str) -> bool:
    return (char.isascii() and char.isalnum()) or char in "-_./@"


def joined(text: str, at: int) -> bool:
    """Whether the characters before and at `at` are one to a reader: marks, joiners, selectors, flags, jamo, halves of a pair."""
    char, before = text[at : at + 1], text[at - 1 : at]
    if not char or not before or (char < "\u0300" and before < "\u0300"):
        return char == "\n" and before == "\r"
    if before == "\u200d" or char in "\u200c\u200d\uff9e\uff9f" or unicodedata.category(char) in ("Mn", "Me", "Mc"):
        return not before.isspace()
    if "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f" or "\u1160" <= char <= "\u11ff":
        return True
    if "\U0001f1e6" <= char <= "\U0001f1ff":
        flags = at
        while flags > 0 and at - flags < _LONGEST_CLUSTER and "\U0001f1e6" <= text[flags - 1] <= "\U0001f1ff":
            flags -= 1
        return (at - flags) % 2 == 1
    return "\udc00" <= char <= "\udfff" and "\ud800" <= before <= "\udbff"


def cluster_edge(text: str, at: int, start: int, end: int) -> int:
    """The last place up to `at`, after `start`, that is inside no cluster; the first one behind when there is none.

    A cluster of more than `_LONGEST_CLUSTER` characters is no writing any more and is cut.
    """
    back = at
    while back > start and at - back < _LONGEST_CLUSTER and joined(text, back):
        back -= 1
    if back > start and not joined(text, back):
        return back
    ahead = at
    while ahead < end and ahead - at < _LONGEST_CLUSTER and joined(text, ahead):
        ahead += 1
    return ahead


def overlap_start(text: str, floor: int, at: int, units: list[Unit], upto: int) -> int:
    """Where the repeated tail before `at` begins, not before `floor`: at a sentence, else a clause or word, else a character.

    `units[:upto]` end before `at`.
    """
    best = at
    index = upto - 1
    while index >= 0 and units[index].start >= floor:
        if units[index].strength >= WRAPPED:
            best = units[index].start
        index -= 1
    if best < at:
        return best
    if index < 0 or units[index].kind != "text":
        return units[index + 1].start if index + 1 < upto else at
    for pattern in (_CLAUSE, _CLAUSE_OR_SPACE):
        match = pattern.search(text, max(floor - 1, 0), at)
        if match and floor <= match.end() < at:
            return match.end()
    return cluster_edge(text, floor, units[index].start, at)
