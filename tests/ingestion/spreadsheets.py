"""Spreadsheets other than XLSX, made in code."""

from __future__ import annotations

import io
import struct
import zipfile

_NAMES = " ".join(f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"' for n in ("office", "table", "text"))
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def ods_of(table: str, name: str = "表") -> bytes:
    """One sheet; `table` is the XML of its rows."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>')
        body = f'<office:body><office:spreadsheet><table:table table:name="{name}">{table}</table:table></office:spreadsheet></office:body>'
        archive.writestr("content.xml", f"<office:document-content {_NAMES}>{body}</office:document-content>")
    return out.getvalue()


def xls_of(cells: dict[tuple[int, int], tuple[object, str]], name: str = "表") -> bytes:
    """One sheet; (row, column) -> (value, number format)."""
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet(name)
    for (row, column), (value, code) in cells.items():
        sheet.write(row, column, value, xlwt.easyxf(num_format_str=code))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _record(kind: int, body: bytes = b"") -> bytes:
    head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size = len(body)
    return head + (bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])) + body


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb_of(cells: dict[tuple[int, int], tuple[str | float, str]], name: str = "表") -> bytes:
    """One sheet; (row, column) -> (text or number, number format). Whole numbers are packed, others are doubles."""
    codes = sorted({code for _value, code in cells.values()})
    formats = b"".join(_record(44, struct.pack("<H", 200 + n) + _text(code)) for n, code in enumerate(codes))
    styles = b"".join(_record(47, struct.pack("<HHHHHBBHH", 0, 200 + n, 0, 0, 0, 0, 0, 0, 0)[:16]) for n in range(len(codes)))
    rows = b""
    for row in sorted({at[0] for at in cells}):
        rows += _record(0, struct.pack("<IIHBBBI", row, 0, 300, 0, 0, 0, 0))
        for (_row, column), (value, code) in sorted((at, cell) for at, cell in cells.items() if at[0] == row):
            head = struct.pack("<II", column, codes.index(code))
            if isinstance(value, str):
                rows += _record(6, head + _text(value))
            elif value == int(value):
                rows += _record(2, head + struct.pack("<i", int(value) << 2 | 2))
            else:
                rows += _record(5, head + struct.pack("<d", value))
    last = (max(r for r, _c in cells), max(c for _r, c in cells))
    sheet = _record(129) + _record(148, struct.pack("<IIII", 0, last[0], 0, last[1])) + _record(145) + rows + _record(146) + _record(130)
    book = _record(131) + _record(153, bytes(12)) + _record(143) + _record(156, struct.pack("<II", 0, 1) + _text("rId1") + _text(name))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="bin" '
        'ContentType="application/vnd.ms-excel.sheet.binary.macroEnabled.main"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
        'Target="xl/workbook.bin"/></Relationships>',
        "xl/_rels/workbook.bin.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" Type="{_OFFICE}/worksheet" '
        'Target="worksheets/sheet1.bin"/></Relationships>',
        "xl/workbook.bin": book + _record(144) + _record(132),
        "xl/styles.bin": _record(278) + _record(615, struct.pack("<I", len(codes))) + formats + _record(616)
        + _record(617, struct.pack("<I", len(codes))) + styles + _record(618) + _record(279),
        "xl/worksheets/sheet1.bin": sheet,
    }  # fmt: skip
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    return out.getvalue()
