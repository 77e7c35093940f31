"""Tables keep header and rows; places of passages follow from blocks and rows."""

from __future__ import annotations

import pytest

from apps.ingestion.chunking.markdown_blocks import markdown_blocks
from apps.ingestion.chunking.positions import Locator, merge_cells
from apps.ingestion.chunking.service import chunk, config_from_dict
from apps.ingestion.plugins.protocol import Block, ParsedDocument, Piece, Position

HEADER = "型号|功率|电压|价格\n---|---|---|---\n"
ROWS = [f"M-{n}|{n} W|{n + 200} V|{n * 3} 元" for n in range(1, 201)]
BIG_TABLE = "# 目录\n\n前言一段。\n\n表3 全部型号\n\n" + HEADER + "\n".join(ROWS) + "\n\n表后的文字。\n"


def pieces_of(text: str, **settings: object) -> list[Piece]:
    return chunk(ParsedDocument(text, markdown_blocks(text)), config_from_dict(settings)).pieces


@pytest.mark.parametrize("strategy", ["auto", "heading", "heuristic", "recursive"])
@pytest.mark.parametrize("size", [128, 512, 2000])
def test_a_table_of_200_rows_is_never_torn(strategy: str, size: int) -> None:
    pieces = pieces_of(BIG_TABLE, strategy=strategy, chunk_size=size, chunk_overlap=size // 4)
    table = [piece for piece in pieces if "M-" in piece.content]
    assert [piece.content.count(HEADER) for piece in table] == [1] * len(table)
    assert [line for piece in table for line in piece.content.splitlines() if line.startswith("M-")] == ROWS
    assert ["表3 全部型号" in piece.content for piece in table] == [True] + [False] * (len(table) - 1)
    assert [piece.prefix for piece in table] == [""] + [HEADER] * (len(table) - 1)
    assert sum("M-150|" in piece.content for piece in pieces) == 1
    assert max(len(piece.content) for piece in pieces) <= size
    assert pieces[-1].content == "表后的文字。"


def test_a_small_table_stays_whole_with_its_text() -> None:
    text = "Intro.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nOutro."
    assert [piece.content for piece in pieces_of(text)] == [text]


def test_a_row_longer_than_a_chunk_stays_whole() -> None:
    long = "| 1 | " + "很长" * 400 + " |"
    text = "| a | b |\n|---|---|\n| 0 | x |\n" + long + "\n| 2 | y |\n"
    pieces = pieces_of(text, chunk_size=100, chunk_overlap=0)
    assert [piece.content.splitlines()[-1] for piece in pieces] == ["| 0 | x |", long, "| 2 | y |"]
    assert {piece.kind for piece in pieces} == {"table"}


def test_children_of_a_split_table_carry_the_header_too() -> None:
    result = chunk(
        ParsedDocument(BIG_TABLE, markdown_blocks(BIG_TABLE)),
        config_from_dict({"enable_parent_child": True, "parent_chunk_size": 1000, "child_chunk_size": 200}),
    )
    rows = [piece for piece in result.pieces if "M-" in piece.content]
    assert [piece.content.count(HEADER) for piece in rows] == [1] * len(rows)
    assert [line for piece in rows for line in piece.content.splitlines() if line.startswith("M-")] == ROWS
    assert len({piece.parent for piece in rows}) > 3


def sheet(rows: int, per_sheet: int) -> ParsedDocument:
    """Two sheets as a spreadsheet parser gives them."""
    text, blocks = "", []
    for name in ("Kosten", "Preise"):
        header = "| A | B |\n| --- | --- |\n"
        start = len(text)
        text += header
        spans = []
        for row in range(2, rows + 2):
            at = len(text)
            text += f"| {name} {row} | {row * 7} |"
            spans.append((at, len(text), Position(sheet=name, cells=f"A{row}:B{row}")))
            text += "\n"
        blocks.append(Block("table", start, len(text) - 1, Position(sheet=name, cells=f"A1:B{rows + 1}"), header=header, rows=tuple(spans)))
        text += "\n"
    return ParsedDocument(text, blocks)


def test_positions_cover_the_cells_of_the_rows() -> None:
    pieces = chunk(sheet(30, 30), config_from_dict({"chunk_size": 200, "chunk_overlap": 0})).pieces
    by_sheet: dict[str, list[str]] = {}
    for piece in pieces:
        assert len(piece.positions) == 1
        by_sheet.setdefault(piece.positions[0].sheet or "", []).append(piece.positions[0].cells or "")
    assert set(by_sheet) == {"Kosten", "Preise"}
    for ranges in by_sheet.values():
        numbers = [int(part[1:]) for item in ranges for part in item.split(":")]
        assert (numbers[0], numbers[-1]) == (2, 31)
        assert [b - a for a, b in zip(numbers[1::2], numbers[2::2], strict=False)] == [1] * (len(ranges) - 1)


@pytest.mark.parametrize(
    "ranges,merged",
    [
        (["A3:D3", "A9:D9"], "A3:D9"),
        (["B2"], "B2"),
        (["Z1", "AA2"], "Z1:AA2"),
        (["$C$5:$D$6", None, "nonsense"], "C5:D6"),
        ([None], None),
        ([], None),
    ],
)
def test_cell_ranges_are_merged(ranges: list[str | None], merged: str | None) -> None:
    assert merge_cells(ranges) == merged


def test_a_part_of_a_block_names_only_its_own_lines() -> None:
    text = "\n".join(f"line number {n}." for n in range(1, 41))
    pieces = pieces_of(text, chunk_size=100, chunk_overlap=0)
    for piece in pieces:
        first, last = piece.content.splitlines()[0], piece.content.splitlines()[-1]
        assert piece.positions == (Position(line=int(first.split()[2][:-1]), line_end=int(last.split()[2][:-1])),)


def test_every_page_of_a_passage_is_named_up_to_a_bound() -> None:
    text = "\n\n".join("abc" for _ in range(400))
    blocks = [
        Block("paragraph", n * 5, n * 5 + 3, Position(page=n // 4 + 1, bbox=(0.1, n / 400, 0.9, n / 400 + 0.001))) for n in range(400)
    ]
    assert [place.page for place in Locator(text, blocks).positions(0, 200)] == list(range(1, 11))
    assert [place.page for place in Locator(text, blocks).positions(0, len(text))] == list(range(1, 65))
    assert Locator(text, blocks).positions(0, 200)[0].bbox == (0.1, 0.0, 0.9, 3 / 400 + 0.001)


def test_blocks_out_of_order_or_out_of_range_do_no_harm() -> None:
    text = "alpha beta gamma delta"
    blocks = [Block("paragraph", 11, 99), Block("paragraph", 0, 12), Block("table", 5, 5), Block("code", 30, 40)]
    pieces = chunk(ParsedDocument(text, blocks), config_from_dict({"strategy": "legacy"})).pieces
    assert [piece.content for piece in pieces] == [text]
