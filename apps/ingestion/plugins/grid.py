"""Rows of a table file exactly as its cells have them, line breaks kept: for whoever reads rows, not documents.

JSON comes as its value. Runs inside the sandbox child, as the parsers do.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from apps.ingestion.plugins.archives import check_archive
from apps.ingestion.plugins.encodings import decode
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Progress
from apps.ingestion.plugins.sniff import extension_of, sniff

MAX_ROWS = 100_000
MAX_COLUMNS = 200
TEXTS = ("csv", "text", "json", "markdown")


def read_grid(request: ParseRequest, progress: Progress) -> ParsedDocument:
    """`details`: `kind` (csv, json or sheet), `rows` (lists of texts, blank ones in their place) or `value`; `encoding` of a text.

    Raises: ParseFailure with empty, locked, corrupt, unsupported_type, unreadable_text or too_large.
    """
    kind = sniff(request.path, request.file_name)
    if kind.family == "empty":
        raise ParseFailure("empty", "the file is empty (zero bytes)")
    if kind.family == "locked":
        raise ParseFailure("locked", "the file is encrypted with a password")
    if kind.family == "sheets":
        return _sheet(request, progress)
    if kind.family in TEXTS or (not kind.family and request.encoding):
        return _text(request, progress)
    raise ParseFailure("unsupported_type", f"no table file: {kind.extension or kind.media_type!r}", media_type=kind.media_type)


def _text(request: ParseRequest, progress: Progress) -> ParsedDocument:
    from apps.ingestion.plugins.parsers.delimited import FIELD_LIMIT, find_delimiter

    decoded = decode(request.path.read_bytes(), request.encoding)
    text = decoded.text.lstrip("\ufeff").replace("\x00", "")
    details: dict[str, Any] = {"replaced": decoded.replaced}
    extension = extension_of(request.file_name)
    if extension == "json" or (extension not in ("csv", "tsv", "txt") and text.lstrip()[:1] in ("[", "{")):
        try:
            details |= {"kind": "json", "value": json.loads(text)}
        except ValueError as error:
            raise ParseFailure("corrupt", f"this is no valid JSON: {error}") from error
        return ParsedDocument(text="", blocks=[], parser="grid", encoding=decoded.encoding, details=details)
    delimiter = "\t" if extension == "tsv" else find_delimiter(text)
    csv.field_size_limit(FIELD_LIMIT)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            _keep(rows, [cell.replace("\r\n", "\n").replace("\r", "\n") for cell in row])
    except csv.Error as error:
        raise ParseFailure("corrupt", f"the rows cannot be told apart: {error}") from error
    progress(len(rows), len(rows), "rows")
    details |= {"kind": "csv", "rows": rows, "delimiter": delimiter}
    return ParsedDocument(text="", blocks=[], parser="grid", encoding=decoded.encoding, details=details)


def _sheet(request: ParseRequest, progress: Progress) -> ParsedDocument:
    """The first sheet: shown values, cached values of formulas, a remark where a formula was never calculated."""
    import python_calamine as calamine

    from apps.ingestion.plugins.parsers.binary_cells import read_xls_cells, read_xlsb_cells
    from apps.ingestion.plugins.parsers.ods_cells import read_ods_cells
    from apps.ingestion.plugins.parsers.sheets import NOT_CALCULATED, show_value
    from apps.ingestion.plugins.parsers.xlsx_cells import SheetCells, read_cells

    with request.path.open("rb") as file:
        zipped = file.read(2) == b"PK"
    if zipped:
        check_archive(request.path, request.max_unpacked_bytes)
        cells = read_cells(request.path) or read_ods_cells(request.path) or read_xlsb_cells(request.path)
    else:
        cells = read_xls_cells(request.path)
    try:
        book = calamine.CalamineWorkbook.from_path(str(request.path))
        names = book.sheet_names
        sheet = book.get_sheet_by_index(0)
        own = cells.get(names[0], SheetCells())
        rows: list[list[str]] = []
        blank = 0
        for r, values in enumerate(sheet.to_python(skip_empty_area=False) if sheet.start is not None else []):
            line = [own.shown.get((r, c)) or show_value(value) for c, value in enumerate(values[:MAX_COLUMNS])]
            line = [NOT_CALCULATED if not text and (r, c) in own.uncalculated else text for c, text in enumerate(line)]
            blank = 0 if any(line) else blank + 1
            _keep(rows, [cell.replace("\r\n", "\n").replace("\r", "\n") for cell in line])
    except calamine.PasswordError as error:
        raise ParseFailure("locked", f"the workbook is encrypted with a password: {error}") from error
    except (calamine.CalamineError, OSError, ValueError, IndexError) as error:
        raise ParseFailure("corrupt", f"the workbook is damaged and cannot be read: {error}") from error
    del rows[len(rows) - blank :]
    progress(len(rows), len(rows), "rows")
    details = {"kind": "sheet", "rows": rows, "sheet": names[0], "sheets": len(names)}
    return ParsedDocument(text="", blocks=[], parser="grid", details=details)


def _keep(rows: list[list[str]], row: list[str]) -> None:
    if len(rows) >= MAX_ROWS or len(row) > MAX_COLUMNS:
        raise ParseFailure("too_large", f"more than {MAX_ROWS} rows or {MAX_COLUMNS} columns: too large")
    rows.append(row)
