"""Where a passage stands in the original, from the places of the blocks and rows it covers."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from apps.ingestion.plugins.protocol import Block, Position

FINE = 8  # places with boxes of their own; beyond them those of a page become one
MOST = 64  # places of one passage; one of very short pages spans dozens, and each must be citable
_CELLS = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d+)(?::\$?([A-Za-z]{1,3})\$?(\d+))?$")


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def _column_letters(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def merge_cells(ranges: Iterable[str | None]) -> str | None:
    """The smallest A1 range that holds all: A3:D3 and A9:D9 give A3:D9. Ranges that are not A1 are left out."""
    left = top = right = bottom = 0
    for item in ranges:
        match = _CELLS.match(item) if item else None
        if match is None:
            continue
        first, last = _column_number(match[1]), _column_number(match[3] or match[1])
        low, high = int(match[2]), int(match[4] or match[2])
        left, top = (min(left, first), min(top, low)) if right else (first, low)
        right, bottom = max(right, last), max(bottom, high)
    if not right:
        return None
    start, end = f"{_column_letters(left)}{top}", f"{_column_letters(right)}{bottom}"
    return start if start == end else f"{start}:{end}"


def _place(position: Position) -> tuple[object, ...]:
    return (position.page, position.slide, position.sheet, position.part)


def _union(group: Sequence[Position]) -> Position:
    boxes = [item.bbox for item in group if item.bbox]
    lines = [item.line for item in group if item.line is not None]
    ends = [item.line_end if item.line_end is not None else item.line for item in group if item.line is not None]
    return replace(
        group[0],
        cells=merge_cells(item.cells for item in group),
        line=min(lines) if lines else None,
        line_end=max(end for end in ends if end is not None) if lines else None,
        bbox=(min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes)) if boxes else None,
    )


def _grouped(positions: Iterable[Position], *, boxes: bool) -> list[Position]:
    """Neighbours on the same page, slide, sheet and part as one; places with their own box stay apart unless `boxes`."""
    groups: list[list[Position]] = []
    for position in positions:
        last = groups[-1][-1] if groups else None
        together = last and _place(last) == _place(position) and (boxes or not (last.bbox or position.bbox) or last == position)
        if together:
            groups[-1].append(position)
        else:
            groups.append([position])
    return [_union(group) if len(group) > 1 else group[0] for group in groups]


class Locator:
    """Answers for spans of one document; made once, asked per passage."""

    def __init__(self, text: str, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.starts = [block.start for block in blocks]
        self.breaks = [match.start() for match in re.finditer("\n", text)]
        self.row_starts = [[row[0] for row in block.rows] for block in blocks]

    def _rows(self, at: int, start: int, end: int) -> list[Position]:
        rows, starts = self.blocks[at].rows, self.row_starts[at]
        first = bisect_right(starts, start) - 1
        first = first if first >= 0 and rows[first][1] > start else first + 1
        return [row[2] for row in rows[first : bisect_left(starts, end)] if row[2] != Position()]

    def _breaks(self, start: int, end: int) -> int:
        return bisect_left(self.breaks, end) - bisect_left(self.breaks, start)

    def _lines(self, block: Block, start: int, end: int) -> Position:
        """The lines of the covered part, where the block's text has one line for each line of the original."""
        position = block.position
        if position.line is None or position.line_end is None or (start <= block.start and end >= block.end):
            return position
        if position.line_end - position.line != self._breaks(block.start, block.end):
            return position
        low, high = max(start, block.start), min(end, block.end)
        first = position.line + self._breaks(block.start, low)
        return replace(position, line=first, line_end=first + self._breaks(low, high))

    def positions(self, start: int, end: int) -> tuple[Position, ...]:
        """Places of [start, end) in reading order, at most `MOST`; table rows as one range of cells."""
        found: list[Position] = []
        at = max(0, bisect_right(self.starts, start) - 1)
        while at < len(self.blocks) and self.starts[at] < end:
            block = self.blocks[at]
            if block.end > start:
                rows = _grouped(self._rows(at, start, end), boxes=True) if block.rows else []
                found.extend(rows or [self._lines(block, start, end)])
            at += 1
        found = [position for position in found if position != Position()]
        grouped = _grouped(found, boxes=False)
        if len(grouped) > FINE:
            grouped = _grouped(grouped, boxes=True)
        return tuple(grouped[:MOST])
