"""What a parser gives and a chunker takes: plain values with exact positions.

`ParsedDocument.text` is the one text everything else points into: blocks, chunks and citations hold half-open character spans of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from apps.common.registry import Registry

BlockKind = Literal["heading", "paragraph", "list", "table", "code", "quote", "caption", "header", "footer", "footnote", "image", "note"]

#: Why a document could not be read (closed list; the portal has words and a next step for each).
REASONS = (
    "empty", "needs_ocr", "unreadable_text", "locked", "wrong_password", "unsupported_type", "corrupt", "unsafe", "too_large",
    "too_many_pages", "timeout", "out_of_memory", "crashed", "no_space", "embedding_unavailable", "fetch_failed", "stalled", "cancelled",
    "internal", "storage_unavailable", "original_missing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Position:
    """Where a block stands in the original; only what the format has is set. Pages, slides, lines count from 1.

    `bbox` is (left, top, right, bottom) as fractions 0..1 of the page, origin top left.
    """

    page: int | None = None
    slide: int | None = None
    sheet: str | None = None
    cells: str | None = None  # A1 notation, "A3:D3"
    line: int | None = None
    line_end: int | None = None
    part: str | None = None  # EPUB chapter, e-mail attachment, MHTML part
    bbox: tuple[float, float, float, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        return {k: v for k in self.__slots__ if (v := getattr(self, k)) is not None}


@dataclass(frozen=True, slots=True)
class Block:
    """A span [start, end) of the text with its kind and place. Blocks are in reading order and do not overlap.

    Heading: `level` 1..6; the span covers the whole line with its `#` marks. Table: `header` holds the lines that open it (GFM header row
    and ruler, each with its line break) so that every piece can repeat them: `header + text[row start:row end]` is a table by itself.
    `rows` the spans of its body rows with their own positions, so that a piece never splits a row and can cite its cells.
    """

    kind: BlockKind
    start: int
    end: int
    position: Position = Position()
    level: int = 0
    header: str = ""
    rows: tuple[tuple[int, int, Position], ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractedImage:
    """A picture found in the original, with where its mark stands in the text; bytes are kept by the caller.

    `sha256`, `width`, `height` are set by `pictures.kept`, which every parser's pictures pass through.
    """

    name: str
    media_type: str
    data: bytes
    at: int
    position: Position = Position()
    alt: str = ""
    sha256: str = ""
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class ParseWarning:
    """Something a reader should know though the document was read: a damaged page, an uncached formula, skipped parts."""

    code: str
    message: str
    position: Position = Position()
    count: int = 1


@dataclass(slots=True)
class ParsedDocument:
    """Markdown text plus what stands where.

    `needs_ocr_pages`: pages (1-based) that have no readable text layer; `unreadable_pages` those whose layer is garbled.
    `counts`: pages, sheets, slides as the format has them. `encoding`: what a text file was read as. `details`: shown on the pipeline tab.
    """

    text: str
    blocks: list[Block]
    title: str = ""
    language: str = ""
    media_type: str = ""
    parser: str = ""
    encoding: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    images: list[ExtractedImage] = field(default_factory=list)
    warnings: list[ParseWarning] = field(default_factory=list)
    needs_ocr_pages: list[int] = field(default_factory=list)
    unreadable_pages: list[int] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


def reason_if_empty(document: ParsedDocument) -> str:
    """Why a document without text has none: a reason of `REASONS`, "" when it has text."""
    if document.text.strip():
        return ""
    if document.needs_ocr_pages:
        return "needs_ocr"
    return "unreadable_text" if document.unreadable_pages else "empty"


BUILTIN = "builtin"
#: Ways of reading besides a type's usual one, and the families of files each takes: the source text as it stands; a second reader for Word
#: and PowerPoint; every page by OCR, whatever its text layer says.
ENGINES: dict[str, tuple[str, ...]] = {
    "text": ("html", "markdown", "csv", "json", "eml", "mhtml"),
    "office": ("docx", "pptx"),
    "ocr": ("pdf",),
}


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """What to read: a local path, the name it came under, and what the caller wishes."""

    path: Path
    file_name: str
    media_type: str = ""  # what `sniff.sniff` said; empty = sniffed again by the parser's child
    encoding: str = ""  # override; empty = detect
    charset_hint: str = ""  # what an HTTP header claimed; joins the candidates, never beats valid bytes
    password: str = field(default="", repr=False)
    ocr: bool = False  # read pictures and pages without text by OCR
    ocr_pages: tuple[int, ...] = ()  # empty = every page that needs it
    max_pages: int = 5000
    max_chars: int = 20_000_000
    max_unpacked_bytes: int = 1_500_000_000
    header_row: bool = True  # sheets: the first row names the columns
    engine: str = ""  # a name of ENGINES; empty or BUILTIN: the usual way
    rows_only: bool = False  # not a document but the rows of its first table, see `grid.read_grid`


class ParseFailure(Exception):
    """A document that cannot be read: `reason` is one of `REASONS`, `message` says it in English for the log."""

    def __init__(self, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        assert reason in REASONS, reason
        self.reason = reason
        self.message = message
        self.details = details


Progress = Callable[[int, int, str], None]
"""progress(done, total, unit) with unit 'pages', 'sheets', 'slides', 'parts', 'rows', 'files'; may raise to stop the parser."""


class Parser(Protocol):
    """Called inside the sandbox child only; one instance serves many files and keeps no state between them.

    Raises: ParseFailure. An empty document is a result (text ""), not an error.
    """

    media_types: tuple[str, ...]
    extensions: tuple[str, ...]

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument: ...


parsers: Registry[Parser] = Registry("parser")


@dataclass(frozen=True, slots=True)
class ChunkingConfig:
    """Contract 3.2; sizes in characters, or in tokens of the embedder when `token_limit` > 0 caps them. Zero sizes mean the defaults."""

    chunk_size: int = 512
    chunk_overlap: int = 80
    separators: tuple[str, ...] = ("\n\n", "\n", "。")
    strategy: str = "auto"  # auto heading heuristic recursive legacy ""
    token_limit: int = 0
    languages: tuple[str, ...] = ()
    enable_parent_child: bool = False
    parent_chunk_size: int = 4096
    child_chunk_size: int = 384


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage: `content` is what is shown and embedded, [start, end) its exact span in the text.

    `content == text[start:end]` unless `prefix` is set (a table header repeated before later rows):
    then content == prefix + text[start:end].
    `heading_path`: titles above it, outermost first. `positions`: where it stands, in reading order, at most 8.
    `parent`: index into the list of parents, when parent-child is on.
    """

    content: str
    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    positions: tuple[Position, ...] = ()
    kind: str = "text"  # text table code image
    prefix: str = ""
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    tier: str
    reason: str


@dataclass(slots=True)
class ChunkResult:
    """Pieces in reading order, the parents when parent-child is on, and why this tier was taken (contract section 11)."""

    pieces: list[Piece]
    parents: list[Piece] = field(default_factory=list)
    selected_tier: str = "legacy"
    tier_chain: list[str] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    profile: dict[str, Any] = field(default_factory=dict)


TokenCount = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class SplitTools:
    """What a chunker is lent: `token_count` of the embedder (or an approximation); `check` is called per piece and may raise to stop."""

    token_count: TokenCount
    check: Callable[[], None] = lambda: None


class Chunker(Protocol):
    """One strategy. `suits` gives None when it fits, else the reason why not (shown in the preview).

    `split` gives pieces in reading order whose spans cover every non-blank character; called by `chunking.service.chunk`.
    """

    def suits(self, document: ParsedDocument, profile: dict[str, Any], config: ChunkingConfig) -> str | None: ...

    def split(self, document: ParsedDocument, config: ChunkingConfig, tools: SplitTools) -> list[Piece]: ...


chunkers: Registry[Chunker] = Registry("chunker")
