"""What calamine does not tell about an ODS: the text each cell shows. The file holds it beside the value, so nothing is formatted here."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from apps.ingestion.plugins.archives import MAX_XML_PART, read_part
from apps.ingestion.plugins.builder import one_line
from apps.ingestion.plugins.parsers.xlsx_cells import MAX_SHOWN, SheetCells

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
#: Text is taken from calamine as it is; these have a value that differs from what is shown.
_VALUES = ("float", "percentage", "currency", "date", "time")


def read_ods_cells(path: Path) -> dict[str, SheetCells]:
    """Sheet name -> its cells; {} for a file that is no ODS or cannot be looked into (the values are still read)."""
    from lxml import etree

    found: dict[str, SheetCells] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            data = read_part(archive, "content.xml", MAX_XML_PART)
        if not data:
            return {}
        cells, row = SheetCells(), 0
        tags = (f"{_TABLE}table", f"{_TABLE}table-row")
        for event, element in etree.iterparse(
            io.BytesIO(data), events=("start", "end"), tag=tags, resolve_entities=False, no_network=True, load_dtd=False
        ):
            if element.tag == tags[0]:
                if event == "start":
                    cells, row = found.setdefault(element.get(f"{_TABLE}name") or "", SheetCells()), 0
            elif event == "end":
                repeated = _repeated(element, "rows")
                _row(cells, element, row, repeated)
                row += repeated
                element.clear()
    except (etree.XMLSyntaxError, zipfile.BadZipFile, ValueError):
        return {}
    return found


def _repeated(element: Any, what: str) -> int:
    number = element.get(f"{_TABLE}number-{what}-repeated") or "1"
    return max(1, int(number)) if number.isdigit() else 1


def _row(cells: SheetCells, element: Any, row: int, repeated: int) -> None:
    column = 0
    for cell in element.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
        width = _repeated(cell, "columns")
        kind = cell.get(f"{_OFFICE}value-type")
        text = one_line("\n".join(_words(paragraph) for paragraph in cell.iterchildren(f"{_TEXT}p"))) if kind in _VALUES else ""
        never = kind is None and cell.get(f"{_TABLE}formula") is not None
        if (text or never) and width * repeated <= MAX_SHOWN - len(cells.shown) - len(cells.uncalculated):
            places = [(r, c) for r in range(row, row + repeated) for c in range(column, column + width)]
            if text:
                cells.shown.update(dict.fromkeys(places, text))
            else:
                cells.uncalculated.update(places)
        elif text or never:
            cells.complete = False
        column += width


def _words(paragraph: Any) -> str:
    """The text of a paragraph; `text:s` stands for spaces."""
    parts = [paragraph.text or ""]
    for child in paragraph.iterchildren():
        if child.tag in (f"{_TEXT}s", f"{_TEXT}tab"):
            parts.append(" ")
        elif isinstance(child.tag, str):
            parts.append(_words(child))
        parts.append(child.tail or "")
    return "".join(parts)
