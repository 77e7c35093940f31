"""The built-in chunkers: `heading`, `heuristic` and `recursive` (tier name `legacy`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.ingestion.chunking import headings as marks
from apps.ingestion.chunking.headings import Mark
from apps.ingestion.chunking.markdown_blocks import markdown_blocks
from apps.ingestion.chunking.packing import Packer, usable_blocks
from apps.ingestion.plugins.protocol import Block, ChunkingConfig, ParsedDocument, Piece, SplitTools, chunkers

LANGUAGES = ("zh", "en", "de")


def blocks_of(document: ParsedDocument) -> list[Block]:
    """The parser's blocks, or those of the text read as Markdown when the parser names none."""
    return usable_blocks(document.text, document.blocks or markdown_blocks(document.text))


def worded_marks(document: ParsedDocument, blocks: Sequence[Block], config: ChunkingConfig) -> list[Mark]:
    """Section lines by their wording, chapter words only in the languages asked for (all when none is known)."""
    wanted = {code.lower().split("-")[0] for code in config.languages} & set(LANGUAGES)
    found = marks.text_marks(document.text, blocks)
    return [mark for mark in found if not wanted or mark.kind not in LANGUAGES or mark.kind in wanted]


def packer_for(document: ParsedDocument, config: ChunkingConfig, tools: SplitTools) -> Packer:
    """A packer whose only headings are the heading blocks."""
    blocks = blocks_of(document)
    return Packer(document, blocks, config, tools, marks.heading_marks(document.text, blocks))


@dataclass(slots=True)
class _Section:
    start: int
    end: int
    level: int
    parent: int  # start of the mark above it, -1 at the top
    bare: bool


def _sections(text: str, found: Sequence[Mark]) -> list[_Section]:
    """The text cut at every mark; marks without a title (rules, form feeds) stay below the section they cut."""
    edges = [mark.start for mark in found] + [len(text)]
    made = [_Section(0, edges[0], 0, -1, False)] if text[: edges[0]].strip() else []
    stack: list[Mark] = []
    for mark, end in zip(found, edges[1:], strict=True):
        if mark.title:
            while stack and stack[-1].level >= mark.level:
                stack.pop()
        parent = stack[-1].start if stack else -1
        level = mark.level if mark.title else (stack[-1].level + 1 if stack else 1)
        made.append(_Section(mark.start, end, level, parent, bool(mark.title) and not text[mark.end : end].strip()))
        if mark.title:
            stack.append(mark)
    return made


def _merged(text: str, sections: list[_Section], size: int) -> list[tuple[int, int]]:
    """Ranges of sections: bare headings go with what follows; a small section goes with its neighbour under the same parent."""
    small = max(1, size // 3)
    ranges: list[tuple[int, int]] = []
    at = 0
    while at < len(sections):
        last = sections[at]
        start, end = last.start, last.end
        at += 1
        while at < len(sections):
            following = sections[at]
            fits = following.end - start <= size * 2 and len(text[start : following.end].rstrip()) <= size
            related = following.parent in (last.parent, last.start)
            is_small = min(end - start, following.end - following.start) < small
            if not last.bare and not (fits and related and is_small):
                break
            last, end = following, following.end
            at += 1
        ranges.append((start, end))
    return ranges


def _split_sections(
    document: ParsedDocument, config: ChunkingConfig, tools: SplitTools, blocks: list[Block], found: list[Mark]
) -> list[Piece]:
    packer = Packer(document, blocks, config, tools, found)
    if not found:
        return packer.pieces(0, len(document.text))
    pieces: list[Piece] = []
    for start, end in _merged(document.text, _sections(document.text, found), config.chunk_size):
        pieces.extend(packer.pieces(start, end))
    return pieces


@chunkers.register("heading")
class HeadingChunker:
    """Sections by headings: small ones together, large ones split further."""

    def suits(self, document: ParsedDocument, profile: dict[str, Any], config: ChunkingConfig) -> str | None:
        total = profile["md_heading_total"] + sum(profile[f"{name}_chapter_count"] for name in ("chinese", "english", "german"))
        total += profile["numbered_section_count"]
        if total < 2:
            return f"too few headings: {total}, at least 2 are needed"
        return None

    def split(self, document: ParsedDocument, config: ChunkingConfig, tools: SplitTools) -> list[Piece]:
        blocks = blocks_of(document)
        found = marks.heading_marks(document.text, blocks)
        if len(found) < 2:
            worded = [mark for mark in worded_marks(document, blocks, config) if mark.kind in (*LANGUAGES, "numbered")]
            found = marks.merge_marks(found, worded)
        return _split_sections(document, config, tools, blocks, found)


@chunkers.register("heuristic")
class HeuristicChunker:
    """Sections by what looks like one: numbers, chapter words, form feeds, rules, lines in capitals."""

    def suits(self, document: ParsedDocument, profile: dict[str, Any], config: ChunkingConfig) -> str | None:
        kinds = (
            "numbered_section",
            "chinese_chapter",
            "english_chapter",
            "german_chapter",
            "form_feed",
            "visual_sep",
            "all_caps_short_line",
        )
        total = sum(profile[f"{kind}_count"] for kind in kinds)
        if total < 2:
            return f"too few section marks: {total}, at least 2 are needed"
        return None

    def split(self, document: ParsedDocument, config: ChunkingConfig, tools: SplitTools) -> list[Piece]:
        blocks = blocks_of(document)
        found = marks.merge_marks(
            marks.heading_marks(document.text, blocks), worded_marks(document, blocks, config), marks.form_feeds(document.text, blocks)
        )
        return _split_sections(document, config, tools, blocks, found)


@chunkers.register("recursive")
class RecursiveChunker:
    """Separators in their order, then sentences, clauses, words; fits every text."""

    def suits(self, document: ParsedDocument, profile: dict[str, Any], config: ChunkingConfig) -> str | None:
        return None

    def split(self, document: ParsedDocument, config: ChunkingConfig, tools: SplitTools) -> list[Piece]:
        return packer_for(document, config, tools).pieces(0, len(document.text))
