"""A part of a parsed text as HTML in which every shown character knows where it stands and which passages it belongs to.

The text is plain but for the marks of its blocks (`#`, `|`, `-`, `>`, fences), so it is drawn block by block from exact offsets instead of
being read as Markdown again: a `*` or `_` of the original stays what it was, and what is highlighted is exactly the passage's span.

A stretch of text is `<span class="run" data-c="3 4" data-s="120" data-e="164">`: the passages it belongs to and its span in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _

from apps.knowledge.selectors import REFERENCE
from apps.knowledge.selectors.passages import PassageSpan
from apps.portal.reader.pictures import Pictures
from apps.portal.reader.source import Part, Piece

_ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(?:\s+|$)")
_CELLS = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d+)")
_ESCAPED = re.compile(r"\\([|\\])")
_PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
Span = tuple[int, int]


@dataclass(slots=True)
class Section:
    """What stands on one page, slide or sheet; `label` is empty where the original has no such thing."""

    kind: str
    label: str
    blocks: list[Any] = field(default_factory=list)


class Marker:
    """Cuts a span of the text into runs at the borders of passages and of matched words."""

    def __init__(
        self, text: str, passages: Sequence[PassageSpan], words: Sequence[Span], chosen: int | None, pictures: Pictures | None = None
    ) -> None:
        self.text = text
        self.pictures = pictures or {}
        self.passages = sorted(passages, key=lambda passage: passage.start)
        self.words = sorted(words)
        self.chosen = chosen
        self.has_anchor = False
        edges = {edge for passage in passages for edge in (passage.start, passage.end)}
        self.edges = sorted(edges | {edge for word in words for edge in word})
        self.word_starts = [word[0] for word in self.words]

    def draw(self, start: int, end: int) -> Any:
        """Text [start, end) as runs."""
        cuts = [start, *(edge for edge in self.edges[bisect_right(self.edges, start) :] if edge < end), end]
        return format_html_join("", "{}", ((self._run(low, high),) for low, high in zip(cuts, cuts[1:], strict=False) if high > low))

    def _run(self, start: int, end: int) -> Any:
        text = self.text[start:end]
        return self.wrap(start, end, format_html("<mark>{}</mark>", text) if self._is_word(start, end) else text)

    def wrap(self, start: int, end: int, shown: Any) -> Any:
        """What stands for text [start, end) as a run."""
        inside = [passage.index for passage in self.passages if passage.start <= start and end <= passage.end]
        if not inside:
            return format_html('<span class="run" data-s="{}" data-e="{}">{}</span>', str(start), str(end), shown)
        names = " ".join(map(str, inside))
        if self.chosen in inside:
            anchor = "" if self.has_anchor else format_html(' id="{}"', "here")
            self.has_anchor = True
            return format_html(
                '<span class="run is-on" data-c="{}" data-s="{}" data-e="{}"{}>{}</span>', names, str(start), str(end), anchor, shown
            )
        return format_html('<span class="run" data-c="{}" data-s="{}" data-e="{}">{}</span>', names, str(start), str(end), shown)

    def _is_word(self, start: int, end: int) -> bool:
        at = bisect_right(self.word_starts, start) - 1
        return at >= 0 and self.words[at][0] <= start and end <= self.words[at][1]

    def cell(self, start: int, end: int) -> Any:
        """A table cell: what GFM escapes is shown without its backslash."""
        parts, at = [], start
        for found in _ESCAPED.finditer(self.text, start, end):
            parts.append(self.draw(at, found.start()))
            at = found.start() + 1
            parts.append(self.draw(at, found.end()))
            at = found.end()
        parts.append(self.draw(at, end))
        return format_html_join("", "{}", ((part,) for part in parts))


def draw_part(text: str, part: Part, marker: Marker, *, numbered: bool = False) -> list[Section]:
    """The sections of a part. `numbered`: lines carry their numbers, where the text has one line for each line of the original."""
    sections = []
    for _key, group in groupby(part.pieces, key=lambda piece: piece.key):
        pieces = list(group)
        kind, label = _head(pieces[0])
        sections.append(Section(kind, label, [_block(text, piece, marker, numbered) for piece in pieces]))
    return sections


def _head(piece: Piece) -> tuple[str, str]:
    position = piece.position
    if "page" in position:
        return "page", _("Page %(from)s") % {"from": position["page"]}
    if "slide" in position:
        return "slide", _("Slide %(from)s") % {"from": position["slide"]}
    if "sheet" in position:
        return "sheet", ""
    return "text", str(position.get("part") or "")


def _block(text: str, piece: Piece, marker: Marker, numbered: bool) -> Any:
    if piece.kind == "image" and (found := REFERENCE.fullmatch(text, piece.start, piece.end)):
        return _figure(piece, marker, found[2], found[1])
    if piece.kind == "table":
        return _table(text, piece, marker, numbered)
    if numbered and piece.first_line is not None:
        return _numbered(text, piece, marker)
    if piece.kind == "heading" and piece.start == piece.block_start:
        marks = re.compile(r"#{1,6}\s+").match(text, piece.start, piece.end)
        start = marks.end() if marks else piece.start
        level = str(min(6, (piece.level or 1) + 1))
        return format_html('<h{} class="doc-block">{}</h{}>', level, marker.draw(start, piece.end), level)
    if piece.kind == "list":
        return _list(text, piece, marker)
    if piece.kind == "code":
        return format_html('<pre class="doc-block doc-code">{}</pre>', _joined(marker, _code_lines(text, piece)))
    if piece.kind in ("quote", "note"):
        lines = [(start + len(_quote_mark(text, start, end)), end) for start, end in _lines(text, piece)]
        label = format_html('<span class="doc-note__label">{}</span>', _("Notes")) if piece.kind == "note" else ""
        return format_html('<blockquote class="doc-block doc-{}">{}{}</blockquote>', piece.kind, label, _joined(marker, lines))
    return format_html('<p class="doc-block doc-{}">{}</p>', piece.kind, marker.draw(piece.start, piece.end))


def _figure(piece: Piece, marker: Marker, url: str, words: str) -> Any:
    """A picture where it stands; what is not there any more leaves its words."""
    picture = marker.pictures.get(url)
    if picture is None:
        return format_html(
            '<p class="doc-block doc-image">{}</p>', marker.wrap(piece.start, piece.end, words or _("A picture that is gone"))
        )
    size = format_html(' width="{}" height="{}"', str(picture.width), str(picture.height)) if picture.width and picture.height else ""
    image = format_html('<img src="{}" alt="{}" loading="lazy" decoding="async"{}>', picture.src, picture.alt, size)
    caption = format_html("<figcaption>{}</figcaption>", picture.words) if picture.words and picture.words != words else ""
    return format_html('<figure class="doc-block doc-figure">{}{}</figure>', marker.wrap(piece.start, piece.end, image), caption)


def _lines(text: str, piece: Piece) -> Iterator[Span]:
    at = piece.start
    while at < piece.end:
        stop = text.find("\n", at, piece.end)
        stop = piece.end if stop < 0 else stop
        yield at, stop
        at = stop + 1


def _joined(marker: Marker, lines: Sequence[Span]) -> Any:
    """Lines with their breaks; the break belongs to the run before it, so that a highlight has no holes."""
    whole: list[Any] = []
    for at, (start, end) in enumerate(lines):
        whole.append(marker.draw(start, end) if end > start else "")
        if at + 1 < len(lines):
            whole.append("\n")
    return format_html_join("", "{}", ((each,) for each in whole))


def _quote_mark(text: str, start: int, end: int) -> str:
    found = re.compile(r" {0,3}>+ ?").match(text, start, end)
    return found[0] if found else ""


def _code_lines(text: str, piece: Piece) -> list[Span]:
    lines = list(_lines(text, piece))
    fence = re.compile(r"\s*(`{3,}|~{3,})")
    if lines and fence.match(text, *lines[0]):
        lines = lines[1:]
    if lines and fence.match(text, *lines[-1]):
        lines = lines[:-1]
    return lines


def _list(text: str, piece: Piece, marker: Marker) -> Any:
    items: list[tuple[int, str, list[Span]]] = []
    for start, end in _lines(text, piece):
        found = _ITEM.match(text, start, end)
        if found:
            mark = "•" if found[2] in "-*+" else found[2]
            items.append((min(5, len(found[1].expandtabs(2)) // 2), mark, [(found.end(), end)]))
        elif items:
            items[-1][2].append((start, end))
        else:
            items.append((0, "", [(start, end)]))
    drawn = format_html_join(
        "",
        '<li class="doc-item doc-item--{}"><span class="doc-item__mark" aria-hidden="true">{}</span><span>{}</span></li>',
        ((str(depth), mark, _joined(marker, lines)) for depth, mark, lines in items),
    )
    return format_html('<ul class="doc-block doc-list">{}</ul>', drawn)


def _numbered(text: str, piece: Piece, marker: Marker) -> Any:
    first = piece.first_line or 1
    rows = format_html_join(
        "",
        '<div class="doc-line"><span class="doc-line__no">{}</span><span class="doc-line__text">{}</span></div>',
        ((str(number), marker.draw(start, end)) for number, (start, end) in enumerate(_lines(text, piece), first)),
    )
    return format_html('<div class="doc-block doc-lines">{}</div>', rows)


def cells_of(text: str, start: int, end: int) -> list[Span]:
    """The spans of the cells of a GFM row, without the blanks around them; `\\|` does not divide."""
    low = start + 1 if text.startswith("|", start) else start
    bars = [found.end() - 1 for found in _PIPE.finditer(text, low, end)]
    if not bars or text[bars[-1] + 1 : end].strip():
        bars.append(end)
    spans, at = [], low
    for bar in bars:
        left, right = at, bar
        while left < right and text[left].isspace():
            left += 1
        while right > left and text[right - 1].isspace():
            right -= 1
        spans.append((left, right))
        at = bar + 1
    return spans


def _table(text: str, piece: Piece, marker: Marker, numbered: bool) -> Any:
    header = cells_of(text, piece.block_start, text.find("\n", piece.block_start, piece.header_end) if piece.header_end else piece.end)
    is_grid, has_lines = "sheet" in piece.position, numbered and any("line" in row[2] for row in piece.rows)
    head: list[Any] = []
    if is_grid:
        first = _first_column(piece)
        letters = format_html_join(
            "", '<th class="grid__letter" scope="col">{}</th>', ((_letters(first + at),) for at in range(len(header)))
        )
        head.append(format_html('<tr class="grid__letters"><td class="grid__no"></td>{}</tr>', letters))
    own = piece.start == piece.block_start
    names = format_html_join(
        "", '<th scope="col">{}</th>', ((marker.cell(*span) if own else _ESCAPED.sub(r"\1", text[slice(*span)]),) for span in header)
    )
    number = format_html('<td class="grid__no">{}</td>', _header_number(piece)) if is_grid or has_lines else ""
    head.append(format_html("<tr>{}{}</tr>", number, names))
    body = format_html_join("", "{}", ((_row(text, row, marker, numbered=is_grid or has_lines),) for row in piece.rows))
    return format_html(
        '<div class="doc-block table-scroll" tabindex="0" role="region" aria-label="{}">'
        '<table class="grid"><thead>{}</thead><tbody>{}</tbody></table></div>',
        _("Table"),
        format_html_join("", "{}", ((each,) for each in head)),
        body,
    )


def _row(text: str, row: tuple[int, int, dict[str, Any]], marker: Marker, *, numbered: bool) -> Any:
    cells = format_html_join(
        "", "<td>{}</td>", ((marker.cell(*span) if span[1] > span[0] else "",) for span in cells_of(text, row[0], row[1]))
    )
    return format_html("<tr>{}{}</tr>", format_html('<td class="grid__no">{}</td>', _row_number(row[2])) if numbered else "", cells)


def _row_number(position: dict[str, Any]) -> str:
    found = _CELLS.match(str(position.get("cells") or ""))
    return found[2] if found else str(position.get("line") or "")


def _header_number(piece: Piece) -> str:
    """The row of the sheet that names the columns: the table's first when it is not already a row of the body."""
    top = _row_number(piece.position)
    return "" if piece.rows and piece.start == piece.block_start and _row_number(piece.rows[0][2]) == top else top


def _first_column(piece: Piece) -> int:
    found = _CELLS.match(str(piece.position.get("cells") or ""))
    number = 0
    for letter in found[1].upper() if found else "A":
        number = number * 26 + ord(letter) - 64
    return number


def _letters(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
