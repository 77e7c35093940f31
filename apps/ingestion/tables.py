"""Reading the rows of a table file that somebody sent, in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import authorize
from apps.ingestion.plugins.protocol import ParseFailure, ParseRequest
from apps.ingestion.sandbox import Limits, parse_file
from apps.knowledge.reasons import reason_of

LIMITS = Limits(wall_s=60.0, cpu_s=50, memory_bytes=900_000_000, output_bytes=200_000_000)


@dataclass(frozen=True, slots=True)
class TableRead:
    """`kind`: csv, json or sheet. `rows`: every row with its cells; `value`: what a JSON file holds. `encoding`: as a text was read."""

    kind: str
    encoding: str = ""
    rows: list[list[str]] = field(default_factory=list)
    value: Any = None
    delimiter: str = ""
    sheet: str = ""
    sheets: int = 0
    replaced: int = 0


def table_read(*, actor: Actor, path: Path, file_name: str, encoding: str = "") -> TableRead:
    """The rows of a CSV, TSV, JSON or spreadsheet file (first sheet). `encoding` overrides what was guessed of a text.

    Raises: InvalidInput saying why it cannot be read.
    """
    authorize(actor, "table.read")
    try:
        found = parse_file(ParseRequest(path, file_name, encoding=encoding, rows_only=True), limits=LIMITS)
    except ParseFailure as failure:
        if failure.details.get("field") == "encoding":
            words = _("This encoding is not known. Choose another.")
            raise InvalidInput(words, field="encoding", code="unknown_encoding", api_code=1000) from failure
        why = str(reason_of(failure.reason).why)
        raise InvalidInput(why, field="file", code=failure.reason, api_code=1000, cause=failure.message[:300]) from failure
    details = found.details
    return TableRead(
        kind=details["kind"],
        encoding=found.encoding,
        rows=details.get("rows", []),
        value=details.get("value"),
        delimiter=details.get("delimiter", ""),
        sheet=details.get("sheet", ""),
        sheets=details.get("sheets", 0),
        replaced=details.get("replaced", 0),
    )
