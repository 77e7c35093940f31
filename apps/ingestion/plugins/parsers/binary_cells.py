"""What calamine does not tell about an XLS or an XLSB: how each number is shown, and the name of each error.

Source: [MS-XLS] 2.4 and [MS-XLSB] 2.4 (records); the number formats are those of `number_formats`.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from apps.ingestion.plugins.archives import MAX_XML_PART, read_part
from apps.ingestion.plugins.parsers.number_formats import BUILT_IN, show
from apps.ingestion.plugins.parsers.xlsx_cells import MAX_SHOWN, SheetCells, parse_xml

ERRORS = {0x00: "#NULL!", 0x07: "#DIV/0!", 0x0F: "#VALUE!", 0x17: "#REF!", 0x1D: "#NAME?", 0x24: "#NUM!", 0x2A: "#N/A"}
Record = tuple[int, bytes]


class _Book:
    """Formats of a workbook: what its styles say, and the counting of its days."""

    def __init__(self) -> None:
        self.codes = dict(BUILT_IN)
        self.styles: list[int] = []
        self.date1904 = False

    def put(self, cells: SheetCells, row: int, column: int, style: int, value: float) -> None:
        code = self.codes.get(self.styles[style], "") if style < len(self.styles) else ""
        if not code or code.lower() == "general" or code == "@":
            return
        if len(cells.shown) >= MAX_SHOWN:
            cells.complete = False
            return
        try:
            cells.shown[row, column] = show(value, code, date1904=self.date1904)
        except (ValueError, OverflowError):
            return


def read_xls_cells(path: Path) -> dict[str, SheetCells]:
    """Sheet name -> its cells; {} for a file this cannot look into: encrypted, older than Excel 97, damaged (the values are still read)."""
    import olefile

    try:
        with olefile.OleFileIO(str(path)) as file:
            if not file.exists("Workbook"):
                return {}
            with file.openstream("Workbook") as stream:
                data = stream.read()
        return _xls(data)
    except (OSError, ValueError, struct.error, IndexError, TypeError):
        return {}


def _xls_records(data: bytes, start: int) -> Iterator[Record]:
    """Records of one part of the stream, from its BOF to its EOF; charts inside it are passed over."""
    depth = 0
    while start + 4 <= len(data):
        kind, size = struct.unpack_from("<HH", data, start)
        if kind == 0x0809:
            depth += 1
        elif kind == 0x000A:
            depth -= 1
            if depth <= 0:
                return
        elif depth == 1:
            yield kind, data[start + 4 : start + 4 + size]
        start += 4 + size


def _xls(data: bytes) -> dict[str, SheetCells]:
    book, sheets = _Book(), {}
    for kind, body in _xls_records(data, 0):
        if kind == 0x002F:
            return {}  # encrypted
        if kind == 0x0022:
            book.date1904 = body[:2] == b"\x01\x00"
        elif kind == 0x041E:
            number, length = struct.unpack_from("<HH", body)
            book.codes[number] = _xls_text(body[4:], length)
        elif kind == 0x00E0:
            book.styles.append(struct.unpack_from("<H", body, 2)[0])
        elif kind == 0x0085:
            sheets[_xls_text(body[7:], body[6])] = struct.unpack_from("<I", body)[0]
    return {name: _xls_sheet(data, start, book) for name, start in sheets.items()}


def _xls_text(body: bytes, length: int) -> str:
    return body[1 : 1 + 2 * length].decode("utf-16-le") if body[0] & 1 else body[1 : 1 + length].decode("latin-1")


def _xls_sheet(data: bytes, start: int, book: _Book) -> SheetCells:
    cells = SheetCells()
    for kind, body in _xls_records(data, start):
        if kind == 0x0203 or (kind == 0x0006 and body[12:14] != b"\xff\xff"):
            row, column, style, value = struct.unpack_from("<HHHd", body)
            book.put(cells, row, column, style, value)
        elif kind == 0x027E:
            row, column, style, packed = struct.unpack_from("<HHHI", body)
            book.put(cells, row, column, style, _unpacked(packed))
        elif kind == 0x00BD:
            row, first = struct.unpack_from("<HH", body)
            for index, (style, packed) in enumerate(struct.iter_unpack("<HI", body[4:-2])):
                book.put(cells, row, first + index, style, _unpacked(packed))
        elif (kind == 0x0205 and body[7] == 1) or (kind == 0x0006 and body[6] == 2):
            row, column = struct.unpack_from("<HH", body)
            cells.shown[row, column] = ERRORS.get(body[6] if kind == 0x0205 else body[8], "#ERROR!")
    return cells


def _unpacked(packed: int) -> float:
    """An RkNumber: 30 bits of an integer or of a double, perhaps times 100."""
    if packed & 2:
        value = float((packed >> 2) - (1 << 30 if packed & 0x80000000 else 0))
    else:
        value = struct.unpack("<d", struct.pack("<Q", (packed & 0xFFFFFFFC) << 32))[0]
    return value / 100 if packed & 1 else value


def read_xlsb_cells(path: Path) -> dict[str, SheetCells]:
    """Sheet name -> its cells; {} for a file that is no XLSB or cannot be looked into (the values are still read)."""
    from lxml import etree

    try:
        with zipfile.ZipFile(path) as archive:
            book, sheets = _Book(), []
            for kind, body in _xlsb_records(read_part(archive, "xl/workbook.bin")):
                if kind == 153:
                    book.date1904 = bool(body[0] & 1)
                elif kind == 156:
                    rel, after = _xlsb_text(body, 8)
                    sheets.append((_xlsb_text(body, after)[0], rel))
            if not sheets:
                return {}
            _xlsb_styles(read_part(archive, "xl/styles.bin"), book)
            rels = parse_xml(read_part(archive, "xl/_rels/workbook.bin.rels"))
            targets = {r.get("Id"): r.get("Target") or "" for r in rels.iter("{*}Relationship")}
            found = {}
            for name, rel in sheets:
                target = str(PurePosixPath("/xl") / targets.get(rel, "")).lstrip("/")
                found[name] = _xlsb_sheet(read_part(archive, target, MAX_XML_PART), book)
            return found
    except (etree.XMLSyntaxError, zipfile.BadZipFile, ValueError, struct.error, IndexError):
        return {}


def _xlsb_records(data: bytes) -> Iterator[Record]:
    at = 0
    while at < len(data):
        kind, at = data[at], at + 1
        if kind & 0x80:
            kind, at = (kind & 0x7F) | (data[at] & 0x7F) << 7, at + 1
        size = 0
        for shift in (0, 7, 14, 21):
            byte, at = data[at], at + 1
            size |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
        yield kind, data[at : at + size]
        at += size


def _xlsb_text(body: bytes, at: int) -> tuple[str, int]:
    length = struct.unpack_from("<I", body, at)[0]
    if length == 0xFFFFFFFF:
        return "", at + 4
    return body[at + 4 : at + 4 + 2 * length].decode("utf-16-le"), at + 4 + 2 * length


def _xlsb_styles(data: bytes, book: _Book) -> None:
    inside = False
    for kind, body in _xlsb_records(data):
        if kind == 44:
            book.codes[struct.unpack_from("<H", body)[0]] = _xlsb_text(body, 2)[0]
        elif kind in (617, 618):
            inside = kind == 617
        elif kind == 47 and inside:
            book.styles.append(struct.unpack_from("<H", body, 2)[0])


def _xlsb_sheet(data: bytes, book: _Book) -> SheetCells:
    cells, row = SheetCells(), 0
    for kind, body in _xlsb_records(data):
        if kind == 0:
            row = struct.unpack_from("<I", body)[0]
        elif kind in (2, 5, 9):
            column, style = struct.unpack_from("<II", body)
            value = _unpacked(struct.unpack_from("<I", body, 8)[0]) if kind == 2 else struct.unpack_from("<d", body, 8)[0]
            book.put(cells, row, column, style & 0xFFFFFF, value)
        elif kind in (3, 11):
            cells.shown[row, struct.unpack_from("<I", body)[0]] = ERRORS.get(body[8], "#ERROR!")
    return cells
