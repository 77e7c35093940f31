"""Units put together into passages of a wanted size; tables cut between rows with their header repeated.

Every step looks at a window of one passage only, so the work grows with the text and not with its square.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from apps.ingestion.chunking.headings import Mark, Outline
from apps.ingestion.chunking.markdown_blocks import is_table_ruler, line_spans
from apps.ingestion.chunking.positions import Locator
from apps.ingestion.chunking.units import CLAUSE, EDGE, HEADING, SENTENCE, Limits, Unit, UnitMaker, overlap_start
from apps.ingestion.plugins.protocol import Block, ChunkingConfig, ParsedDocument, Piece, Position, SplitTools

#: (strength at least, part of the room that must be filled before such a cut is taken)
_FILL = ((HEADING, 0.25), (EDGE, 0.3), (80, 0.4), (SENTENCE, 0.5), (CLAUSE, 0.7), (0, 0.85))
_LONGEST_LEAD = 300
#: Overlap is kept below this part of a passage, so that every passage brings something new.
MOST_OVERLAP = 0.75


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int
    core: int  # where what is not overlap begins
    kind: str = "text"
    prefix: str = ""


def usable_blocks(text: str, blocks: Sequence[Block]) -> list[Block]:
    """Blocks in order, inside the text, not overlapping; tables with rows (their lines when the parser named none)."""
    kept: list[Block] = []
    end = 0
    for block in sorted(blocks, key=lambda item: (item.start, item.end)):
        start, stop = max(block.start, end), min(block.end, len(text))
        if start >= stop or not text[start:stop].strip():
            continue
        if (start, stop) != (block.start, block.end):
            block = replace(block, start=start, end=stop)
        if block.kind == "table":
            block = _with_rows(text, block)
        kept.append(block)
        end = stop
    return kept


def _with_rows(text: str, block: Block) -> Block:
    rows = [
        row
        for row in sorted(block.rows, key=lambda row: row[0])
        if block.start <= row[0] < row[1] <= block.end and text[row[0] : row[1]].strip()
    ]
    header = block.header
    if not block.rows:
        lines = [
            (block.start + a, block.start + b)
            for a, b in line_spans(text[block.start : block.end])
            if text[block.start + a : block.start + b].strip()
        ]
        if not header and len(lines) > 1 and is_table_ruler(text[slice(*lines[1])]):
            header = text[lines[0][0] : lines[1][1]]
            lines = lines[2:]
        elif header:
            skip = len(header.strip().split("\n"))
            lines = lines[skip:] if header.strip() in text[block.start : block.end] else lines
        rows = [(a, b, Position()) for a, b in lines]
    return replace(block, rows=tuple(rows), header=header)


def header_prefix(block: Block) -> str:
    """What is put before later rows: the header lines, closed by one newline."""
    return block.header.strip("\n") + "\n" if block.header.strip() else ""


class Packer:
    """Splits ranges of one document into passages."""

    def __init__(
        self, document: ParsedDocument, blocks: Sequence[Block], config: ChunkingConfig, tools: SplitTools, marks: Sequence[Mark]
    ) -> None:
        self.text = document.text
        self.blocks = blocks
        self.block_starts = [block.start for block in blocks]
        overlap = min(config.chunk_overlap, int(config.chunk_size * MOST_OVERLAP))
        self.limits = Limits(config.chunk_size, overlap, config.token_limit, tools.token_count, tools.check)
        self.maker = UnitMaker(self.text, config, self.limits)
        self.outline = Outline.build(self.text, marks)
        self.marks = {mark.start: mark for mark in marks if mark.title}
        self.locator = Locator(self.text, document.blocks and blocks)

    # ranges -> spans

    def pieces(self, start: int, end: int) -> list[Piece]:
        """Passages of [start, end), in order, together covering every non-blank character of it."""
        return [self.piece(span) for span in self.spans(start, end)]

    def piece(self, span: Span) -> Piece:
        return Piece(
            content=span.prefix + self.text[span.start : span.end],
            start=span.start,
            end=span.end,
            heading_path=self.outline.path(span.core, span.end),
            positions=self.locator.positions(span.start, span.end),
            kind=span.kind,
            prefix=span.prefix,
        )

    def spans(self, start: int, end: int) -> Iterator[Span]:
        waiting: list[Unit] = []
        parts: list[tuple[str, int]] = []  # (block kind, index of its first unit in `waiting`)
        at = start
        for index in range(max(0, bisect_right(self.block_starts, start) - 1), len(self.blocks)):
            block = self.blocks[index]
            if block.start >= end:
                break
            if block.end <= start:
                continue
            low, high = max(block.start, start), min(block.end, end)
            if not self.text[low:high].strip():
                continue
            self._add(waiting, parts, "paragraph", self.maker.units(at, low, self.maker.strengths.get("\n\n", EDGE)))
            at = high
            if block.kind == "table" and block.rows:
                lead = self._lead(waiting, parts)
                if self._splits(block, low, high, lead):
                    lead = self._fitting_lead(block, lead)
                    yield from self.pack(waiting[: len(waiting) - len(lead)])
                    yield from self.rows(block, low, high, lead[0].start if lead else low)
                    waiting, parts = [], []
                    continue
            self._add(waiting, parts, block.kind, self.maker.block_units(block, low, high))
        self._add(waiting, parts, "paragraph", self.maker.units(at, end, self.maker.strengths.get("\n\n", EDGE)))
        yield from self.pack(waiting)

    def _add(self, waiting: list[Unit], parts: list[tuple[str, int]], kind: str, units: list[Unit]) -> None:
        if not units:
            return
        for unit in units:
            mark = self.marks.get(unit.start)
            if mark and unit.kind == "text":
                unit.strength = HEADING
                unit.glue = unit.glue or unit.stop <= mark.end
        parts.append((kind, len(waiting)))
        waiting.extend(units)

    # tables

    def _lead(self, waiting: list[Unit], parts: list[tuple[str, int]]) -> list[Unit]:
        """The caption or short paragraph just above a table, with the headings just above that."""
        first, at = len(waiting), len(parts) - 1
        if (
            at >= 0
            and parts[at][0] in ("caption", "paragraph")
            and waiting[-1].stop - waiting[parts[at][1]].start <= min(_LONGEST_LEAD, self.limits.size // 2)
        ):
            first = parts[at][1]
            at -= 1
        while at >= 0 and parts[at][0] == "heading":
            first = parts[at][1]
            at -= 1
        return waiting[first:]

    def _splits(self, block: Block, low: int, high: int, lead: list[Unit]) -> bool:
        if low > block.start and low >= block.rows[0][0]:
            return True  # a part whose header stands elsewhere: rows() repeats it
        headings = bool(lead) and all(unit.glue for unit in lead)
        return not self.limits.fits(self.text[lead[0].start if headings else low : high].rstrip())

    def _fitting_lead(self, block: Block, lead: list[Unit]) -> list[Unit]:
        """The lead goes with the table unless it leaves no room for the header and a row; headings always go."""
        if not lead or all(unit.glue for unit in lead) or self.limits.fits(self.text[lead[0].start : block.rows[0][1]]):
            return lead
        return []

    def rows(self, block: Block, low: int, high: int, start: int) -> Iterator[Span]:
        """The rows of a table in [low, high) as passages; `start` is where its lead begins. No row is cut, however long."""
        rows = [row for row in block.rows if low <= row[0] and row[1] <= high]
        if not rows:
            yield from self.pack(self.maker.units(start, high, EDGE))
            return
        header = header_prefix(block)
        seen = header.strip() in self.text[start : rows[0][0]] if header else True
        prefix = "" if seen else header
        at = 0
        while at < len(rows):
            self.limits.check()
            stop = self._last_row(rows, at, start, prefix)
            end = high if stop == len(rows) else rows[stop][0]
            yield Span(start, start + len(self.text[start:end].rstrip()), start, "table", prefix)
            if stop < len(rows):
                start = rows[stop][0]
            at, prefix = stop, header

    def _last_row(self, rows: Sequence[tuple[int, int, Position]], at: int, start: int, prefix: str) -> int:
        """Index behind the last row that still fits into a passage from `start`; at least one row."""
        room = start + self.limits.size - len(prefix)
        stop = at + 1
        used = self.limits.count(prefix + self.text[start : rows[at][1]]) if self.limits.tokens else 0
        while stop < len(rows) and rows[stop][1] <= room:
            if self.limits.tokens:
                used += self.limits.count(self.text[rows[stop][0] : rows[stop][1]])
                if used > self.limits.tokens:
                    break
            stop += 1
        while (
            self.limits.tokens and stop > at + 1 and self.limits.count(prefix + self.text[start : rows[stop - 1][1]]) > self.limits.tokens
        ):
            stop -= 1
        return stop

    # text

    def pack(self, units: list[Unit]) -> Iterator[Span]:
        """Passages from units in order; each takes as much as fits and ends at the best cut in its last part."""
        at, start = 0, units[0].start if units else 0
        while at < len(units):
            self.limits.check()
            start, stop = self._window(units, at, start)
            if stop < len(units):
                stop = self._cut(units, at, stop)
                if all(unit.glue for unit in units[at:stop]):
                    stop = self._feed(units, at, stop, start)
            stop = self._within_tokens(units, at, stop, start)
            kinds = {unit.kind for unit in units[at:stop] if not unit.glue}
            yield Span(start, units[stop - 1].stop, units[at].start, kinds.pop() if len(kinds) == 1 else "text")
            if stop < len(units):
                start = self._next_start(units, at, stop)
            at = stop

    def _tokens(self, unit: Unit) -> int:
        if unit.tokens < 0:
            unit.tokens = self.limits.count(self.text[unit.start : unit.stop])
        return unit.tokens

    def _window(self, units: list[Unit], at: int, start: int) -> tuple[int, int]:
        """(start, index behind the last unit that fits); the overlap shrinks when the first new unit would not fit beside it."""
        limits = self.limits
        if start < units[at].start:
            floor = units[at].stop - limits.size
            if floor > start:
                start = overlap_start(self.text, floor, units[at - 1].stop, units, at)
                start = units[at].start if start >= units[at - 1].stop else start
            if limits.tokens and not limits.fits(self.text[start : units[at].stop]):
                start = units[at].start
        used = limits.count(self.text[start : units[at].start]) if limits.tokens and start < units[at].start else 0
        stop = at
        while stop < len(units) and units[stop].stop - start <= limits.size:
            if limits.tokens:
                used += self._tokens(units[stop])
                if used > limits.tokens:
                    break
            stop += 1
        return start, max(stop, at + 1)

    def _cut(self, units: list[Unit], at: int, stop: int) -> int:
        """The best place to end a passage of units[at:stop]: the strongest cut that fills it well enough, the last of equals."""
        room = max(1, units[stop - 1].stop - units[at].start)
        best, found = -1, stop
        for index in range(stop, at, -1):
            fill = (units[index - 1].stop - units[at].start) / room
            if fill < _FILL[0][1]:
                break
            strength = units[index].strength
            if strength > best and not units[index - 1].glue and fill >= next(part for least, part in _FILL if strength >= least):
                best, found = strength, index
        found = self._whole_item(units, at, found)
        while found > at + 1 and units[found - 1].glue:
            found -= 1
        return stop if found == at + 1 and units[at].glue else found

    def _whole_item(self, units: list[Unit], at: int, stop: int) -> int:
        """Moves a cut out of a list item that would fit whole into the next passage."""
        item = units[stop].item
        if item < 0:
            return stop
        first = stop
        while first > at and units[first].item == item:
            first -= 1
        if first <= at or units[first].start != item:
            return stop
        last = stop
        while last + 1 < len(units) and units[last + 1].item == item and units[last].stop - item <= self.limits.size:
            last += 1
        return first if self.limits.fits(self.text[item : units[last].stop]) else stop

    def _feed(self, units: list[Unit], at: int, stop: int, start: int) -> int:
        """Gives headings that would stand alone the beginning of what follows; one that cannot be cut comes whole."""
        room = self.limits.size - (units[stop].start - start)
        following = units[stop]
        if following.glue or (room < 16 and following.kind == "text"):
            return stop
        if following.kind == "text":
            smaller = list(self.maker.pieces(following, room))
            if len(smaller) > 1:
                for unit in smaller:
                    unit.item = following.item if following.item >= 0 else following.start
                smaller[0].item = following.item
                units[stop : stop + 1] = smaller
                return max(self._window(units, at, start)[1], stop + 1)
        return stop + 1

    def _within_tokens(self, units: list[Unit], at: int, stop: int, start: int) -> int:
        """Joined text may count more tokens than its parts: drops units until the limit holds."""
        while self.limits.tokens and stop > at + 1 and self.limits.count(self.text[start : units[stop - 1].stop]) > self.limits.tokens:
            stop -= 1
        return stop

    def _next_start(self, units: list[Unit], at: int, stop: int) -> int:
        """Where the next passage begins: before units[stop] by the overlap, except at headings and around tables."""
        following = units[stop]
        if not self.limits.overlap or following.strength >= HEADING or following.kind == "table":
            return following.start
        end = units[stop - 1].stop
        floor = max(end - self.limits.overlap, units[at].start + 1)
        for unit in reversed(units[at:stop]):
            if unit.stop < floor:
                break
            if unit.glue or unit.kind == "table":
                floor = unit.stop + 1
                break
        if floor >= end:
            return following.start
        start = overlap_start(self.text, floor, end, units, stop)
        return following.start if start >= end else start
