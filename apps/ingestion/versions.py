"""What changed in the text from one version of a document to another."""

from __future__ import annotations

import difflib
import gzip
import json
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from apps.common import storage
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import authorize
from apps.knowledge.models import Document, ParseStatus
from apps.knowledge.selectors import version_get

CONTEXT = 3
MOST_LINES = 20_000  # the comparison takes seconds beyond
SHOWN = 5_000
Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """`lines`: {kind: added | removed | same | gap, old_no, new_no, text}, for components/diff.html; `left_out`: how many more."""

    older: int
    newer: int
    added: int
    removed: int
    lines: list[Line]
    left_out: int


def version_diff(*, actor: Actor, document: Document, older: int, newer: int) -> VersionDiff:
    """The lines that changed between two versions, with three lines around each change.

    Raises: NotFound for a version without text (it is being read, could not be read, or never was); InvalidInput for texts too long.
    """
    authorize(actor, "document.read", document)
    old, new = (_text(actor, document, number).splitlines() for number in (older, newer))
    if max(len(old), len(new)) > MOST_LINES:
        raise InvalidInput(_("The texts are too long to be compared here. Download both files."), code="too_long")
    lines: list[Line] = []
    added = removed = 0
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        if lines or group[0][1] or group[0][3]:
            lines.append({"kind": "gap", "old_no": None, "new_no": None, "text": "…"})
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [_line("same", a + n + 1, c + n + 1, text) for n, text in enumerate(old[a:b])]
                continue
            lines += [_line("removed", n, None, text) for n, text in enumerate(old[a:b], a + 1)]
            lines += [_line("added", None, n, text) for n, text in enumerate(new[c:d], c + 1)]
            removed, added = removed + b - a, added + d - c
    return VersionDiff(older, newer, added, removed, lines[:SHOWN], max(0, len(lines) - SHOWN))


def _line(kind: str, old_no: int | None, new_no: int | None, text: str) -> Line:
    return {"kind": kind, "old_no": old_no, "new_no": new_no, "text": text}


def _text(actor: Actor, document: Document, number: int) -> str:
    missing = NotFound(_("Version %(number)d has no text to compare yet.") % {"number": number}, code="no_text")
    if number == document.version:
        if document.parse_status not in (ParseStatus.FINALIZING, ParseStatus.COMPLETED):
            raise missing  # the text there is still that of the version before
        key = document.parsed_path
    else:
        key = version_get(actor=actor, document=document, number=number).parsed_path
    try:
        if not key:
            raise missing
        with storage.read(key) as stored:
            return str(json.loads(gzip.decompress(stored.read()))["text"])
    except FileNotFoundError:
        raise missing from None
