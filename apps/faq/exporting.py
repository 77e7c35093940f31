"""Entries as a file: CSV, JSON or XLSX, the same bytes for the same entries (contract content F2)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.faq.files import HEADERS, cell_of, escaped
from apps.faq.models import FaqEntry
from apps.faq.selectors.entries import entries_in_order
from apps.knowledge.models import KnowledgeBase

CSV, JSON, XLSX = "csv", "json", "xlsx"
SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MAX_CELL = 32_767  # what a spreadsheet holds
WIDTHS = (16, 40, 40, 32, 60, 16, 16, 16)


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    media_type: str
    data: bytes


def entries_export(*, actor: Actor, base: KnowledgeBase, kind: str = CSV) -> Export:
    """Every entry of a base in the order in which it came; what `kind` does not name is CSV."""
    rows = entries_in_order(actor=actor, base=base)
    if kind.lower() == JSON:
        return Export("faq_export.json", "application/json; charset=utf-8", _json(rows))
    if kind.lower() == XLSX:
        return Export("faq_export.xlsx", SHEET_TYPE, _xlsx(rows))
    return Export("faq_export.csv", "text/csv; charset=utf-8", _csv(rows))


def tag_name_of(entry: FaqEntry) -> str:
    tags = sorted(entry.document.tags.all(), key=lambda tag: tag.pk)
    return tags[0].name if tags else ""


def cells_of(entry: FaqEntry) -> list[str]:
    """The entry in the eight columns of the contract."""
    return [
        tag_name_of(entry),
        entry.standard_question,
        cell_of(entry.similar_questions),
        cell_of(entry.negative_questions),
        cell_of(entry.answers),
        _truth(entry.answer_strategy == FaqEntry.Strategy.ALL),
        _truth(not entry.is_enabled),
        _truth(not entry.is_recommended),
    ]


def _truth(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _csv(entries: Iterable[FaqEntry]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADERS)
    for entry in entries:
        writer.writerow([escaped(cell) for cell in cells_of(entry)])
    return ("\ufeff" + out.getvalue()).encode("utf-8", "replace")


def _json(entries: Iterable[FaqEntry]) -> bytes:
    return json.dumps([_object(entry) for entry in entries], ensure_ascii=False, indent=2).encode("utf-8", "replace")


def _object(entry: FaqEntry) -> dict[str, Any]:
    whole = {
        "id": entry.seq_id,
        "tag_name": tag_name_of(entry),
        "standard_question": entry.standard_question,
        "similar_questions": entry.similar_questions,
        "negative_questions": entry.negative_questions,
        "answers": entry.answers,
        "answer_strategy": entry.answer_strategy,
        "is_enabled": entry.is_enabled,
        "is_recommended": entry.is_recommended,
    }
    return {name: value for name, value in whole.items() if value not in ("", [])}


def _xlsx(entries: Iterable[FaqEntry]) -> bytes:
    """Every cell is text, whatever it begins with: nothing in it is calculated, linked or turned into a number."""
    import xlsxwriter

    out = io.BytesIO()
    plain = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book = xlsxwriter.Workbook(out, plain)
    book.set_properties({"created": datetime(2000, 1, 1)})  # the same entries give the same bytes
    sheet = book.add_worksheet("FAQ")
    head = book.add_format({"bold": True})
    text = book.add_format({"num_format": "@", "quote_prefix": True, "text_wrap": True, "valign": "top"})
    for column, (name, width) in enumerate(zip(HEADERS, WIDTHS, strict=True)):
        sheet.set_column(column, column, width)
        sheet.write_string(0, column, name, head)
    for row, entry in enumerate(entries, start=1):
        for column, cell in enumerate(cells_of(entry)):
            if len(cell) >= MAX_CELL:
                words = _("The entry “%(question)s” has more text than a cell of a spreadsheet holds. Export as CSV or JSON.")
                raise InvalidInput(words % {"question": entry.standard_question[:80]}, field="format", code="cell_too_long", api_code=1000)
            sheet.write_string(row, column, _quoted(cell), text)
    sheet.freeze_panes(1, 0)
    book.close()
    return out.getvalue()


def _quoted(cell: str) -> str:
    """A text that begins as an escaped CSV cell does gets one apostrophe more, which reading takes away."""
    return f"'{cell}" if cell.startswith("'") and escaped(cell) != cell else cell
