"""Files of entries: which column is which, what its cells say, and the same way back (contract content 3.4, F2).

Lists stand in one cell, joined by `##`. A list that this would tear apart (an answer with a Markdown heading) is written as a JSON list
instead, and read as one. A cell that a spreadsheet would take for a formula (`=`, `+`, `-`, `@` at its beginning) gets an apostrophe before
it in CSV, where a spreadsheet then shows it as text; reading takes it away again. XLSX has typed cells and needs none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import authorize
from apps.faq.drafts import MAX_ROWS, IncomingRow, draft_of, too_many_rows
from apps.faq.models import FIRST_NUMBER
from apps.ingestion.selectors import table_read
from apps.knowledge.models import KnowledgeBase

MAX_BYTES = 10 * 1024 * 1024
HEADERS = (
    "分类(必填)",
    "问题(必填)",
    "相似问题(选填-多个用##分隔)",
    "反例问题(选填-多个用##分隔)",
    "机器人回答(必填-多个用##分隔)",
    "是否全部回复(选填-默认FALSE)",
    "是否停用(选填-默认FALSE)",
    "是否禁止被推荐(选填-默认False 可被推荐)",
)
#: What a column means: names of it, without what stands in brackets, case, spaces, `_` and `-`.
_NAMES: dict[str, tuple[str, ...]] = {
    "tag_name": ("分类", "标签", "分類", "標籤", "tagname", "tag", "category"),
    "tag_id": ("tagid", "标签id", "標籤id"),
    "standard_question": ("问题", "标准问题", "標準問題", "問題", "standardquestion", "question"),
    "similar_questions": ("相似问题", "相似問題", "similarquestions", "similarquestion", "similar"),
    "negative_questions": ("反例问题", "反例問題", "反例", "negativequestions", "negativequestion", "negative"),
    "answers": ("机器人回答", "機器人回答", "回答", "答案", "answers", "answer"),
    "answer_all": ("是否全部回复", "是否全部回覆", "是否全部回復", "answerall"),
    "answer_strategy": ("回答策略", "answerstrategy", "strategy"),
    "is_disabled": ("是否停用", "停用", "isdisabled", "disabled"),
    "is_enabled": ("是否启用", "是否啟用", "启用", "isenabled", "enabled"),
    "not_recommended": ("是否禁止被推荐", "是否禁止被推薦", "notrecommended"),
    "is_recommended": ("是否推荐", "是否推薦", "推荐", "isrecommended", "recommended"),
}
_FIELD_OF = {name: field for field, names in _NAMES.items() for name in names}
_LISTS = ("similar_questions", "negative_questions", "answers")
_FLAGS = ("answer_all", "is_disabled", "is_enabled", "not_recommended", "is_recommended")
_BRACKETS = re.compile(r"[(（\[【].*?[)）\]】]")
_TRUE = frozenset({"true", "1", "1.0", "是", "yes", "y", "对", "真", "✓", "√", "on", "t"})
_FALSE = frozenset({"false", "0", "0.0", "否", "no", "n", "错", "假", "✗", "×", "off", "f"})
_FORMULA = re.compile(r"'*[=+\-@]")
_ESCAPED = re.compile(r"'+[=+\-@]")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the file and what it was taken for; "" when it is not read."""

    name: str
    field: str


@dataclass(frozen=True, slots=True)
class EntryFile:
    """What a file holds: its rows as an import takes them, how it was read, and its columns."""

    rows: list[IncomingRow]
    kind: str
    encoding: str = ""
    replaced: int = 0
    delimiter: str = ""
    sheet: str = ""
    sheets: int = 0
    columns: list[Column] = field(default_factory=list)


def entries_read(*, actor: Actor, base: KnowledgeBase, path: Path, file_name: str, encoding: str = "") -> EntryFile:
    """The entries of a JSON, CSV, TSV, XLSX or XLS file.

    Raises: InvalidInput when it is too large, cannot be read, has no column of questions or of answers, no rows, or too many.
    """
    authorize(actor, "faq.import", base)
    if path.stat().st_size > MAX_BYTES:
        raise too_large()
    table = table_read(actor=actor, path=path, file_name=file_name, encoding=encoding)
    read: dict[str, Any] = {"kind": table.kind, "encoding": table.encoding, "replaced": table.replaced}
    if table.kind == "json":
        return EntryFile(rows=rows_of_json(table.value), **read)
    rows, columns = rows_of_table(table.rows)
    return EntryFile(rows=rows, columns=columns, delimiter=table.delimiter, sheet=table.sheet, sheets=table.sheets, **read)


def too_large() -> InvalidInput:
    return InvalidInput(_("The file is larger than 10 MB. Split it."), field="file", code="file_too_large", api_code=1000, max=MAX_BYTES)


def field_of(header: str) -> str:
    """The field a column header names; "" for another one."""
    bare = _BRACKETS.sub("", header.strip().lstrip("\ufeff")).casefold()
    return _FIELD_OF.get(re.sub(r"[\s_\-*：:]", "", bare), "")


def rows_of_table(table: Sequence[Sequence[str]]) -> tuple[list[IncomingRow], list[Column]]:
    """(the rows below the header, its columns); blank rows are passed over.

    Raises: InvalidInput without a header, without rows, or with too many.
    """
    start, columns = _header(table)
    body = [row for row in table[start + 1 :] if any(cell.strip() for cell in row)]
    _check_count(len(body))
    rows = []
    for cells in body:
        raw = {column.name: cells[at] for at, column in enumerate(columns) if at < len(cells) and cells[at] != ""}
        named: dict[str, Any] = {}
        for at, column in enumerate(columns):
            if column.field and at < len(cells) and column.field not in named:
                named[column.field] = (column.name, unescaped(cells[at].strip()))
        rows.append(_row(raw, named))
    return rows, columns


def _header(table: Sequence[Sequence[str]]) -> tuple[int, list[Column]]:
    """The first of the rows at the top that names questions and answers."""
    for at, row in enumerate(table[:10]):
        columns = [Column(name.strip().lstrip("\ufeff"), field_of(name)) for name in row]
        fields = {column.field for column in columns}
        if {"standard_question", "answers"} <= fields:
            return at, columns
    first = next((row for row in table if any(cell.strip() for cell in row)), [])
    if not first:
        raise InvalidInput(_("The file has no rows."), field="file", code="no_rows", api_code=1000)
    names = "、".join(cell.strip()[:40] for cell in first[:12] if cell.strip())
    words = _("No column of questions and of answers was found. The first row says: %(names)s. Name them “问题” and “机器人回答”.")
    raise InvalidInput(words % {"names": names}, field="file", code="no_columns", api_code=1000, columns=list(first[:20]))


def _check_count(count: int) -> None:
    if not count:
        raise InvalidInput(_("The file has no rows."), field="file", code="no_rows", api_code=1000)
    if count > MAX_ROWS:
        raise too_many_rows(count)


def rows_of_json(value: Any) -> list[IncomingRow]:
    """The entries of a JSON file: a list of objects, or an object that holds one. Raises: InvalidInput."""
    if isinstance(value, Mapping):
        value = next((value[name] for name in ("entries", "data", "items", "faqs") if isinstance(value.get(name), list)), value)
    if not isinstance(value, list):
        raise InvalidInput(_("The file must hold a list of entries."), field="file", code="not_a_list", api_code=1000)
    _check_count(len(value))
    return [row_of_object(each) for each in value]


def row_of_object(value: Any) -> IncomingRow:
    """An entry as an object with Chinese, snake_case or camelCase names."""
    if not isinstance(value, Mapping):
        return IncomingRow(raw=value, reason="not_an_entry")
    named: dict[str, Any] = {}
    for name, given in value.items():
        if (found := field_of(str(name))) and found not in named and given is not None:
            named[found] = (str(name), given)
    number = value.get("id")
    brought = isinstance(number, int) and not isinstance(number, bool) and 0 < number < FIRST_NUMBER
    return _row(dict(value), named, number=number if brought else None)


def _row(raw: Any, named: Mapping[str, tuple[str, Any]], *, number: int | None = None) -> IncomingRow:
    values: dict[str, Any] = {"number": number}
    for name in ("standard_question", "tag_name"):
        if name in named:
            values[name] = named[name][1] if isinstance(named[name][1], str | int | float) else ""
    for name in _LISTS:
        if name in named:
            values[name] = texts_of(named[name][1])
    flags: dict[str, bool] = {}
    for name in _FLAGS:
        if name in named:
            column, given = named[name]
            flag = boolean_of(given)
            if flag is None and str(given).strip():
                return IncomingRow(raw=raw, reason="bad_boolean", facts={"column": column[:60], "value": str(given)[:40]})
            if flag is not None:
                flags[name] = flag
    if "is_enabled" in flags or "is_disabled" in flags:
        values["is_enabled"] = flags.get("is_enabled", not flags.get("is_disabled", False))
    if "is_recommended" in flags or "not_recommended" in flags:
        values["is_recommended"] = flags.get("is_recommended", not flags.get("not_recommended", False))
    if "answer_strategy" in named and str(named["answer_strategy"][1]).strip():
        values["answer_strategy"] = str(named["answer_strategy"][1]).strip().lower()
    elif "answer_all" in flags:
        values["answer_strategy"] = "all" if flags["answer_all"] else "random"
    tag = str(named["tag_id"][1]).strip() if "tag_id" in named else ""
    if tag.isascii() and tag.isdigit() and len(tag) < 19:
        values["tag_id"] = int(tag)
    return IncomingRow(raw=raw, draft=draft_of(values))


def boolean_of(given: Any) -> bool | None:
    """Yes or no in the ways people write it; None for blank and anything else."""
    if isinstance(given, bool):
        return given
    text = str(given).strip().casefold()
    return True if text in _TRUE else False if text in _FALSE else None


def texts_of(given: Any) -> list[str]:
    """The texts of a cell, or of a list in JSON."""
    if isinstance(given, list):
        return [str(each) for each in given if isinstance(each, str | int | float)]
    text = str(given).strip()
    if text.startswith('["'):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
    return text.split("##")


def cell_of(texts: Iterable[str]) -> str:
    """Texts as one cell; `texts_of` gives exactly these back."""
    wanted = list(texts)
    cell = "##".join(wanted)
    return cell if [text for each in texts_of(cell) if (text := each.strip())] == wanted else json.dumps(wanted, ensure_ascii=False)


def escaped(cell: str) -> str:
    """A CSV cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unescaped(cell: str) -> str:
    return cell[1:] if _ESCAPED.match(cell) else cell
