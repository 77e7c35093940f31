"""Blocks of a Markdown text with exact character spans, by one pass over its lines.

Flat on purpose: a list or a quote is one block whatever it holds, so nesting costs nothing. Indented code is read as a paragraph,
because Chinese prose is often indented by four spaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from apps.ingestion.plugins.protocol import Block, BlockKind, Position

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+\S|[ \t]*$)")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})([^\n]*)$")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_TABLE_RULER = re.compile(r"[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*$")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_CAPTION = re.compile(
    r"\s*(?:\*\*|__|\*)?(?:表|图|圖|Table|Tab\.|Tabelle|Figure|Fig\.|Abb\.|Abbildung)\s*[\d一二三四五六七八九十A-Z]", re.IGNORECASE
)
_IMAGE = re.compile(r"[ \t]*!\[[^\]\n]*\]\([^)\n]*\)[ \t]*$")


def heading_title(text: str) -> str:
    """The words of a heading block: no `#` marks, no setext underline, no `**` and code ticks, one line."""
    first = text.strip().split("\n", 1)[0]
    bare = first.lstrip("#")
    if bare != first and (not bare or bare[0].isspace()):
        closed = bare.rstrip("#")
        first = closed if closed != bare and (not closed or closed[-1].isspace()) else bare
    return " ".join(first.replace("**", "").replace("`", "").split())


def is_item(line: str) -> bool:
    """Whether a line opens a list item."""
    return _ITEM.match(line) is not None and not _RULE.match(line)


def columns(line: str) -> int:
    """How many cells a GFM table line has; 0 when it has no pipe."""
    pipes = len(_UNESCAPED_PIPE.findall(line))
    body = line.strip()
    return pipes + 1 - body.startswith("|") - (body.endswith("|") and not body.endswith("\\|") and len(body) > 1) if pipes else 0


def is_table_ruler(line: str) -> bool:
    return "-" in line and _TABLE_RULER.match(line) is not None


@dataclass(slots=True)
class _Scanner:
    source: str
    text: str  # the same with a space for each form feed: a page break does not hide the mark that follows it
    lines: list[tuple[int, int]]
    blocks: list[Block]

    def line(self, index: int) -> str:
        start, end = self.lines[index]
        return self.text[start:end]

    def add(self, kind: BlockKind, first: int, last: int, **extra: object) -> None:
        """One block over the lines first..last, both included."""
        position = Position(line=first + 1, line_end=last + 1)
        start = self.lines[first][0]
        while self.source[start] == "\f":
            start += 1
        self.blocks.append(Block(kind, start, self.lines[last][1], position, **extra))  # type: ignore[arg-type]

    def front_matter(self) -> int:
        if not self.lines or self.line(0).rstrip() != "---":
            return 0
        for index in range(1, min(len(self.lines), 200)):
            if self.line(index).rstrip() in ("---", "..."):
                if index == 1 or not any(":" in self.line(i) for i in range(1, index)):
                    return 0
                self.add("note", 0, index)
                return index + 1
        return 0

    def fence(self, at: int) -> int:
        match = _FENCE.match(self.line(at))
        if match is None or (match.group(1)[0] == "`" and "`" in match.group(2)):
            return at
        mark = match.group(1)
        end = at + 1
        while end < len(self.lines):
            closing = self.line(end).strip()
            if len(closing) >= len(mark) and not closing.strip(mark[0]):
                break
            end += 1
        last = min(end, len(self.lines) - 1)
        self.add("code", at, last)
        return last + 1

    def table(self, at: int) -> int:
        if at + 1 >= len(self.lines):
            return at
        head, ruler = self.line(at), self.line(at + 1)
        wide = columns(head)
        if not wide or not is_table_ruler(ruler) or columns(ruler) != wide:
            return at
        rows: list[tuple[int, int, Position]] = []
        end = at + 2
        while end < len(self.lines):
            line = self.line(end)
            if not line.strip() or (not columns(line) and self.opens(end)):
                break
            rows.append((*self.lines[end], Position(line=end + 1, line_end=end + 1)))
            end += 1
        header = self.source[self.lines[at][0] : self.lines[at + 1][1]].lstrip("\f") + "\n"
        self.add("table", at, end - 1, header=header, rows=tuple(rows))
        return end

    def opens(self, at: int) -> bool:
        """Whether this line ends a running paragraph."""
        line = self.line(at)
        mark = line.lstrip()[:1]
        if mark not in "#`~>-*+_0123456789|" and "|" not in line:
            return False
        if _ATX.match(line) or mark == ">" or _RULE.match(line) or (mark in "`~" and _FENCE.match(line)):
            return True
        return is_item(line) and (mark in "-*+" or line.lstrip().startswith(("1.", "1)")))

    def starts_table(self, at: int) -> bool:
        wide = columns(self.line(at))
        return bool(wide and at + 1 < len(self.lines) and is_table_ruler(self.line(at + 1)) and columns(self.line(at + 1)) == wide)

    def quote(self, at: int) -> int:
        end = at
        while end < len(self.lines) and self.line(end).lstrip().startswith(">"):
            end += 1
        self.add("quote", at, end - 1)
        return end

    def listing(self, at: int) -> int:
        """A list runs on over indented lines, further items and single blank lines between them."""
        last, index, fence = at, at + 1, ""
        while index < len(self.lines):
            line = self.line(index)
            body = line.strip()
            if fence:
                last = index
                fence = "" if len(body) >= len(fence) and not body.strip(fence[0]) else fence
            elif not body:
                pass
            elif is_item(line) or line[0] in " \t":
                last = index
                opened = _FENCE.match(line)
                fence = opened.group(1) if opened and line[0] in " \t" else ""
            elif last == index - 1 and not self.opens(index) and not self.starts_table(index):
                last = index  # lazy continuation
            else:
                break
            index += 1
        self.add("list", at, last)
        return last + 1

    def paragraph(self, at: int) -> int:
        end = at + 1
        while end < len(self.lines) and self.line(end).strip():
            underline = _SETEXT.match(self.line(end))
            if underline and end - at <= 3:
                self.add("heading", at, end, level=1 if underline.group(1)[0] == "=" else 2)
                return end + 1
            if self.opens(end) or self.starts_table(end):
                break
            end += 1
        kind: BlockKind = "paragraph"
        if end == at + 1 and _IMAGE.match(self.line(at)):
            kind = "image"
        elif end == at + 1 and len(self.line(at)) <= 200 and _CAPTION.match(self.line(at)):
            kind = "caption"
        self.add(kind, at, end - 1)
        return end

    def run(self) -> None:
        at = self.front_matter()
        while at < len(self.lines):
            line = self.line(at)
            body = line.lstrip()
            if not body.strip() or (body[0] in "*-_" and _RULE.match(line)):
                at += 1
                continue
            heading = _ATX.match(line) if body[0] == "#" else None
            if heading:
                self.add("heading", at, at, level=len(heading.group(1)))
                at += 1
                continue
            after = at
            if body[0] in "`~":
                after = self.fence(at)
            elif body[0] == ">":
                after = self.quote(at)
            elif is_item(line) and len(line) - len(body) < 4:
                after = self.listing(at)
            if after == at and "|" in line:
                after = self.table(at)
            at = after if after > at else self.paragraph(at)


def line_spans(text: str) -> list[tuple[int, int]]:
    """[start, end) of every line without its newline. Lines end at \\n only: other breaks (form feed, U+2028) are text."""
    spans: list[tuple[int, int]] = []
    start = 0
    for piece in text.split("\n"):
        spans.append((start, start + len(piece)))
        start += len(piece) + 1
    return spans


def markdown_blocks(text: str) -> list[Block]:
    """Headings, paragraphs, lists, tables, code, quotes, captions and images of a Markdown text, in order, with lines as positions.

    Shapes: spans are half-open character offsets into `text`, without the newline that ends the block; thematic breaks are no block.
    """
    scanner = _Scanner(text, text.replace("\f", " "), line_spans(text), [])
    scanner.run()
    return scanner.blocks
