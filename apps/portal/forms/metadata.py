"""Custom metadata as rows of a form: name, kind, value."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

MAX_ROWS = 20  # as many items as a document may have
BLANK_ROWS = 3
KINDS = (
    ("text", pgettext_lazy("kind of value", "Text")),
    ("number", gettext_lazy("Number")),
    ("yes", gettext_lazy("Yes")),
    ("no", gettext_lazy("No")),
    ("empty", gettext_lazy("Nothing")),
)
_FIXED: dict[str, Any] = {"yes": True, "no": False, "empty": None}


@dataclass(slots=True)
class MetadataRow:
    name: str = ""
    kind: str = "text"
    value: str = ""
    error: str = ""


def digest(value: Any) -> str:
    """A short name of a value, by which a form tells whether it is still the one it was opened with."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:32]


def rows_from(values: Mapping[str, Any], blank: int = BLANK_ROWS) -> list[MetadataRow]:
    """The rows of stored metadata, with a few empty ones to fill in."""
    rows = [_row(name, value) for name, value in values.items()]
    return rows + [MetadataRow() for _n in range(max(0, min(blank, MAX_ROWS - len(rows))))]


def _row(name: str, value: Any) -> MetadataRow:
    if value is None or isinstance(value, bool):
        return MetadataRow(name, {None: "empty", True: "yes", False: "no"}[value])
    return MetadataRow(name, "text", value) if isinstance(value, str) else MetadataRow(name, "number", json.dumps(value))


def rows_read(names: Sequence[str], kinds: Sequence[str], values: Sequence[str]) -> list[MetadataRow]:
    """The rows as they were sent."""
    known = {kind for kind, _label in KINDS}
    return [
        MetadataRow(name.strip(), kind if kind in known else "text", value) for name, kind, value in zip(names, kinds, values, strict=False)
    ]


def metadata_of(rows: Sequence[MetadataRow]) -> dict[str, Any] | None:
    """The metadata the rows say, empty rows left out; None when some row is wrong, which then carries its `error`."""
    found: dict[str, Any] = {}
    for row in rows:
        if not row.name:
            row.error = _("Give it a name, or clear the value.") if row.value.strip() else ""
            continue
        if row.name in found:
            row.error = _("This name is used twice.")
            continue
        if row.kind in _FIXED:
            found[row.name] = _FIXED[row.kind]
        elif row.kind == "text":
            found[row.name] = row.value.replace("\r\n", "\n")
        else:
            number = _number(row.value)
            row.error = _("Write a number, such as 12 or 3.5.") if number is None else ""
            found[row.name] = number
    return None if any(row.error for row in rows) else found


def _number(raw: str) -> int | float | None:
    text = raw.strip()
    try:
        value: int | float = int(text)
    except ValueError:
        try:
            value = float(text)
        except ValueError:
            return None
    return value if math.isfinite(value) and len(text) <= 40 else None
