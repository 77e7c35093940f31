"""Lines of pages into blocks: paragraphs, headings by font size, lists, tables at their place, page furniture once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from apps.ingestion.plugins.builder import DocumentBuilder
from apps.ingestion.plugins.parsers.pdf_lines import Box, Line, join_lines
from apps.ingestion.plugins.parsers.pdf_tables import PageTable
from apps.ingestion.plugins.parsers.table_shape import is_second_header, join_headers
from apps.ingestion.plugins.protocol import BlockKind, Position

_NUMBER = re.compile(r"^[\-–—·\s]*(?:第\s*)?(?:\d{1,4}|[ivxlc]{1,6})(?:\s*页)?(?:\s*[/／]\s*(?:共\s*)?\d{1,4}(?:\s*页)?)?[\-–—·\s]*$", re.I)
_ITEM = re.compile(
    r"^(?:[•●○■□▪◆◇➢✓·*–]\s?|\d{1,3}[.)、]\s?|[(（]\d{1,3}[)）]|[(（][一二三四五六七八九十]{1,3}[)）]|[a-zA-Z][.)]\s|第[一二三四五六七八九十百零\d]{1,5}[条章节款])"
)
_SENTENCE_END = re.compile(r"[。！？；：.!?;:”\"）)]$")
_EDGE = 0.09


@dataclass(slots=True)
class HeadingSizes:
    """Font sizes above the body's, largest first: their rank is the heading level."""

    body: float
    larger: list[float]

    def level(self, size: float) -> int:
        for rank, known in enumerate(self.larger, 1):
            if size >= known - 0.3:
                return min(rank, 4)
        return 0


def heading_sizes(pages: Iterable[list[Line]]) -> HeadingSizes:
    """Body size is the one most characters have; sizes clearly above it that little text has are headings."""
    weight: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            weight[round(line.size)] += len(line.text)
    if not weight:
        return HeadingSizes(0.0, [])
    body = weight.most_common(1)[0][0]
    total = weight.total()
    larger = sorted((s for s, n in weight.items() if s >= body * 1.15 + 0.5 and n < 0.3 * total), reverse=True)
    return HeadingSizes(body, larger[:8])


def find_furniture(pages: list[tuple[int, list[Line]]]) -> set[tuple[int, int]]:
    """(page, line index) of repeated running heads and bare page numbers, except the first of each head.

    Only exactly equal lines count, so that a page whose one line differs by a number is never taken for furniture.
    """
    seen: dict[str, list[tuple[int, int]]] = {}
    numbers: list[tuple[int, int]] = []
    full = 0
    for page, lines in pages:
        if len(lines) < 2:
            continue
        full += 1
        for index, line in enumerate(lines):
            outside = line.box[3] < _EDGE or line.box[1] > 1 - _EDGE
            outermost = index in (0, len(lines) - 1) and (line.box[3] < 0.15 or line.box[1] > 0.85)
            if (outside or outermost) and _NUMBER.match(line.text):
                numbers.append((page, index))
            elif outside:
                seen.setdefault(line.text, []).append((page, index))
    dropped: set[tuple[int, int]] = set()
    if len(numbers) >= 2:
        dropped.update(numbers)
    for places in seen.values():
        if len({page for page, _ in places}) >= max(3, 0.3 * full):
            dropped.update(places[1:])
    return dropped


def add_page(
    builder: DocumentBuilder, number: int, lines: list[Line], tables: list[PageTable], sizes: HeadingSizes, furniture: set[tuple[int, int]]
) -> None:
    """Append one page's blocks."""
    waiting = list(tables)
    group: list[Line] = []
    inside: PageTable | None = None
    for index, line in enumerate(lines):
        if (number, index) in furniture:
            continue
        table = next((t for t in tables if _holds(t.box, line.box)), None)
        if table is not None:
            if table in waiting:
                _flush(builder, number, group, sizes)
                _add_table(builder, number, table)
                waiting.remove(table)
            inside = table
            continue
        if group and (inside is not None or not _continues(group, line, sizes, _edge(lines[max(0, index - 25) : index + 25], group[-1]))):
            _flush(builder, number, group, sizes)
        inside = None
        group.append(line)
    _flush(builder, number, group, sizes)
    for table in waiting:
        _add_table(builder, number, table)


def _holds(table: Box, line: Box) -> bool:
    x, y = (line[0] + line[2]) / 2, (line[1] + line[3]) / 2
    return table[0] - 0.01 <= x <= table[2] + 0.01 and table[1] - 0.002 <= y <= table[3] + 0.002


def _continues(group: list[Line], line: Line, sizes: HeadingSizes, edge: float) -> bool:
    """Whether `line` goes on with the paragraph that `group` began; `edge` is where full lines of its column end."""
    last = group[-1]
    if _ITEM.match(line.text) or abs(line.size - last.size) > 0.15 * max(last.size, 1):
        return False
    height = max(last.em, line.em)
    step = line.base - last.base
    if step < -1.5 * height:  # going up means the next column: a sentence may run on into it
        return line.box[0] > last.box[0] and not _SENTENCE_END.search(last.text) and not sizes.level(line.size)
    if abs(step) < 0.5 * height:
        return True  # the same visual line, split by a wide blank
    if line.tabular and last.tabular:
        return step < 3 * height
    character = (last.box[2] - last.box[0]) / max(len(last.text), 1)
    full = last.box[2] >= edge - 2.5 * character
    if step > (3.0 if full and not _SENTENCE_END.search(last.text) else 1.8) * height:
        return False
    if len(group) >= 2 and step > 1.35 * (last.base - group[-2].base) > 0:
        return False
    left = min(item.box[0] for item in group[1:] or group)
    indented = line.box[0] > left + 1.2 * height
    return full or not (indented or _SENTENCE_END.search(last.text) or (last.box[2] < edge - 0.35 * (edge - left) and len(group) == 1))


def _edge(lines: list[Line], line: Line) -> float:
    """Where lines of the same size that begin about where this one does end; `lines` are its neighbours."""
    alike = (o.box[2] for o in lines if abs(o.box[0] - line.box[0]) < 0.06 and abs(o.size - line.size) <= 0.1 * line.size)
    return max(alike, default=line.box[2])


def _flush(builder: DocumentBuilder, number: int, group: list[Line], sizes: HeadingSizes) -> None:
    if not group:
        return
    text = join_lines(group)
    level = sizes.level(group[0].size)
    kind: BlockKind = "paragraph"
    if level and len(group) <= 3 and len(text) <= 120 and any(c.isalpha() for c in text) and not _is_sentence(text):
        kind = "heading"
    elif re.match(r"^[•●○▪◆◇➢·]", text):
        kind, text = "list", "- " + text[1:].strip()
    elif _ITEM.match(text) and len(text) < 400 and not text.startswith("第"):
        kind = "list"
    builder.add(kind, text, Position(page=number, bbox=_around(group)), level=level)
    group.clear()


def _is_sentence(text: str) -> bool:
    return bool(re.search(r"[。！？；，,;]$", text)) or (text.endswith(".") and len(text.split()) > 10)


def _around(lines: list[Line]) -> Box:
    boxes = [line.box for line in lines]
    return _rounded((min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes)))


def _rounded(box: Box) -> Box:
    left, top, right, bottom = (round(min(max(v, 0.0), 1.0), 4) for v in box)
    return (left, top, right, bottom)


def _add_table(builder: DocumentBuilder, number: int, table: PageTable) -> None:
    rows = [(cells, Position(page=number, bbox=_rounded(box))) for cells, box in zip(table.cells, table.row_boxes, strict=True)]
    while len(rows) > 1 and len({c for c in rows[0][0] if c}) <= 1 and len(rows[0][0]) > 1:
        cells, place = rows.pop(0)
        builder.add("caption", next((c for c in cells if c), ""), place)
    header = rows.pop(0)[0]
    while len(rows) > 1 and is_second_header(header, rows[0][0]):
        header = join_headers(header, rows.pop(0)[0])
    builder.table(header, [row for row in rows if any(row[0])], Position(page=number, bbox=_rounded(table.box)))
