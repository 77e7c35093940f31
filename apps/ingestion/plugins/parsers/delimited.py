"""CSV and TSV: one table, every row with its line."""

from __future__ import annotations

import csv
import io
from collections import Counter

from apps.ingestion.plugins.builder import DocumentBuilder, one_line
from apps.ingestion.plugins.encodings import decode
from apps.ingestion.plugins.parsers.plain import add_plain
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers

_DELIMITERS = (",", "\t", ";", "|")
FIELD_LIMIT = 10_000_000
MAX_COLUMNS = 16_384  # what a sheet of Excel can hold; more is no table anybody reads, and every piece would repeat a header of that length


def find_delimiter(text: str, preferred: str = ",") -> str:
    """The delimiter that gives the first records the same number of fields, above one; ties go to `preferred`."""
    sample = text[:200_000]
    best, best_score = preferred, 0.0
    for delimiter in (preferred, *(d for d in _DELIMITERS if d != preferred)):
        widths = Counter[int]()
        try:
            for index, row in enumerate(csv.reader(io.StringIO(sample), delimiter=delimiter)):
                if any(row):
                    widths[len(row)] += 1
                if index >= 60:
                    break
        except csv.Error:
            continue
        if not widths:
            continue
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
        score = (count / widths.total()) * (1 + min(width, 20) / 100) if width > 1 else 0.0
        if score > best_score + 1e-9:
            best, best_score = delimiter, score
    return best


def read_rows(text: str, delimiter: str) -> list[tuple[list[str], int, int]]:
    """Every record that holds something, with its first and last line.

    Raises: csv.Error.
    """
    csv.field_size_limit(FIELD_LIMIT)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[list[str], int, int]] = []
    before = 0
    for row in reader:
        first, before = before + 1, reader.line_num
        if any(cell.strip() for cell in row):
            rows.append((row, first, before))
    return rows


@parsers.register("csv")
class DelimitedParser:
    media_types = ("text/csv", "text/tab-separated-values")
    extensions = ("csv", "tsv")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        decoded = decode(request.path.read_bytes(), request.encoding)
        text = decoded.text.lstrip("\ufeff").replace("\x00", "")
        builder = DocumentBuilder(request.max_chars)
        preferred = "\t" if request.media_type == "text/tab-separated-values" or request.file_name.lower().endswith(".tsv") else ","
        delimiter = find_delimiter(text, preferred)
        try:
            rows = read_rows(text, delimiter)
        except csv.Error as error:
            builder.warn("invalid_csv", f"read as text: {error}")
            add_plain(builder, text)
            rows = []
        if rows:
            self._table(builder, rows, request.header_row)
        progress(len(rows), len(rows), "rows")
        if decoded.replaced:
            builder.warn("replaced_characters", f"{decoded.replaced} characters could not be read as {decoded.encoding}")
        details = {"delimiter": delimiter, "rows": len(rows)}
        return builder.finish(encoding=decoded.encoding, details=details)

    def _table(self, builder: DocumentBuilder, rows: list[tuple[list[str], int, int]], header_row: bool) -> None:
        width = max(len(cells) for cells, _, _ in rows)
        if width > MAX_COLUMNS:
            raise ParseFailure("too_large", f"the table has {width} columns: too many, the limit is {MAX_COLUMNS}")
        while header_row and len(rows) > 1 and width > 1 and sum(bool(c.strip()) for c in rows[0][0]) == 1:
            cells, first, last = rows.pop(0)  # a title above the column names
            builder.add("caption", one_line(" ".join(cells)), Position(line=first, line_end=last))
        header: list[str] = []
        first_line = rows[0][1]
        last_line = rows[-1][2]
        if header_row:
            header = rows.pop(0)[0]
        else:
            header = [column_letters(i) for i in range(width)]
        body = [(cells, Position(line=first, line_end=last)) for cells, first, last in rows]
        builder.table(header, body, Position(line=first_line, line_end=last_line))


def column_letters(index: int) -> str:
    """A, B, ... Z, AA for 0, 1, ...; what a spreadsheet calls its columns."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
