"""Ruled tables of a PDF page through pdfplumber: cell-exact, but slow, so only where lines are drawn and within a budget."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.ingestion.plugins.builder import one_line
from apps.ingestion.plugins.parsers.pdf_lines import Box

MIN_DRAWN_PATHS = 8
MAX_PAGES = 80
MAX_SECONDS = 60.0
MAX_OBJECTS = 30_000


@dataclass(slots=True)
class PageTable:
    """A table's cells (merged ones filled), its box, and the box of each row."""

    cells: list[list[str]]
    box: Box
    row_boxes: list[Box]


class TableFinder:
    """Opens the file once and gives the tables of single pages until its budget of pages and CPU seconds is spent."""

    def __init__(self, path: Path, password: str) -> None:
        self.path, self.password = path, password
        self.pages = 0
        self.seconds = 0.0
        self.spent = False
        self._pdf: Any = None

    def find(self, number: int) -> list[PageTable]:
        """Tables of page `number` (1-based); [] when there are none or the budget is spent."""
        if self.pages >= MAX_PAGES or self.seconds >= MAX_SECONDS:
            self.spent = True
            return []
        started = time.process_time()
        self.pages += 1
        try:
            return self._find(number)
        finally:
            self.seconds += time.process_time() - started

    def _find(self, number: int) -> list[PageTable]:
        import pdfplumber
        from pdfminer.pdfparser import PDFSyntaxError
        from pdfminer.psexceptions import PSException
        from pdfplumber.utils.exceptions import PdfminerException

        broken = (
            PdfminerException,
            PDFSyntaxError,
            PSException,
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            AttributeError,
            AssertionError,
        )
        try:
            if self._pdf is None:
                self._pdf = pdfplumber.open(self.path, password=self.password)
            page = self._pdf.pages[number - 1]
            if len(page.lines) + len(page.rects) + len(page.curves) > MAX_OBJECTS or len(page.chars) > MAX_OBJECTS:
                return []
            return [t for found in page.find_tables() if (t := _table(found, page))]
        except broken:
            return []  # pdfminer gives up on files that PDFium reads; the page's lines are still there
        finally:
            if self._pdf is not None and number <= len(self._pdf.pages):
                self._pdf.pages[number - 1].close()

    def close(self) -> None:
        if self._pdf is not None:
            self._pdf.close()
            self._pdf = None


def _table(found: Any, page: Any) -> PageTable | None:
    texts = found.extract()
    rows = found.rows
    if len(texts) < 2 or max(len(r) for r in texts) < 2:
        return None
    left, top = page.bbox[0], page.bbox[1]
    width, height = float(page.width), float(page.height)

    def fraction(box: Any) -> Box:
        return ((box[0] - left) / width, (box[1] - top) / height, (box[2] - left) / width, (box[3] - top) / height)

    text_of = {}
    for row, values in zip(rows, texts, strict=True):
        for cell, value in zip(row.cells, values, strict=True):
            if cell is not None:
                text_of[cell] = (value or "").strip()
    columns = _columns(rows)
    cells: list[list[str]] = []
    for row, values in zip(rows, texts, strict=True):
        middle = (row.bbox[1] + row.bbox[3]) / 2
        line = []
        for index, value in enumerate(values):
            if row.cells[index] is not None:
                line.append((value or "").strip())
            else:
                line.append(_covering(text_of, columns[index] if index < len(columns) else None, middle))
        cells.append(line)
    if sum(1 for line in cells for cell in line if cell) < 0.3 * sum(map(len, cells)):
        return None
    table = PageTable([], fraction(found.bbox), [])
    for line, row in zip(cells, rows, strict=True):
        for piece in _unstack(line):
            table.cells.append([one_line(cell) for cell in piece])
            table.row_boxes.append(fraction(row.bbox))
    return table


def _unstack(row: list[str]) -> list[list[str]]:
    """A ruled row that holds several lines in (nearly) every cell is as many rows: only each fifth line may be ruled."""
    stacks = [cell.split("\n") for cell in row]
    heights = [len(stack) for stack in stacks if stack != [""]]
    if len(heights) < 3:
        return [row]
    height = max(set(heights), key=heights.count)
    if height < 2 or any(h != height for h in heights) or len(set(row)) < 3:
        return [row]
    words = sum(len(cell) for cell in row) / sum(heights)
    if words > 24:  # running text that happens to break alike
        return [row]
    return [[stack[i] if len(stack) == height else "" for stack in stacks] for i in range(height)]


def _columns(rows: Any) -> list[float | None]:
    """The middle of each column, from the narrowest cell that stands in it."""
    best: dict[int, tuple[float, float]] = {}
    for row in rows:
        for index, cell in enumerate(row.cells):
            if cell is not None:
                width = cell[2] - cell[0]
                if index not in best or width < best[index][0]:
                    best[index] = (width, (cell[0] + cell[2]) / 2)
    return [best[i][1] if i in best else None for i in range(max(best, default=-1) + 1)]


def _covering(text_of: dict[Any, str], x: float | None, y: float) -> str:
    if x is None:
        return ""
    return next((text for cell, text in text_of.items() if cell[0] <= x <= cell[2] and cell[1] <= y <= cell[3]), "")
