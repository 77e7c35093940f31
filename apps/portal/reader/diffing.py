"""What changed between two texts, as `components/diff.html` shows it."""

from __future__ import annotations

import difflib
import re

#: English by words, Chinese by characters (it has no blanks to cut at); blanks are tokens of their own.
_TOKENS = re.compile(r"\s+|[A-Za-z0-9_]+|.", re.DOTALL)
MAX_PAIRS = 4_000_000  # beyond it a comparison by words takes seconds: by lines then
BRIDGE = 2  # as few unchanged tokens between two changes only make the diff flicker: they join the change


def word_diff(old: str, new: str) -> list[dict[str, str]]:
    """What turns `old` into `new` as running text: dicts of `kind` (same, removed, added) and `text`; joined, they give both texts back."""
    a, b = _TOKENS.findall(old), _TOKENS.findall(new)
    if len(a) * len(b) > MAX_PAIRS:
        a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    parts: list[dict[str, str]] = []
    for same, before, after in _runs(a, b):
        if same:
            parts.append({"kind": "same", "text": before})
            continue
        if before:
            parts.append({"kind": "removed", "text": before})
        if after:
            parts.append({"kind": "added", "text": after})
    return parts


def _runs(a: list[str], b: list[str]) -> list[tuple[bool, str, str]]:
    """(is it unchanged, stretch of the old text, stretch of the new one) in order; changes with next to nothing between them are one."""
    runs: list[tuple[bool, str, str]] = []
    codes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for at, (kind, low, high, first, last) in enumerate(codes):
        before, after = "".join(a[low:high]), "".join(b[first:last])
        inner = 0 < at < len(codes) - 1
        bridge = kind == "equal" and inner and high - low <= BRIDGE and "\n" not in before and not _stands_alone(a[low:high])
        if runs and not runs[-1][0] and (kind != "equal" or bridge):
            runs[-1] = (False, runs[-1][1] + before, runs[-1][2] + after)
        else:
            runs.append((kind == "equal", before, after))
    return runs


def _stands_alone(tokens: list[str]) -> bool:
    """Whether an unchanged stretch is worth seeing by itself: a word of some length is, a blank or a stray character is not."""
    return any(len(token) > 3 and not token.isspace() for token in tokens)
