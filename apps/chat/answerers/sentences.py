"""A text as sentences with their places; rows of tables and items of lists count as sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_END = re.compile(r"[。！？!?…]+[”’」』）)\"'\]]*|[；;](?=\s|[^\x00-\x7f])|\.+[\"')\]]*(?=\s+[A-Z0-9\"'(\[\u2e80-\U0003ffff]|\s*\Z)|\n+")
_ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|No|Fig|approx|U\.S|Inc|Ltd|Co))\.$")
_RULE = re.compile(r"[\s|:=*_+-]*\Z")


@dataclass(frozen=True, slots=True)
class Sentence:
    """[`start`, `end`) in the text it stands in."""

    text: str
    start: int
    end: int


def sentences(text: str) -> list[Sentence]:
    """The sentences of a passage in order; headings, rules and empty lines are none."""
    return [found for found in _cut(text) if not found.text.startswith(("#", "```", "![")) and not _RULE.match(found.text)]


def _cut(text: str) -> Iterator[Sentence]:
    start = 0
    for match in _END.finditer(text):
        if match.group().startswith(".") and _ABBREVIATION.search(text[max(0, match.end() - 8) : match.start() + 1]):
            continue
        yield from _trimmed(text, start, match.end())
        start = match.end()
    yield from _trimmed(text, start, len(text))


def _trimmed(text: str, start: int, end: int) -> Iterator[Sentence]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start:
        yield Sentence(text[start:end], start, end)


_BULLET = re.compile(r"\A(?:[-*+•·]|\d{1,3}[.)、])\s+|\A>\s*")


def plain(sentence: str) -> str:
    """A sentence as it may stand in a paragraph: without the marks of a list or a quotation; the cells of a row side by side."""
    line = _BULLET.sub("", sentence)
    if line.startswith("|") or line.count("|") >= 2:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        line = " · ".join(cell for cell in cells if cell)
    return " ".join(line.split())
