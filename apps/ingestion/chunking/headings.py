"""Where sections begin: heading blocks, and lines that are headings by their wording (`第三章`, `1.2 Scope`, `Kapitel 4`)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.ingestion.chunking.markdown_blocks import heading_title, line_spans
from apps.ingestion.plugins.protocol import Block

_CN = "0-9０-９一二三四五六七八九十百千零〇两"
_ZH = re.compile(rf"第\s*[{_CN}]+(?:[.．][0-9]+)*\s*([编篇部卷章节節条條款])(?=\s|[:：、，,.．]|$|[^\W\d_])")
_ZH_LIST = re.compile(r"(?:([一二三四五六七八九十]{1,3})[、．]|[（(]([一二三四五六七八九十]{1,3})[）)])\s*\S")
_ZH_APPENDIX = re.compile(r"附[录錄件]\s*[A-Z0-9一二三四五六七八九十]{0,3}(?=\s|[:：]|$)")
_EN = re.compile(r"(PART|CHAPTER|SECTION|ARTICLE|APPENDIX)\s+(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])(?=[\s.:)—-]|$)", re.IGNORECASE)
_DE = re.compile(
    r"(?:(TEIL|KAPITEL|ABSCHNITT|ARTIKEL|ANHANG)\s+(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])|(§+)\s*\d+[a-z]?)(?=[\s.:)—-]|$)", re.IGNORECASE
)
_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,5})([.)、．]?)(?:\s+|(?<=[、．])|(?<=\d)(?=[\u3400-\u9fff]))(?=[^\W\d_]|[\"“(（《])")
_RULE = re.compile(r"(?:([-=*_~─━—═])(?:[ \t]*\1){2,})$")
_CAPS = re.compile(r"[A-ZÀ-ÖØ-Þ][A-ZÀ-ÖØ-Þ0-9 ,.&'()/:-]{3,59}$")
_WORD_LEVELS = {
    "编": 1, "篇": 1, "部": 1, "卷": 1, "章": 2, "节": 3, "節": 3, "条": 4, "條": 4, "款": 5,
    "part": 1, "teil": 1, "chapter": 2, "kapitel": 2, "appendix": 2, "anhang": 2, "section": 3, "abschnitt": 3, "article": 4, "artikel": 4,
}  # fmt: skip
_CLOSING = "。！？!?；;，,"
_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class Mark:
    """A place where a section begins: `level` 1 is outermost; `title` may be empty (rules, form feeds); `kind` says by what it was seen."""

    start: int
    end: int
    level: int
    title: str
    kind: str  # heading zh en de numbered caps rule feed


def heading_marks(text: str, blocks: Sequence[Block]) -> list[Mark]:
    """One mark for every heading block."""
    return [
        Mark(block.start, block.end, block.level or 1, heading_title(text[block.start : block.end]), "heading")
        for block in blocks
        if block.kind == "heading"
    ]


def _label(line: str, end: int) -> str:
    """The whole line when it is short enough to be a title, else its number only (`第三条`)."""
    return " ".join(line.split()) if len(line) <= _LONGEST_TITLE else " ".join(line[:end].split())


def _chapter(line: str, start: int, stop: int) -> Mark | None:
    match = _ZH.match(line)
    if match and (match.group(1) in "条條" or (len(line) <= _LONGEST_TITLE and line[-1] not in _CLOSING)):
        return Mark(start, stop, _WORD_LEVELS[match.group(1)], _label(line, match.end()), "zh")
    if len(line) > _LONGEST_TITLE or line[-1] in _CLOSING:
        return None
    match = _ZH_APPENDIX.match(line)
    if match:
        return Mark(start, stop, 2, _label(line, match.end()), "zh")
    match = _EN.match(line)
    if match:
        return Mark(start, stop, _WORD_LEVELS[match.group(1).lower()], _label(line, match.end()), "en")
    match = _DE.match(line)
    if match:
        return Mark(start, stop, _WORD_LEVELS[match.group(1).lower()] if match.group(1) else 4, _label(line, match.end()), "de")
    return None


def _numbered(line: str, start: int, stop: int) -> Mark | None:
    if len(line) > _LONGEST_TITLE or line[-1] in _CLOSING + ".":
        return None
    match = _ZH_LIST.match(line)
    if match:
        return Mark(start, stop, 6 if match.group(1) else 7, _label(line, match.end()), "numbered")
    match = _NUMBERED.match(line)
    if match and (match.group(2) or "." in match.group(1) or len(line) <= 50):
        return Mark(start, stop, 7 + match.group(1).count("."), _label(line, match.end()), "numbered")
    return None


def _line_mark(raw: str, start: int) -> Mark | None:
    line = raw.strip()
    if len(line) < 2 or (len(line) > _LONGEST_TITLE and line[0] != "第"):
        return None
    start += len(raw) - len(raw.lstrip())
    stop = start + len(line)
    first = line[0]
    if first in "第附PpCcSsAaTtKk§":
        found = _chapter(line, start, stop)
        if found:
            return found
    if first.isdigit() or first in "一二三四五六七八九十（(":
        return _numbered(line, start, stop)
    if first in "-=*_~─━—═" and _RULE.match(line):
        return Mark(start, stop, 0, "", "rule")
    if first.isupper() and _CAPS.match(line) and line.isupper() and sum(map(str.isalpha, line)) >= 4:
        return Mark(start, stop, 5, _label(line, len(line)), "caps")
    return None


def _drop_enumerations(found: list[Mark], text: str) -> list[Mark]:
    """Without numbered lines that stand directly below each other: those are lists, not sections."""
    kept: list[Mark] = []
    for index, mark in enumerate(found):
        if mark.kind == "numbered":
            after = found[index + 1] if index + 1 < len(found) else None
            before = found[index - 1] if index else None
            joined_after = after and after.kind == "numbered" and after.level == mark.level and not text[mark.end : after.start].strip()
            joined_before = (
                before and before.kind == "numbered" and before.level == mark.level and not text[before.end : mark.start].strip()
            )
            if joined_after or joined_before:
                continue
        kept.append(mark)
    return kept


def text_marks(text: str, blocks: Sequence[Block]) -> list[Mark]:
    """Section starts seen in the wording of single lines, outside of tables, code and heading blocks."""
    closed = [(block.start, block.end) for block in blocks if block.kind in ("table", "code", "heading", "note")]
    starts = [start for start, _ in closed]
    found: list[Mark] = []
    for start, end in line_spans(text):
        raw = text[start:end]
        if not raw or raw.isspace():
            continue
        at = bisect_right(starts, start) - 1
        if at >= 0 and closed[at][1] > start:
            continue
        mark = _line_mark(raw, start)
        if mark:
            found.append(mark)
    return _drop_enumerations(found, text)


def form_feeds(text: str, blocks: Sequence[Block]) -> list[Mark]:
    """One mark behind every form feed that stands outside of tables and code."""
    closed = [block for block in blocks if block.kind in ("table", "code")]
    starts = [block.start for block in closed]
    found = []
    for match in re.finditer("\f", text):
        at = bisect_right(starts, match.start()) - 1
        if at < 0 or closed[at].end <= match.start():
            found.append(Mark(match.end(), match.end(), 0, "", "feed"))
    return found


def merge_marks(*groups: Iterable[Mark]) -> list[Mark]:
    """All marks by place; of two at one place the earlier group's stays."""
    seen: dict[int, Mark] = {}
    for group in groups:
        for mark in group:
            seen.setdefault(mark.start, mark)
    return [seen[start] for start in sorted(seen)]


@dataclass(frozen=True, slots=True)
class Outline:
    """Marks with the path of titles in force from each of them on."""

    marks: tuple[Mark, ...]
    paths: tuple[tuple[str, ...], ...]
    bare: tuple[bool, ...]  # no words of its own before the next mark
    starts: tuple[int, ...]

    @classmethod
    def build(cls, text: str, found: Sequence[Mark]) -> Outline:
        titled = [mark for mark in found if mark.title]
        stack: list[Mark] = []
        paths: list[tuple[str, ...]] = []
        for mark in titled:
            while stack and stack[-1].level >= mark.level:
                stack.pop()
            stack.append(mark)
            paths.append(tuple(item.title for item in stack))
        ends = [mark.start for mark in titled[1:]] + [len(text)] * bool(titled)
        bare = tuple(not text[mark.end : end].strip() for mark, end in zip(titled, ends, strict=True))
        return cls(tuple(titled), tuple(paths), bare, tuple(mark.start for mark in titled))

    def path(self, start: int, end: int) -> tuple[str, ...]:
        """Titles above everything in [start, end): what all its sections share. `start` is the first non-blank character."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, end - 1) - 1
        if last < 0:
            return ()
        members = [at for at in range(max(first, 0), last + 1) if not self.bare[at] or at == last]
        if first < 0:
            return ()
        shared = self.paths[members[0]]
        for at in members[1:]:
            other = self.paths[at]
            size = 0
            while size < min(len(shared), len(other)) and shared[size] == other[size]:
                size += 1
            shared = shared[:size]
        return shared
