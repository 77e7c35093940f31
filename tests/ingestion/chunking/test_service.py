"""Settings, tiers, overlap, separators, parents and the preview, as clients meet them."""

from __future__ import annotations

import itertools
import time

import pytest

from apps.common.errors import InvalidInput, PayloadTooLarge, Unavailable
from apps.ingestion.chunking.markdown_blocks import markdown_blocks
from apps.ingestion.chunking.service import chunk, config_from_dict, preview
from apps.ingestion.chunking.tokens import approximate_tokens
from apps.ingestion.plugins.protocol import ChunkingConfig, ParsedDocument, Piece

ZH = "".join(f"这是第{n}句话，说明系统的配置方法。" for n in range(100))
EN = " ".join(f"This is sentence number {n} of the text." for n in range(100))
GUIDE = "# Guide\n\n" + "".join(f"## Part {n}\n\n{'Words of this part. ' * 12}\n\n" for n in range(6))


def pieces_of(text: str, **settings: object) -> list[Piece]:
    return chunk(ParsedDocument(text, markdown_blocks(text)), config_from_dict(settings)).pieces


@pytest.mark.parametrize(
    "strategy,text,tier,chain",
    [
        ("", GUIDE, "legacy", ["legacy"]),
        ("legacy", GUIDE, "legacy", ["legacy"]),
        ("recursive", GUIDE, "legacy", ["legacy"]),
        ("heading", GUIDE, "heading", ["heading", "legacy"]),
        ("heading", EN, "legacy", ["heading", "legacy"]),
        ("heuristic", EN, "legacy", ["heuristic", "legacy"]),
        ("heuristic", "1.1 One\n\nText.\n\n1.2 Two\n\nText.", "heuristic", ["heuristic", "legacy"]),
        ("auto", GUIDE, "heading", ["heading", "heuristic", "legacy"]),
        ("auto", EN, "legacy", ["heading", "heuristic", "legacy"]),
        ("no such", GUIDE, "heading", ["heading", "heuristic", "legacy"]),
    ],
)
def test_the_strategy_decides_the_tiers_that_are_tried(strategy: str, text: str, tier: str, chain: list[str]) -> None:
    result = chunk(ParsedDocument(text, markdown_blocks(text)), config_from_dict({"strategy": strategy}))
    assert (result.selected_tier, result.tier_chain) == (tier, chain)
    assert [item.tier for item in result.rejected] == chain[: chain.index(tier)]
    assert all(item.reason for item in result.rejected)


@pytest.mark.parametrize("text,ends", [(ZH, "。"), (EN, ".")])
def test_overlap_repeats_whole_sentences(text: str, ends: str) -> None:
    pieces = pieces_of(text, strategy="legacy", chunk_size=300, chunk_overlap=60)
    for one, two in itertools.pairwise(pieces):
        repeated = text[two.start : one.end]
        assert 0 < len(repeated) <= 60
        assert repeated.endswith(ends)
        assert text[: two.start].rstrip().endswith(ends)
    assert max(len(piece.content) for piece in pieces) <= 300


def test_overlap_inside_one_long_sentence_starts_at_a_word() -> None:
    text = "word" + " another" * 300
    pieces = pieces_of(text, chunk_size=200, chunk_overlap=50)
    overlaps = [text[two.start : one.end] for one, two in itertools.pairwise(pieces)]
    assert set(overlaps) == {" ".join(["another"] * 6)}


def test_an_explicit_overlap_of_zero_repeats_nothing() -> None:
    pieces = pieces_of(ZH, chunk_size=300, chunk_overlap=0)
    assert all(one.end <= two.start for one, two in itertools.pairwise(pieces))


def test_nothing_is_repeated_across_a_heading() -> None:
    pieces = pieces_of(GUIDE, strategy="legacy", chunk_size=300, chunk_overlap=80)
    for one, two in itertools.pairwise(pieces):
        if two.content.startswith("#"):
            assert one.end < two.start


def test_a_huge_overlap_still_brings_something_new_with_every_piece() -> None:
    pieces = pieces_of(ZH, chunk_size=300, chunk_overlap=299)
    assert sum(len(piece.content) for piece in pieces) < 20 * len(ZH)


def test_custom_separators_come_first() -> None:
    text = "@@".join(["One sentence. Another one here.\n\nAnd a paragraph"] * 6)
    pieces = pieces_of(text, chunk_size=60, chunk_overlap=0, separators=["@@"])
    assert [piece.content for piece in pieces] == ["One sentence. Another one here.\n\nAnd a paragraph@@"] * 5 + [
        "One sentence. Another one here.\n\nAnd a paragraph"
    ]


def test_a_separator_that_opens_a_line_stays_with_what_follows() -> None:
    text = "Intro text here.\n>> first part of it\n>> second part of it\n>> third part of it"
    pieces = pieces_of(text, chunk_size=25, chunk_overlap=0, separators=["\n>> "])
    assert [piece.content for piece in pieces] == [
        "Intro text here.",
        ">> first part of it",
        ">> second part of it",
        ">> third part of it",
    ]


def test_a_token_counter_of_the_caller_is_obeyed() -> None:
    document = ParsedDocument(EN, markdown_blocks(EN))
    pieces = chunk(document, config_from_dict({"token_limit": 20, "chunk_overlap": 0}), token_count=lambda text: len(text.split())).pieces
    assert max(len(piece.content.split()) for piece in pieces) <= 20
    assert min(len(piece.content.split()) for piece in pieces[:-1]) >= 10


def test_every_child_lies_in_exactly_one_parent() -> None:
    text = GUIDE + ZH + "\n\n" + EN
    settings = config_from_dict({"enable_parent_child": True, "parent_chunk_size": 900, "child_chunk_size": 150, "chunk_overlap": 30})
    result = chunk(ParsedDocument(text, markdown_blocks(text)), settings)
    assert max(len(parent.content) for parent in result.parents) <= 900
    assert max(len(piece.content) for piece in result.pieces) <= 150
    for piece in result.pieces:
        around = [at for at, parent in enumerate(result.parents) if parent.start <= piece.start and piece.end <= parent.end]
        assert around == [piece.parent]
    assert {piece.parent for piece in result.pieces} == set(range(len(result.parents)))
    assert all(one.end <= two.start for one, two in itertools.pairwise(result.parents))


def test_defaults_stand_in_for_zero_sizes() -> None:
    assert config_from_dict({}) == ChunkingConfig()
    assert config_from_dict(None) == ChunkingConfig()
    zero = {"chunk_size": 0, "chunk_overlap": 0, "separators": [], "parent_chunk_size": 0, "child_chunk_size": 0, "token_limit": 0}
    assert config_from_dict(zero) == ChunkingConfig()
    kept = config_from_dict({"chunk_size": 100, "chunk_overlap": 0})
    assert (kept.chunk_size, kept.chunk_overlap) == (100, 0)
    assert config_from_dict({"chunk_size": 100}).chunk_overlap == 25


@pytest.mark.parametrize(
    "raw,field",
    [
        ({"chunk_size": -1}, "chunk_size"),
        ({"chunk_size": "512"}, "chunk_size"),
        ({"chunk_size": True}, "chunk_size"),
        ({"chunk_size": 1.5}, "chunk_size"),
        ({"chunk_size": 100_001}, "chunk_size"),
        ({"chunk_size": 100, "chunk_overlap": 100}, "chunk_overlap"),
        ({"chunk_overlap": 512}, "chunk_overlap"),
        ({"chunk_overlap": -5}, "chunk_overlap"),
        ({"separators": "\n"}, "separators"),
        ({"separators": ["\n", 5]}, "separators"),
        ({"separators": ["x" * 101]}, "separators"),
        ({"separators": [str(n) for n in range(33)]}, "separators"),
        ({"languages": "zh"}, "languages"),
        ({"strategy": 5}, "strategy"),
        ({"token_limit": -1}, "token_limit"),
        ({"enable_parent_child": "yes"}, "enable_parent_child"),
        ({"enable_parent_child": True, "parent_chunk_size": 100, "child_chunk_size": 200}, "child_chunk_size"),
        ({"parent_chunk_size": "big"}, "parent_chunk_size"),
        ([1], "chunking_config"),
    ],
)
def test_bad_settings_name_their_field(raw: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        config_from_dict(raw)
    assert caught.value.field == field
    assert field in str(caught.value)


def test_the_preview_has_the_shape_of_the_contract() -> None:
    data = preview("# T\r\n\r\nOne.\r\n\r\n## U\r\n\r\nTwo 二。", {"chunk_size": 20, "chunk_overlap": 0, "strategy": "heading"})
    text = "# T\n\nOne.\n\n## U\n\nTwo 二。"
    assert list(data) == ["selected_tier", "tier_chain", "rejected", "profile", "chunks", "stats"]
    assert (data["selected_tier"], data["tier_chain"], data["rejected"]) == ("heading", ["heading", "legacy"], [])
    assert data["profile"]["total_chars"] == len(text)
    assert data["chunks"][0] == {
        "seq": 0, "start": 0, "end": 9, "size_chars": 9, "size_tokens_approx": 3, "context_header": "T", "content": "# T\n\nOne.",
    }  # fmt: skip
    for seq, item in enumerate(data["chunks"]):
        assert item["seq"] == seq
        assert item["content"] == text[item["start"] : item["end"]]
        assert item["size_chars"] == len(item["content"])
        assert item["size_tokens_approx"] == approximate_tokens(item["content"])
    assert set(data["stats"]) == {"count", "avg_chars", "min_chars", "max_chars", "stddev_chars"}


def test_the_preview_says_what_it_rejected() -> None:
    data = preview("No headings here.", {"strategy": "heading"})
    assert data["selected_tier"] == "legacy"
    assert data["rejected"] == [{"tier": "heading", "reason": "too few headings: 0, at least 2 are needed"}]
    assert "context_header" not in data["chunks"][0]


def test_the_preview_shows_children_and_at_most_500() -> None:
    text = ZH * 30
    data = preview(text, {"enable_parent_child": True, "parent_chunk_size": 300, "child_chunk_size": 40, "chunk_overlap": 0})
    assert max(item["size_chars"] for item in data["chunks"]) <= 40
    assert len(data["chunks"]) == 500
    assert data["stats"]["truncated_to"] == 500
    assert data["stats"]["count"] > 500


@pytest.mark.parametrize("text", ["", "  \n\t", None, 5])
def test_a_blank_text_has_no_preview(text: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        preview(text, {})
    assert caught.value.field == "text"


def test_a_text_at_the_limit_is_taken_and_one_above_is_not() -> None:
    assert preview("x" * 65_536)["stats"]["count"] > 0
    with pytest.raises(PayloadTooLarge) as caught:
        preview("x" * 65_537)
    assert caught.value.details["limit"] == 65_536


def test_a_preview_out_of_time_says_so() -> None:
    with pytest.raises(Unavailable) as caught:
        preview(ZH, {}, seconds=-1)
    assert caught.value.code == "timeout"


def test_tokens_are_estimated_by_script() -> None:
    assert [approximate_tokens(text) for text in ("", "  ", "a", "abcdefgh", "中" * 10, "中文 text")] == [0, 0, 1, 2, 7, 3]


@pytest.mark.parametrize(
    "text",
    [
        "中" * 400_000,
        "word " * 80_000,
        "\n " * 200_000,
        "." * 400_000,
        "- " + "很长的内容。" * 60_000,
        "".join(" " * (n % 150) + "- x\n" for n in range(4_000)),
        "".join(f"## h{n}\n\n" for n in range(20_000)),
        "| a | b |\n|---|---|\n" + "".join(f"| {n} | v |\n" for n in range(20_000)),
        "ab\n" * 100_000,
        "> " * 100_000,
    ],
    ids=["line", "words", "blank", "dots", "item", "indent", "headings", "rows", "lines", "quote"],
)
def test_hostile_shapes_take_linear_time(text: str) -> None:
    """A quadratic step takes minutes on these; the bound is wide because the machine is shared."""
    started = time.process_time()
    chunk(ParsedDocument(text, markdown_blocks(text)), ChunkingConfig())
    assert time.process_time() - started < 8
