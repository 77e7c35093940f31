"""Builds the one text of a document together with its blocks, so that every span is right by construction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from apps.ingestion.plugins.protocol import Block, BlockKind, ExtractedImage, ParsedDocument, ParseFailure, ParseWarning, Position

#: Never wanted in a text: control characters, zero-width marks that split words, and the directional overrides that disguise names.
_UNWANTED = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff]"
)
_BREAKS = re.compile("\r\n?|\x0c|\x85|\u2028|\u2029")
_SURROGATES = re.compile("[\ud800-\udfff]")

MAX_IMAGES = 300
MAX_IMAGE_BYTES = 80_000_000
MAX_TABLE_COLUMNS = 1000


def clean_text(text: str) -> str:
    """Gives the text with plain line breaks and without characters that nobody typed."""
    text = _UNWANTED.sub("", _BREAKS.sub("\n", text))
    return _SURROGATES.sub("\ufffd", text)


def clean_cell(text: str) -> str:
    """Gives a table cell as one line that a GFM row can hold."""
    return " ".join(clean_text(text).replace("\\", "\\\\").split()).replace("|", "\\|") if "\\" in text or "|" in text else one_line(text)


def one_line(text: str) -> str:
    return " ".join(clean_text(text).split())


def gfm_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


class DocumentBuilder:
    """Appends blocks in reading order and keeps their offsets; `finish()` gives the document.

    Raises: ParseFailure("too_large") as soon as the text would pass `max_chars`.
    """

    def __init__(self, max_chars: int) -> None:
        self.max_chars = max_chars
        self.blocks: list[Block] = []
        self.images: list[ExtractedImage] = []
        self.warnings: dict[str, ParseWarning] = {}
        self._parts: list[str] = []
        self._length = 0
        self._image_bytes = 0

    def __len__(self) -> int:
        return self._length

    def _append(self, text: str, gap: str) -> int:
        if self._length:
            text = gap + text
        else:
            gap = ""
        start = self._length + len(gap)
        self._length += len(text)
        if self._length > self.max_chars:
            raise ParseFailure("too_large", f"the text is too large: more than {self.max_chars} characters", limit=self.max_chars)
        self._parts.append(text)
        return start

    def add(self, kind: BlockKind, text: str, position: Position | None = None, *, level: int = 0, gap: str = "\n\n") -> Block | None:
        """Append a block and give it back, or None when the text holds nothing. Headings get their `#` marks here."""
        text = clean_text(text).strip("\n").rstrip()
        if kind == "heading":
            level = min(max(level, 1), 6)
            text = one_line(text)
            text = f"{'#' * level} {text}" if text else ""
        if not text.strip():
            return None
        start = self._append(text, gap)
        block = Block(kind, start, self._length, position or Position(), level=level)
        self.blocks.append(block)
        return block

    def heading(self, text: str, level: int, position: Position | None = None) -> Block | None:
        return self.add("heading", text, position, level=level)

    def table(
        self, header: Sequence[str], rows: Sequence[tuple[Sequence[str], Position]], position: Position | None = None
    ) -> Block | None:
        """Append a GFM table; cells are cleaned, rows padded to one width. Too wide for a table: lines of values instead."""
        width = max([len(header), *(len(cells) for cells, _ in rows)], default=0)
        if not width:
            return None
        if width > MAX_TABLE_COLUMNS:
            self.warn("wide_table", f"a table of {width} columns is kept as lines of values", position)
            for cells, place in [(header, position), *rows]:
                self.add("paragraph", ", ".join(c for c in map(one_line, cells) if c), place, gap="\n")
            return None
        names = [clean_cell(c) for c in header] + [""] * (width - len(header))
        opening = f"{gfm_row(names)}\n{gfm_row(['---'] * width)}"
        start = self._append(opening, "\n\n")
        spans: list[tuple[int, int, Position]] = []
        for cells, place in rows:
            padded = [clean_cell(c) for c in cells] + [""] * (width - len(cells))
            at = self._append(gfm_row(padded), "\n")
            spans.append((at, self._length, place))
        block = Block("table", start, self._length, position or Position(), header=opening + "\n", rows=tuple(spans))
        self.blocks.append(block)
        return block

    def image(
        self, name: str, media_type: str, data: bytes, position: Position | None = None, alt: str = "", at: int | None = None
    ) -> None:
        """Keep a picture that stands at the present end of the text (or at `at`)."""
        if not data or len(self.images) >= MAX_IMAGES or self._image_bytes + len(data) > MAX_IMAGE_BYTES:
            if data:
                self.warn("images_skipped", "more pictures than are kept", position)
            return
        self._image_bytes += len(data)
        self.images.append(
            ExtractedImage(name, media_type, data, self._length if at is None else at, position or Position(), one_line(alt))
        )

    def warn(self, code: str, message: str, position: Position | None = None, *, key: str = "") -> None:
        """Note something a reader should know; the same code (and key) again only counts up."""
        known = self.warnings.get(code + key)
        if known is None:
            self.warnings[code + key] = ParseWarning(code, message, position or Position())
        else:
            self.warnings[code + key] = ParseWarning(code, known.message, known.position, known.count + 1)

    def text_of(self, block: Block) -> str:
        """The text of a block, heading marks taken off."""
        text = "".join(self._parts)[block.start : block.end]
        return text.lstrip("#").lstrip() if block.kind == "heading" else text

    def first_heading(self) -> str:
        """The first heading's text; "" when there is none. What a document without a title of its own is called."""
        return next((self.text_of(b) for b in self.blocks if b.kind == "heading"), "")

    def finish(self, **fields: Any) -> ParsedDocument:
        """The document, with `fields` of ParsedDocument set."""
        fields.setdefault("title", "")
        fields["title"] = one_line(fields["title"])[:300]
        return ParsedDocument(
            text="".join(self._parts), blocks=self.blocks, images=self.images, warnings=list(self.warnings.values()), **fields
        )
