"""Question sets as files: JSON lines or CSV, every row checked before anything is stored."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput, PayloadTooLarge

MAX_BYTES = 10 * 1024 * 1024
MAX_ROWS = 5000
MAX_QUESTION = 4000
MAX_TEXT = 20_000
MAX_EXPECTED = 50
FAULTS_TOLD = 100
BETWEEN = "##"  # several values in one cell of a CSV
FIELDS = ("question", "expected_documents", "expected_passages", "expected_answer")
OTHER_NAMES = {
    "text": "question",
    "query": "question",
    "问题": "question",
    "expected_document": "expected_documents",
    "documents": "expected_documents",
    "期望文档": "expected_documents",
    "expected_passage": "expected_passages",
    "passages": "expected_passages",
    "期望段落": "expected_passages",
    "expected_answers": "expected_answer",
    "answer": "expected_answer",
    "answers": "expected_answer",
    "期望答案": "expected_answer",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A question as it is going to be stored."""

    text: str
    documents: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


class RowFault(Exception):
    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


def questions_read(name: str, content: bytes) -> list[Draft]:
    """The questions of a file, by its ending: `.csv`, else JSON lines.

    Raises: PayloadTooLarge; InvalidInput naming the first fault, with up to 100 of them as `details.rows` ({row, field, message}).
    """
    if len(content) > MAX_BYTES:
        raise PayloadTooLarge(_("The file is too large. At most 10 MB are taken."), field="file")
    text = _decoded(content)
    rows = _of_csv(text) if name.lower().endswith(".csv") else _of_lines(text)
    return questions_of(rows)


def questions_of(rows: Iterable[tuple[int, Any]]) -> list[Draft]:
    """Checked questions of numbered rows; a row that is an exception is one that could not be read. Raises: InvalidInput."""
    drafts: list[Draft] = []
    faults: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for number, row in rows:
        try:
            draft = _draft(row)
            first = seen.setdefault(draft.text, number)
            if first != number:
                raise RowFault("question", _("This question stands in row %(row)d already.") % {"row": first})
            drafts.append(draft)
        except RowFault as fault:
            if len(faults) < FAULTS_TOLD:
                faults.append({"row": number, "field": fault.field, "message": fault.message})
    if faults:
        first_fault = faults[0]
        words = _("Row %(row)d, %(field)s: %(message)s") % first_fault
        raise InvalidInput(words, field="file", code="bad_rows", rows=faults)
    if not drafts:
        raise InvalidInput(_("There is no question in it. Each row needs a `question`."), field="file", code="no_rows")
    if len(drafts) > MAX_ROWS:
        words = _("There are %(count)d questions; a set has at most %(most)d. Split it.") % {"count": len(drafts), "most": MAX_ROWS}
        raise InvalidInput(words, field="file", code="too_many_rows")
    return drafts


def _decoded(content: bytes) -> str:
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise InvalidInput(_("The text of the file cannot be read. Save it as UTF-8."), field="file", code="bad_encoding")


def _of_lines(text: str) -> list[tuple[int, Any]]:
    rows: list[tuple[int, Any]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = RowFault("row", _("This line is not JSON. Each line is one object."))
        rows.append((number, row))
    return rows


def _of_csv(text: str) -> list[tuple[int, Any]]:
    try:
        table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        words = _("The file is not readable as CSV: %(why)s.") % {"why": error}
        raise InvalidInput(words, field="file", code="bad_csv") from None
    if not table:
        return []
    head = [OTHER_NAMES.get(cell.strip().lower(), cell.strip().lower()) for cell in table[0]]
    if "question" not in head:
        words = _("The first row has to name the columns; one of them is `question`. It has: %(columns)s.") % {
            "columns": ", ".join(table[0])[:200]
        }
        raise InvalidInput(words, field="file", code="no_header")
    rows: list[tuple[int, Any]] = []
    for number, cells in enumerate(table[1:], 2):
        if any(cell.strip() for cell in cells):
            row = dict(zip(head, cells, strict=False))
            parted = {name: cell.split(BETWEEN) if name != "question" else cell for name, cell in row.items() if name in FIELDS}
            rows.append((number, parted))
    return rows


def _draft(row: Any) -> Draft:
    if isinstance(row, RowFault):
        raise row
    if not isinstance(row, dict):
        raise RowFault("row", _("Each row is an object with a `question`."))
    named = {OTHER_NAMES.get(str(name).strip().lower(), str(name).strip().lower()): value for name, value in row.items()}
    text = named.get("question")
    if not isinstance(text, str) or not text.replace("\0", "").strip():
        raise RowFault("question", _("A question is missing."))
    text = text.replace("\0", "").strip()
    if len(text) > MAX_QUESTION:
        raise RowFault("question", _("Shorten the question to 4,000 characters."))
    return Draft(text, *(tuple(_values(name, named.get(name))) for name in FIELDS[1:]))


def _values(name: str, value: Any) -> Sequence[str]:
    """One text or several."""
    if value is None:
        return []
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise RowFault(name, _("A text or a list of texts is needed."))
    found = [cleaned for each in given if (cleaned := each.replace("\0", "").strip())]
    if len(found) > MAX_EXPECTED or any(len(each) > MAX_TEXT for each in found):
        raise RowFault(name, _("At most 50 texts of 20,000 characters each."))
    return list(dict.fromkeys(found))
