"""What changed between two versions of a page: by lines, and within a changed line by words."""

from __future__ import annotations

import difflib
from typing import Any

from apps.portal.reader.diffing import word_diff

CONTEXT = 3
MOST = 20_000  # lines; beyond it only whole texts are compared


def line_diff(old: str, new: str) -> list[dict[str, Any]]:
    """Lines of `components/diff.html`: what turns `old` into `new`, with a few lines around each change; empty when nothing changed."""
    if old == new:
        return []
    before, after = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(None, before[:MOST], after[:MOST], autojunk=False)
    lines: list[dict[str, Any]] = []
    last = 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if group[0][1] > last:
            lines.append({"kind": "gap", "old_no": None, "new_no": None, "text": "…"})
        last = group[-1][2]
        for kind, low, high, first, end in group:
            if kind == "equal":
                pairs = enumerate(zip(range(low, high), range(first, end), strict=True))
                lines += [{"kind": "same", "old_no": a + 1, "new_no": b + 1, "text": before[a]} for _place, (a, b) in pairs]
            else:
                lines += _changed(before, after, low, high, first, end)
    if last < len(before):
        lines.append({"kind": "gap", "old_no": None, "new_no": None, "text": "…"})
    return lines


def _changed(before: list[str], after: list[str], low: int, high: int, first: int, end: int) -> list[dict[str, Any]]:
    """Lines that were replaced stand in pairs with the words that differ; the others by themselves."""
    removed, added = [], []
    paired = min(high - low, end - first)
    for place in range(max(high - low, end - first)):
        old = before[low + place] if low + place < high else None
        new = after[first + place] if first + place < end else None
        parts = word_diff(old, new) if place < paired and old is not None and new is not None else None
        if old is not None:
            line: dict[str, Any] = {"kind": "removed", "old_no": low + place + 1, "new_no": None, "text": old}
            removed.append(line | ({"parts": [part for part in parts if part["kind"] != "added"]} if parts else {}))
        if new is not None:
            line = {"kind": "added", "old_no": None, "new_no": first + place + 1, "text": new}
            added.append(line | ({"parts": [part for part in parts if part["kind"] != "removed"]} if parts else {}))
    return removed + added


def fields_diff(old: dict[str, str], new: dict[str, str], names: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each short field that differs: its name and the words that changed."""
    return [
        {"label": label, "words": word_diff(old.get(field, ""), new.get(field, ""))}
        for field, label in names.items()
        if old.get(field, "") != new.get(field, "")
    ]
