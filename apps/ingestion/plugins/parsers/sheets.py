"""XLSX, XLS, XLSB and ODS through calamine: every sheet as tables of shown values, every row with its cells."""

from __future__ import annotations

import datetime as dt
from typing import Any

from apps.ingestion.plugins.archives import check_archive
from apps.ingestion.plugins.builder import DocumentBuilder, one_line
from apps.ingestion.plugins.parsers.binary_cells import read_xls_cells, read_xlsb_cells
from apps.ingestion.plugins.parsers.delimited import column_letters
from apps.ingestion.plugins.parsers.number_formats import general
from apps.ingestion.plugins.parsers.ods_cells import read_ods_cells
from apps.ingestion.plugins.parsers.table_shape import is_header, is_number, is_second_header, join_headers
from apps.ingestion.plugins.parsers.xlsx_cells import SheetCells, read_cells
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers
from apps.ingestion.plugins.sniff import XLSX

NOT_CALCULATED = "未计算 (not calculated)"
Row = tuple[int, list[str], int, int]  # row number from 0, cells, first and last used column


def show_value(value: Any) -> str:
    """A value without a known number format as text."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float | int):
        return general(float(value))
    if isinstance(value, dt.datetime):
        if value.microsecond >= 500_000:
            value += dt.timedelta(seconds=1)
        value = value.replace(microsecond=0)
        return value.date().isoformat() if value.time() == dt.time() else value.isoformat(" ")
    if isinstance(value, dt.time):
        return value.replace(microsecond=0).isoformat()
    if isinstance(value, dt.timedelta):
        seconds = int(value.total_seconds())
        return f"{seconds // 3600}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}"
    return "" if value is None else str(value)


@parsers.register("sheets")
class SheetParser:
    media_types = (
        XLSX,
        "application/vnd.ms-excel",
        "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
        "application/vnd.oasis.opendocument.spreadsheet",
    )
    extensions = ("xlsx", "xlsm", "xls", "xlsb", "ods")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        import python_calamine as calamine

        with request.path.open("rb") as file:
            zipped = file.read(2) == b"PK"
        cells: dict[str, SheetCells] = {}
        if zipped:
            check_archive(request.path, request.max_unpacked_bytes)
            cells = read_cells(request.path) or read_ods_cells(request.path) or read_xlsb_cells(request.path)
        else:
            cells = read_xls_cells(request.path)
        builder = DocumentBuilder(request.max_chars)
        try:
            book = calamine.CalamineWorkbook.from_path(str(request.path))
            sheets = self._sheets(builder, book, cells, request, progress)
        except calamine.PasswordError as error:
            raise ParseFailure("locked", f"the workbook is encrypted with a password: {error}") from error
        except (calamine.CalamineError, OSError, ValueError) as error:
            raise ParseFailure("corrupt", f"the workbook is damaged and cannot be read: {error}") from error
        return builder.finish(counts={"sheets": len(sheets)}, details={"sheets": sheets})

    def _sheets(
        self, builder: DocumentBuilder, book: Any, cells: dict[str, SheetCells], request: ParseRequest, progress: Progress
    ) -> list[dict[str, Any]]:
        import python_calamine as calamine

        sheets = []
        for index, meta in enumerate(book.sheets_metadata):
            hidden = meta.visible != calamine.SheetVisibleEnum.Visible
            place = Position(sheet=meta.name)
            sheets.append({"name": meta.name, "hidden": hidden, "rows": 0})
            try:
                sheet = book.get_sheet_by_index(index)
            except calamine.WorksheetNotFound:
                continue  # a chart sheet: nothing to read
            rows = _rows(builder, sheet, meta.name, cells.get(meta.name, SheetCells()))
            sheets[-1]["rows"] = len(rows)
            if hidden:
                builder.warn("hidden_sheet", f"sheet {meta.name[:100]!r} is hidden", place, key=meta.name)
            if rows:
                builder.heading(meta.name, 2, place)
                for block in _split(rows):
                    _add_table(builder, meta.name, block, request.header_row)
            progress(index + 1, len(book.sheet_names), "sheets")
        return sheets


def _rows(builder: DocumentBuilder, sheet: Any, name: str, cells: SheetCells) -> list[Row]:
    """Rows that hold something, merged cells filled, as shown."""
    if sheet.start is None:
        return []
    merged: dict[tuple[int, int], tuple[int, int]] = {}
    bottom, right = sheet.end
    for (top, left), (low, far) in sheet.merged_cell_ranges or ():
        for r in range(top, min(low, bottom) + 1):
            for c in range(left, min(far, right) + 1):
                if (r, c) != (top, left):
                    merged[r, c] = (top, left)
    origins = set(merged.values())
    kept: dict[tuple[int, int], str] = {}
    rows: list[Row] = []
    uncalculated = cells.uncalculated
    for r, values in enumerate(sheet.iter_rows() if sheet.start == (0, 0) else _from_top(sheet)):
        line: list[str] = []
        for c, value in enumerate(values):
            at = (r, c)
            text = cells.shown.get(at) or one_line(show_value(value))
            if not text and at in uncalculated:
                text = NOT_CALCULATED
                builder.warn(
                    "formula_not_calculated",
                    "a formula was never calculated, its value is unknown",
                    Position(sheet=name, cells=_name(r, c)),
                )
            if at in origins:
                kept[at] = text
            line.append(kept.get(merged[at], text) if at in merged else text)
        used = [c for c, text in enumerate(line) if text]
        if used:
            rows.append((r, line, used[0], used[-1]))
    return rows


def _from_top(sheet: Any) -> Any:
    """calamine leaves out empty columns, and in some formats rows, before the first value; to_python gives them all."""
    return sheet.to_python(skip_empty_area=False)


def _name(row: int, column: int) -> str:
    return f"{column_letters(column)}{row + 1}"


def _split(rows: list[Row]) -> list[list[Row]]:
    """One block per table: a new one begins after blank rows where words stand over numbers."""
    blocks: list[list[Row]] = []
    for index, row in enumerate(rows):
        gap = index > 0 and row[0] - rows[index - 1][0] > 1
        following = rows[index + 1] if index + 1 < len(rows) else None
        opens = (
            gap
            and following is not None
            and following[0] == row[0] + 1
            and is_header([c for c in row[1] if c])
            and any(is_number(c) for c in following[1] if c)
        )
        if not blocks or opens:
            blocks.append([])
        blocks[-1].append(row)
    return blocks


def _add_table(builder: DocumentBuilder, sheet: str, rows: list[Row], header_row: bool) -> None:
    rows = list(rows)
    first, last = min(r[2] for r in rows), max(r[3] for r in rows)
    while (
        len(rows) > 1 and last > first and len({c for c in rows[0][1] if c}) == 1 and any(len({c for c in r[1] if c}) > 1 for r in rows[1:])
    ):
        number, cells, left, right = rows.pop(0)  # a title over the table
        builder.add("caption", cells[left], Position(sheet=sheet, cells=f"{_name(number, left)}:{_name(number, right)}"))
    top = rows[0][0]
    bottom = rows[-1][0]
    header = [column_letters(c) for c in range(first, last + 1)]
    if header_row and len(rows) > 1 and is_header(rows[0][1][first : last + 1]):
        header = rows.pop(0)[1][first : last + 1]
        while len(rows) > 1 and is_second_header(header, rows[0][1][first : last + 1]):
            header = join_headers(header, rows.pop(0)[1][first : last + 1])
    body = []
    for number, cells, left, right in rows:
        place = Position(sheet=sheet, cells=f"{_name(number, left)}:{_name(number, right)}" if right > left else _name(number, left))
        body.append((cells[first : last + 1], place))
    builder.table(header, body, Position(sheet=sheet, cells=f"{_name(top, first)}:{_name(bottom, last)}"))
