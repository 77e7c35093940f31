"""What calamine does not tell about an XLSX: how each number is shown, and which formulas were never calculated."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from apps.ingestion.plugins.archives import MAX_XML_PART, read_part
from apps.ingestion.plugins.parsers.number_formats import BUILT_IN, show
from apps.ingestion.plugins.protocol import ParseFailure

MAX_SHOWN = 500_000
MAX_GRID = 30_000_000
_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})$")


@dataclass(slots=True)
class SheetCells:
    """By (row, column), counted from 0: the shown text of formatted numbers and of errors, and formulas without a value."""

    shown: dict[tuple[int, int], str] = field(default_factory=dict)
    uncalculated: set[tuple[int, int]] = field(default_factory=set)
    complete: bool = True


def read_cells(path: Path) -> dict[str, SheetCells]:
    """Sheet name -> its cells; {} for a file this cannot look into (the values are still read).

    Raises: ParseFailure("too_large") for a sheet whose used range no reader could hold.
    """
    from lxml import etree

    found: dict[str, SheetCells] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            book = parse_xml(read_part(archive, "xl/workbook.xml"))
            rels = parse_xml(read_part(archive, "xl/_rels/workbook.xml.rels"))
            targets = {r.get("Id"): r.get("Target") or "" for r in rels.iter("{*}Relationship")}
            formats = _formats(read_part(archive, "xl/styles.xml"))
            date1904 = any(p.get("date1904") in ("1", "true") for p in book.iter("{*}workbookPr"))
            for sheet in book.iter("{*}sheet"):
                target = targets.get(sheet.get(_REL) or next((v for k, v in sheet.attrib.items() if k.endswith("}id")), ""), "")
                name = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join("xl", target))
                if target and name in archive.NameToInfo:
                    found[sheet.get("name") or ""] = _sheet(read_part(archive, name, MAX_XML_PART), formats, date1904)
    except (etree.XMLSyntaxError, zipfile.BadZipFile, ValueError, KeyError):
        return {}
    return found


def parse_xml(data: bytes):  # type: ignore[no-untyped-def]
    from lxml import etree

    return etree.fromstring(data or b"<x/>", etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False))


def _formats(data: bytes) -> list[str]:
    """The format code of each cell style, "" for General."""
    root = parse_xml(data)
    codes = dict(BUILT_IN)
    for item in root.iter("{*}numFmt"):
        number = item.get("numFmtId") or ""
        if number.isdigit():
            codes[int(number)] = item.get("formatCode") or ""
    styles = root.find("{*}cellXfs")
    ids = [xf.get("numFmtId") or "0" for xf in styles.iter("{*}xf")] if styles is not None else []
    out = [codes.get(int(i), "") if i.isdigit() else "" for i in ids]
    return ["" if code.lower() in ("general", "@") else code for code in out]


def _sheet(data: bytes, formats: list[str], date1904: bool) -> SheetCells:
    from lxml import etree

    cells = SheetCells()
    row = column = -1
    lowest, rightmost, leftmost, topmost = -1, -1, 1 << 20, 1 << 30
    for _, element in etree.iterparse(io.BytesIO(data), tag=("{*}c", "{*}row"), resolve_entities=False, no_network=True, load_dtd=False):
        if etree.QName(element).localname == "row":
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
            column = -1
            continue
        place = _CELL.match(element.get("r") or "")
        if place:
            row, column = int(place[2]) - 1, _column(place[1])
        else:
            parent = element.getparent()
            number = parent.get("r") if parent is not None else None
            row, column = (int(number) - 1 if number and number.isdigit() else row), column + 1
        value = element.findtext("{*}v")
        formula = element.find("{*}f") is not None
        if not (value or formula or element.find("{*}is") is not None):
            continue
        lowest, rightmost, leftmost, topmost = max(lowest, row), max(rightmost, column), min(leftmost, column), min(topmost, row)
        if formula and not value and element.get("t") != "str":
            cells.uncalculated.add((row, column))
        elif value and element.get("t") == "e":
            cells.shown[row, column] = value
        elif value and element.get("t") in (None, "n") and len(cells.shown) < MAX_SHOWN:
            style = element.get("s") or "0"
            code = formats[int(style)] if style.isdigit() and int(style) < len(formats) else ""
            if code:
                try:
                    cells.shown[row, column] = show(float(value), code, date1904=date1904)
                except (ValueError, OverflowError):
                    continue
        elif len(cells.shown) >= MAX_SHOWN:
            cells.complete = False
    if lowest >= 0 and (lowest - topmost + 1) * (rightmost - leftmost + 1) > MAX_GRID:
        raise ParseFailure(
            "too_large", f"a sheet spans {lowest + 1} rows and {rightmost + 1} columns: too large, the limit is {MAX_GRID} cells"
        )
    return cells


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1
