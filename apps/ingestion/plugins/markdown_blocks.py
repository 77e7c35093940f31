"""Markdown into blocks: headings, paragraphs, lists, tables, code, quotes, each with its lines.

Marks inside a sentence (emphasis, links, code ticks) are taken off, because a phrase must be found whether or not half of it is bold.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from apps.ingestion.plugins.builder import DocumentBuilder
from apps.ingestion.plugins.protocol import BlockKind, Position

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_RULE = re.compile(r"^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_LIST = re.compile(r"^(\s*)(?:[-*+]|\d{1,9}[.)])(?:\s+|$)")
_QUOTE = re.compile(r"^ {0,3}>")
_DELIMITER = re.compile(r"^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]^]+\]:\s+\S+")
_FOOTNOTE = re.compile(r"^ {0,3}\[\^([^\]]+)\]:\s*(.*)$")

_CODE_SPAN = re.compile(r"(?<!`)(`{1,8})(?!`)(.{1,4000}?)(?<!`)\1(?!`)", re.S)
_IMAGE = re.compile(
    r"!\[((?:\\.|[^\[\]\\]){0,500})\]\(\s*(<[^<>\n]{0,4000}>|(?:[^\s()]|\([^\s()]*\))*)(?:\s+[\"'(][^\"')]{0,1000}[\"')])?\s*\)"
)
_LINK = re.compile(
    r"\[((?:\\.|[^\[\]\\]){0,500})\]\(\s*(<[^<>\n]{0,4000}>|(?:[^\s()]|\([^\s()]*\))*)(?:\s+[\"'(][^\"')]{0,1000}[\"')])?\s*\)"
)
_REF_LINK = re.compile(r"\[((?:\\.|[^\[\]\\]){1,500})\]\[[^\[\]]{0,200}\]")
_AUTO = re.compile(r"<((?:https?|mailto):[^\s<>]{1,2000}|[\w.+-]+@[\w.-]+)>", re.I)
_TAG = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]{0,4000})?/?>|<!--.*?-->", re.S)
_STRONG = re.compile(r"(\*\*\*|\*\*|~~|==)(?=\S)(.{1,1000}?)(?<=\S)\1", re.S)
_EM = re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*\n]{1,500}?)(?<=[^\s*])\*(?![\w*])")
_UNDER = re.compile(r"(?<![\w\\])(_{1,3})(?=\S)([^\n]{1,500}?)(?<=\S)\1(?!\w|\.\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_DROPPED = re.compile(r"<(script|style|noscript|template)\b.*?(?:</\1\s*>|\Z)", re.S | re.I)


@dataclass(slots=True)
class Context:
    """Where blocks stand and what becomes of links and pictures met in them."""

    place: Callable[[int, int], Position] = lambda first, last: Position(line=first, line_end=last)
    on_image: Callable[[str, str], None] | None = None  # (address, alternative text)
    links: list[str] = field(default_factory=list)
    base_level: int = 0


def add_markdown(builder: DocumentBuilder, text: str, context: Context | None = None, *, first_line: int = 1) -> None:
    """Append what `text` (Markdown) holds to the builder, block by block."""
    _Scanner(builder, text.split("\n"), context or Context(), first_line).run()


def plain_inline(text: str, context: Context | None = None) -> str:
    """The words of a line or paragraph without Markdown marks; code keeps its characters."""
    if not any(c in text for c in "`*_~=[<\\&!"):
        return text
    kept: list[str] = []

    def hold(value: str) -> str:
        kept.append(value)
        return f"\x00{len(kept) - 1}\x00"

    text = _CODE_SPAN.sub(lambda m: hold(m[2].strip() or m[2]), text.replace("\x00", ""))
    text = _ESCAPE.sub(lambda m: hold(m[1]), text)
    text = _IMAGE.sub(lambda m: _picture(m, context), text)
    for _ in range(2):  # a picture inside a link leaves a link behind
        text = _LINK.sub(lambda m: _link(m, context), text)
    text = _REF_LINK.sub(r"\1", text)
    text = _AUTO.sub(lambda m: hold(m[1]), text)
    text = _TAG.sub("", re.sub(r"<br\s*/?>", "\n", text, flags=re.I)) if "<" in text else text
    for _ in range(2):
        text = _STRONG.sub(r"\2", text)
    text = _EM.sub(r"\1", text)
    text = _UNDER.sub(r"\2", text)
    text = html.unescape(text) if "&" in text else text
    while "\x00" in text:
        text = re.sub(r"\x00(\d+)\x00", lambda m: kept[int(m[1])], text)
    return text


def _picture(found: re.Match[str], context: Context | None) -> str:
    alt = found[1]
    if context is not None and context.on_image is not None:
        context.on_image(found[2].strip("<>"), alt)
    return alt


def _link(found: re.Match[str], context: Context | None) -> str:
    address = found[2].strip("<>")
    if context is not None and len(context.links) < 500 and re.match(r"(?:https?|mailto):", address, re.I):
        context.links.append(address[:2000])
    return found[1] or ""


def split_row(line: str) -> list[str]:
    """The cells of a GFM row; `\\|` does not divide."""
    line = line.strip()
    line = line[1:] if line.startswith("|") else line
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]


class _Scanner:
    def __init__(self, builder: DocumentBuilder, lines: list[str], context: Context, first_line: int) -> None:
        self.builder, self.lines, self.context, self.first = builder, lines, context, first_line
        self.at = 0

    def place(self, start: int, end: int) -> Position:
        return self.context.place(start + self.first, end - 1 + self.first)

    def add(self, kind: BlockKind, text: str, start: int, level: int = 0) -> None:
        if kind == "heading":
            level = min(level + self.context.base_level, 6)
        self.builder.add(kind, text, self.place(start, max(self.at, start + 1)), level=level)

    def run(self) -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                self.at += 1
            elif found := _FENCE.match(line):
                self.fence(found[1])
            elif found := _ATX.match(line):
                self.at += 1
                self.add("heading", plain_inline(found[2] or "", self.context), self.at - 1, len(found[1]))
            elif _RULE.match(line) or _REFERENCE.match(line):
                self.at += 1
            elif self.is_table():
                self.table()
            elif _QUOTE.match(line):
                self.quote()
            elif found := _FOOTNOTE.match(line):
                start = self.at
                self.at += 1
                self.add("footnote", f"[{found[1]}] {plain_inline(found[2], self.context)}", start)
            elif _LIST.match(line):
                self.list_items()
            elif line.startswith(("    ", "\t")):
                self.indented()
            else:
                self.paragraph()

    def fence(self, mark: str) -> None:
        start = self.at
        closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        self.at += 1
        while self.at < len(self.lines) and not closing.match(self.lines[self.at]):
            self.at += 1
        body = self.lines[start + 1 : self.at]
        self.at += 1
        if any(line.strip() for line in body):
            self.at = min(self.at, len(self.lines))
            self.add("code", "\n".join([self.lines[start].strip(), *body, mark]), start)

    def indented(self) -> None:
        start = self.at
        while self.at < len(self.lines) and (self.lines[self.at].startswith(("    ", "\t")) or not self.lines[self.at].strip()):
            self.at += 1
        body = [line[4:] if line.startswith("    ") else line.removeprefix("\t") for line in self.lines[start : self.at]]
        self.add("code", "```\n" + "\n".join(body).strip("\n") + "\n```", start)

    def is_table(self) -> bool:
        if self.at + 1 >= len(self.lines) or "|" not in self.lines[self.at]:
            return False
        ruler = self.lines[self.at + 1]
        if "-" not in ruler or not _DELIMITER.match(ruler):
            return False
        return len(split_row(self.lines[self.at])) == len(split_row(ruler))

    def table(self) -> None:
        start = self.at
        header = [plain_inline(c.replace("\\|", "|"), self.context) for c in split_row(self.lines[start])]
        self.at += 2
        rows = []
        while self.at < len(self.lines) and "|" in self.lines[self.at] and self.lines[self.at].strip():
            cells = [plain_inline(c.replace("\\|", "|"), self.context) for c in split_row(self.lines[self.at])]
            rows.append((cells[: max(len(header), 1)] if len(cells) > len(header) else cells, self.place(self.at, self.at + 1)))
            self.at += 1
        if not any(header) and rows and self.context.place(1, 1).line is None:
            header = list(rows.pop(0)[0])  # a table without header cells, as HTML has them
        self.builder.table(header, rows, self.place(start, self.at))

    def quote(self) -> None:
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at].strip() and (_QUOTE.match(self.lines[self.at]) or self.at == start):
            self.at += 1
        body = [plain_inline(re.sub(r"^ {0,3}>+ ?", "", line), self.context) for line in self.lines[start : self.at]]
        self.add("quote", "\n".join(f"> {line}".rstrip() for line in body), start)

    def starts_block(self, line: str) -> bool:
        return bool(_FENCE.match(line) or _ATX.match(line) or _QUOTE.match(line) or _RULE.match(line) or self.is_table())

    def list_items(self) -> None:
        start, out = self.at, []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                following = next((x for x in self.lines[self.at + 1 : self.at + 3] if x.strip()), "")
                if not (_LIST.match(following) or following.startswith(("  ", "\t"))):
                    break
                self.at += 1
                continue
            marked = _LIST.match(line)
            if (
                self.at > start
                and not marked
                and (not line[:1].isspace())
                and (self.starts_block(line) or not self.lines[self.at - 1].strip())
            ):
                break
            if _FENCE.match(line.strip()) and not marked:
                break
            if marked:
                mark = line[len(marked[1]) : marked.end()].strip()
                mark = "-" if mark in "*+" else mark
                out.append(f"{marked[1].replace(chr(9), '  ')}{mark} {plain_inline(line[marked.end() :], self.context)}".rstrip())
            else:
                out.append(plain_inline(line.rstrip(), self.context))
            self.at += 1
        self.at = max(self.at, start + 1)
        self.add("list", "\n".join(out), start)

    def paragraph(self) -> None:
        start = self.at
        self.at += 1
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                break
            underline = re.match(r"^ {0,3}(=+|-+)\s*$", line)
            if underline:
                text = " ".join(self.lines[start : self.at])
                self.at += 1
                self.add("heading", plain_inline(text.strip(), self.context), start, 1 if underline[1][0] == "=" else 2)
                return
            if self.starts_block(line) or (_LIST.match(line) and not re.match(r"^\s*(?!1[.)])\d", line)):
                break
            self.at += 1
        text = "\n".join(line.strip().removesuffix("\\") for line in self.lines[start : self.at])
        self.add("paragraph", plain_inline(text, self.context), start)


def without_active_parts(text: str) -> str:
    """The text with scripts and styles blanked out, line count kept so that positions stay right."""
    return _DROPPED.sub(lambda m: "\n" * m[0].count("\n"), text)
