"""From a parsed document and a base's settings to passages; and the dry run that the settings page shows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from apps.common.errors import InvalidInput, PayloadTooLarge, Unavailable
from apps.ingestion.chunking import strategies
from apps.ingestion.chunking.markdown_blocks import markdown_blocks
from apps.ingestion.chunking.profile import document_profile
from apps.ingestion.chunking.tokens import approximate_tokens
from apps.ingestion.plugins.protocol import (
    ChunkingConfig,
    ChunkResult,
    ParsedDocument,
    Piece,
    Rejection,
    SplitTools,
    TokenCount,
    chunkers,
)

DEFAULTS = ChunkingConfig()
LARGEST = 100_000
LARGEST_TOKENS = 1_000_000
MOST_SEPARATORS = 32
LONGEST_SEPARATOR = 100
PREVIEW_CHARS = 65_536
PREVIEW_CHUNKS = 500
PREVIEW_SECONDS = 5.0
#: Names of the tiers (contract section 11) and the chunker behind each.
TIERS = {"heading": "heading", "heuristic": "heuristic", "legacy": "recursive"}
_CHAINS = {
    "": ("legacy",),
    "legacy": ("legacy",),
    "recursive": ("legacy",),
    "heading": ("heading", "legacy"),
    "heuristic": ("heuristic", "legacy"),
}
_AUTO = ("heading", "heuristic", "legacy")


def _no_check() -> None:
    return None


def chunk(
    document: ParsedDocument,
    config: ChunkingConfig,
    token_count: TokenCount | None = None,
    *,
    check: Callable[[], None] = _no_check,
) -> ChunkResult:
    """The document's passages in reading order, and why this way of cutting was taken.

    With parent-child on, `pieces` are the children and `parents` what they are shown in. `check` is called between passages and may
    raise to stop the work. A blank document has no pieces.
    """
    config = _filled(config)
    tools = SplitTools(token_count or approximate_tokens, check)
    blocks = strategies.blocks_of(document)
    profile = document_profile(document.text, blocks)
    result = ChunkResult([], profile=profile, tier_chain=list(_CHAINS.get(config.strategy, _AUTO)))
    whole = replace(config, chunk_size=config.parent_chunk_size, chunk_overlap=0) if config.enable_parent_child else config
    for tier in result.tier_chain:
        chunker = chunkers.get(TIERS[tier])
        reason = chunker.suits(document, profile, config) or _unlike(tier, config, profile)
        if reason:
            result.rejected.append(Rejection(tier, reason))
            continue
        result.selected_tier = tier
        result.pieces = chunker.split(document, whole, tools)
        break
    if config.enable_parent_child:
        result.parents = result.pieces
        result.pieces = _children(document, config, tools, result.parents)
    return result


def _unlike(tier: str, config: ChunkingConfig, profile: Mapping[str, Any]) -> str | None:
    """Why `auto` passes a tier over that would fit by itself: its marks are too rare for the length of the text."""
    if config.strategy in _CHAINS or tier == "legacy":
        return None
    if tier == "heading" and profile["md_heading_total"] < 2:
        return "no headings of its own, only worded ones"
    if tier == "heading" and profile["total_chars"] / profile["md_heading_total"] > 40 * config.chunk_size:
        return f"headings are rare: {profile['md_heading_total']} in {profile['total_chars']} characters"
    return None


def _children(document: ParsedDocument, config: ChunkingConfig, tools: SplitTools, parents: list[Piece]) -> list[Piece]:
    child = replace(config, chunk_size=config.child_chunk_size, chunk_overlap=min(config.chunk_overlap, config.child_chunk_size // 2))
    packer = strategies.packer_for(document, child, tools)
    children: list[Piece] = []
    for index, parent in enumerate(parents):
        for piece in packer.pieces(parent.start, parent.end):
            path = piece.heading_path if len(piece.heading_path) >= len(parent.heading_path) else parent.heading_path
            children.append(replace(piece, parent=index, heading_path=path))
    return children


def _filled(config: ChunkingConfig) -> ChunkingConfig:
    """Zero sizes replaced by the defaults, the overlap below the size."""
    if config.chunk_size <= 0:
        config = replace(config, chunk_size=DEFAULTS.chunk_size, chunk_overlap=config.chunk_overlap or DEFAULTS.chunk_overlap)
    parent = config.parent_chunk_size if config.parent_chunk_size > 0 else DEFAULTS.parent_chunk_size
    child = config.child_chunk_size if config.child_chunk_size > 0 else DEFAULTS.child_chunk_size
    return replace(
        config,
        chunk_overlap=max(0, min(config.chunk_overlap, config.chunk_size - 1)),
        separators=tuple(item for item in config.separators if item) or DEFAULTS.separators,
        token_limit=max(0, config.token_limit),
        parent_chunk_size=parent,
        child_chunk_size=min(child, parent),
    )


# settings as clients send them


def _integer(raw: Mapping[str, Any], name: str, most: int) -> int | None:
    value = raw.get(name)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{name} must be a whole number", field=name)
    if not 0 <= value <= most:
        raise InvalidInput(f"{name} must be between 0 and {most}", field=name, minimum=0, maximum=most)
    return value


def _strings(raw: Mapping[str, Any], name: str, most: int, longest: int) -> tuple[str, ...] | None:
    value = raw.get(name)
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{name} must be a list of strings", field=name)
    if len(value) > most:
        raise InvalidInput(f"{name} may have at most {most} entries", field=name, maximum=most)
    if any(len(item) > longest for item in value):
        raise InvalidInput(f"an entry of {name} is longer than {longest} characters", field=name, maximum=longest)
    return tuple(item for item in dict.fromkeys(value) if item)


def _sizes(raw: Mapping[str, Any]) -> tuple[int, int]:
    """(size, overlap): no size means the default pair; an explicit overlap of 0 stays 0 beside a size."""
    size, overlap = _integer(raw, "chunk_size", LARGEST), _integer(raw, "chunk_overlap", LARGEST)
    if not size:
        size, overlap = DEFAULTS.chunk_size, overlap or DEFAULTS.chunk_overlap
    elif overlap is None:
        overlap = min(DEFAULTS.chunk_overlap, size // 4)
    if overlap >= size:
        raise InvalidInput(f"chunk_overlap ({overlap}) must be smaller than chunk_size ({size})", field="chunk_overlap", maximum=size - 1)
    return size, overlap


def config_from_dict(raw: Mapping[str, Any] | None) -> ChunkingConfig:
    """The settings of contract 3.2 as a ChunkingConfig with every zero replaced by its default; other keys are ignored.

    Raises: InvalidInput naming the field. An unknown strategy is no error: it means `auto`.
    """
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        raise InvalidInput("chunking_config must be an object", field="chunking_config")
    size, overlap = _sizes(raw)
    parent = _integer(raw, "parent_chunk_size", LARGEST) or DEFAULTS.parent_chunk_size
    child = _integer(raw, "child_chunk_size", LARGEST) or min(DEFAULTS.child_chunk_size, parent)
    nested = raw.get("enable_parent_child")
    if nested is not None and not isinstance(nested, bool):
        raise InvalidInput("enable_parent_child must be true or false", field="enable_parent_child")
    if nested and child > parent:
        raise InvalidInput(
            f"child_chunk_size ({child}) must not be larger than parent_chunk_size ({parent})", field="child_chunk_size", maximum=parent
        )
    strategy = raw.get("strategy")
    if strategy is not None and not isinstance(strategy, str):
        raise InvalidInput("strategy must be a string", field="strategy")
    return ChunkingConfig(
        chunk_size=size,
        chunk_overlap=overlap,
        separators=_strings(raw, "separators", MOST_SEPARATORS, LONGEST_SEPARATOR) or DEFAULTS.separators,
        strategy=DEFAULTS.strategy if strategy is None else strategy.strip().lower(),
        token_limit=_integer(raw, "token_limit", LARGEST_TOKENS) or 0,
        languages=_strings(raw, "languages", 20, 20) or (),
        enable_parent_child=bool(nested),
        parent_chunk_size=parent,
        child_chunk_size=min(child, parent),
    )


def passages_cut(text: str, config: Mapping[str, Any] | None = None) -> list[Piece]:
    """The passages of a Markdown text under a base's settings, none of them inside another; a blank text has none."""
    settings = replace(config_from_dict(config), enable_parent_child=False)
    document = ParsedDocument(text=text, blocks=markdown_blocks(text), media_type="text/markdown")
    return chunk(document, settings).pieces


# preview


def _deadline(seconds: float) -> Callable[[], None]:
    until = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > until:
            raise Unavailable(f"the preview took longer than {seconds:g} s: try a shorter text or larger chunks", code="timeout")

    return check


def _shown(seq: int, piece: Piece) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "seq": seq,
        "start": piece.start,
        "end": piece.end,
        "size_chars": len(piece.content),
        "size_tokens_approx": approximate_tokens(piece.content),
    }
    if piece.heading_path:
        shown["context_header"] = " > ".join(piece.heading_path)
    return {**shown, "content": piece.content}


def preview(text: Any, config: Mapping[str, Any] | None = None, *, seconds: float = PREVIEW_SECONDS) -> dict[str, Any]:
    """What chunking `text` (read as Markdown) would give: the `data` of contract section 11. Nothing is written.

    Raises: InvalidInput for blank text or bad settings, PayloadTooLarge above 65,536 characters, Unavailable (code `timeout`) when it
    takes over 5 seconds. Units: `start`, `end` are characters of the text with line endings as \\n.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("text is required and may not be blank", field="text")
    if len(text) > PREVIEW_CHARS:
        raise PayloadTooLarge(f"text is longer than {PREVIEW_CHARS} characters", field="text", limit=PREVIEW_CHARS)
    settings = config_from_dict(config)
    check = _deadline(seconds)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    document = ParsedDocument(text=text, blocks=markdown_blocks(text), media_type="text/markdown")
    result = chunk(document, settings, check=check)
    check()
    sizes = [len(piece.content) for piece in result.pieces]
    stats: dict[str, Any] = {
        "count": len(sizes),
        "avg_chars": round(statistics.fmean(sizes), 2),
        "min_chars": min(sizes),
        "max_chars": max(sizes),
        "stddev_chars": round(statistics.pstdev(sizes), 2),
    }
    if len(sizes) > PREVIEW_CHUNKS:
        stats["truncated_to"] = PREVIEW_CHUNKS
    return {
        "selected_tier": result.selected_tier,
        "tier_chain": result.tier_chain,
        "rejected": [{"tier": item.tier, "reason": item.reason} for item in result.rejected],
        "profile": result.profile,
        "chunks": [_shown(seq, piece) for seq, piece in enumerate(result.pieces[:PREVIEW_CHUNKS])],
        "stats": stats,
    }
