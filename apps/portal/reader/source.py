"""A parsed text cut into parts that fit a page, so that a book of thousands of pages opens at the passage and nowhere else."""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from apps.ingestion.selectors import read_parsed
from apps.knowledge.models import Document

PART_CHARS = 8_000
KEPT = 6  # parsed texts a process keeps at hand
KEPT_CHARS = 4_000_000

Row = tuple[int, int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Piece:
    """[start, end) of one block, or of some rows or lines of it; `rows` are the table rows inside."""

    kind: str
    start: int
    end: int
    position: dict[str, Any]
    level: int = 0
    header_end: int = 0  # where the rows of a table begin; 0 for everything else
    block_start: int = 0
    rows: tuple[Row, ...] = ()
    first_line: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes pieces belong to one page, slide, sheet or part of the original."""
        return tuple(self.position.get(name) for name in ("page", "slide", "sheet", "part"))


@dataclass(slots=True)
class Part:
    """Consecutive pieces shown at once. `number` counts from 1."""

    number: int
    pieces: list[Piece] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.pieces[0].start

    @property
    def end(self) -> int:
        return self.pieces[-1].end


@dataclass(slots=True)
class Source:
    """A document's parsed text, its parts, and what stands where."""

    text: str
    pieces: list[Piece]
    parts: list[Part]
    parser: str = ""

    def part_at(self, offset: int) -> Part:
        """The part that holds this character, or the nearest before it."""
        starts = [part.start for part in self.parts]
        return self.parts[max(0, bisect_right(starts, offset) - 1)]

    def boxes(self, start: int, end: int) -> list[dict[str, float]]:
        """The rectangles of [start, end) on the pages, as components/pdf_viewer.html takes them (fractions of the page)."""
        found: list[dict[str, float]] = []
        for piece in self.pieces[self._first(start) :]:
            if piece.start >= end:
                break
            rows = [row[2] for row in piece.rows if row[0] < end and row[1] > start and row[2].get("bbox")]
            if rows and start < piece.header_end and piece.start == piece.block_start:
                rows = [piece.position]  # its column names as well: the whole of what stands here
            for position in rows or ([piece.position] if piece.end > start else []):
                box, page = position.get("bbox"), position.get("page", piece.position.get("page"))
                if box and page:
                    found.append({"page": page, "x": box[0], "y": box[1], "w": box[2] - box[0], "h": box[3] - box[1]})
        return found

    def offset_on_page(self, page: int, x: float, y: float) -> int | None:
        """The first character of the block at a point of a page; of the nearest block when the point lies between blocks."""
        best: tuple[float, int] | None = None
        for piece in self.pieces:
            box = piece.position.get("bbox")
            if piece.position.get("page") != page:
                continue
            distance = 1.0 if not box else max(box[1] - y, y - box[3], 0.0) + max(box[0] - x, x - box[2], 0.0)
            if best is None or distance < best[0]:
                best = (distance, piece.start)
        return best[1] if best else None

    def _first(self, offset: int) -> int:
        return max(0, bisect_right([piece.start for piece in self.pieces], offset) - 1)


_kept: OrderedDict[str, Source] = OrderedDict()
_lock = threading.Lock()


def source_of(document: Document) -> Source | None:
    """What the reader shows of a document, None when nothing of it was read. Every parse has a storage key of its own, so what is kept
    never goes stale."""
    key = document.parsed_path
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    parsed = read_parsed(document)
    if parsed is None or not parsed["text"]:
        return None
    source = make_source(parsed)
    if len(source.text) <= KEPT_CHARS:
        with _lock:
            _kept[key] = source
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
    return source


def make_source(parsed: dict[str, Any]) -> Source:
    text: str = parsed["text"]
    blocks = parsed.get("blocks") or [{"kind": "paragraph", "start": 0, "end": len(text), "position": {}}]
    pieces = [piece for block in blocks for piece in _pieces(text, block)]
    return Source(text, pieces, _parts(pieces), parsed.get("parser") or "")


def _pieces(text: str, block: dict[str, Any]) -> list[Piece]:
    """A block as it is, or cut at rows or lines when it is too long for one page."""
    start, end, kind, position = block["start"], block["end"], block["kind"], dict(block.get("position") or {})
    line = position.get("line")
    lines = text.count("\n", start, end)
    exact = line is not None and position.get("line_end") == line + lines
    if kind == "table":
        return _table(text, block, position)
    if end - start <= 2 * PART_CHARS:
        return [Piece(kind, start, end, position, block.get("level", 0), block_start=start, first_line=line if exact else None)]
    found, at = [], start
    while at < end:
        stop = end if end - at <= PART_CHARS else (text.rfind("\n", at + 1, at + PART_CHARS) + 1 or at + PART_CHARS)
        first = line + text.count("\n", start, at) if exact and line is not None else None
        found.append(Piece(kind, at, stop, position, block.get("level", 0), block_start=start, first_line=first))
        at = stop
    return found


def _table(text: str, block: dict[str, Any], position: dict[str, Any]) -> list[Piece]:
    start, end = block["start"], block["end"]
    ruler = text.find("\n", start, end)
    header_end = text.find("\n", ruler + 1, end) + 1 if ruler >= 0 else 0
    header_end = header_end or end
    rows: list[Row] = [(row[0], row[1], dict(row[2])) for row in block.get("rows") or []]
    if not rows:
        rows = [(match.start(), match.end(), {}) for match in re.compile(r"[^\n]+").finditer(text, header_end, end)]
    found: list[Piece] = []
    at, first = start, 0
    for index, row in enumerate(rows):
        if row[1] - at > PART_CHARS and index > first:
            found.append(Piece("table", at, row[0], position, header_end=header_end, block_start=start, rows=tuple(rows[first:index])))
            at, first = row[0], index
    return [*found, Piece("table", at, end, position, header_end=header_end, block_start=start, rows=tuple(rows[first:]))]


def _parts(pieces: list[Piece]) -> list[Part]:
    """Pieces by the page: a sheet, and a chapter of a book, begins a part of its own; a heading does when the part is half full."""
    parts: list[Part] = []
    size = 0
    for piece in pieces:
        last = parts[-1].pieces[-1] if parts else None
        length = piece.end - piece.start
        opens = (
            last is None
            or piece.position.get("sheet") != last.position.get("sheet")
            or piece.position.get("part") != last.position.get("part")
            or size + length > PART_CHARS
            or (piece.kind == "heading" and size > PART_CHARS // 2 and piece.key == last.key)
        )
        if opens:
            parts.append(Part(len(parts) + 1))
            size = 0
        parts[-1].pieces.append(piece)
        size += length
    return parts


def part_label(part: Part, total: int) -> str:
    """What a part is called in the list of parts."""
    first, last = part.pieces[0], part.pieces[-1]
    for name, one, many in (
        ("page", _("Page %(from)s"), _("Pages %(from)s–%(to)s")),
        ("slide", _("Slide %(from)s"), _("Slides %(from)s–%(to)s")),
    ):
        if name in first.position:
            start, end = first.position[name], last.position.get(name, first.position[name])
            return one % {"from": start} if start == end else many % {"from": start, "to": end}
    if "sheet" in first.position:
        rows = [row[2].get("cells") for piece in part.pieces for row in piece.rows if row[2].get("cells")]
        name = str(first.position["sheet"])
        if rows and (first.kind == "table" and first.start != first.block_start):
            return f"{name} {str(rows[0]).split(':')[0]}–{str(rows[-1]).split(':')[-1]}"
        return name
    if first.position.get("part"):
        return str(first.position["part"])
    lines = [piece.position["line"] for piece in part.pieces if "line" in piece.position]
    if lines and first.first_line:
        return _("From line %(from)s") % {"from": first.first_line}
    return _("Part %(number)s of %(total)s") % {"number": part.number, "total": total}
