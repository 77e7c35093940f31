"""What every chunker keeps: exact spans, in order, covering everything that is not blank, tables whole by rows."""

from __future__ import annotations

import itertools
import random

import pytest

from apps.ingestion.chunking import service  # noqa: F401 - registers the built-in chunkers
from apps.ingestion.chunking.markdown_blocks import markdown_blocks
from apps.ingestion.chunking.tokens import approximate_tokens
from apps.ingestion.plugins.protocol import ChunkingConfig, ParsedDocument, Piece, SplitTools, chunkers

ZH = "第一章 总则\n\n本制度适用于全体员工。请先检查电源，然后启动服务！是否正常？\n\n第二章 细则\n\n" + "员工应当遵守安全规定。" * 40
EN = "# Guide\n\n" + "The cat sat on the mat. Dr. Smith came at 3.5 p.m. and left. " * 20 + "\n\n## Next\n\nIt rained.\n"
TABLE = "表1 型号\n\n型号|功率\n---|---\n" + "".join(f"M-{n}|{n} W\n" for n in range(80)) + "\nAfter the table.\n"
CODE = "## Code\n\n```python\n" + "".join(f"value_{n} = compute({n})  # 说明\n" for n in range(60)) + "```\n\nEnd.\n"
LISTS = "Steps:\n\n" + "".join(f"- step {n}: open the door. Then close it again.\n  Wait {n} s.\n" for n in range(40))
TEXTS = {
    "zh": ZH,
    "en": EN,
    "mixed": ZH + "\n\n" + EN,
    "table": TABLE,
    "code": CODE,
    "lists": LISTS,
    "tiny": "a",
    "huge line": "词" * 30_000,
    "huge word": "x" * 30_000,
    "marks": "e\u0301" * 500 + "👩‍👩‍👧‍👦" * 200,
    "pages": "one\f\ftwo\f" * 50,
    "lone surrogates": "before \ud83d after. " * 60,
}
SIZES = [(64, 0), (200, 40), (512, 80)]
NAMES = chunkers.names()


def split(name: str, text: str, **settings: object) -> list[Piece]:
    config = ChunkingConfig(**settings)  # type: ignore[arg-type]
    return chunkers.get(name).split(ParsedDocument(text, markdown_blocks(text)), config, SplitTools(approximate_tokens))


def assert_exact(text: str, pieces: list[Piece]) -> None:
    covered = bytearray(len(text))
    for piece in pieces:
        assert piece.content == piece.prefix + text[piece.start : piece.end]
        assert text[piece.start : piece.end].strip()
        assert len(piece.positions) <= 8
        covered[piece.start : piece.end] = b"\1" * (piece.end - piece.start)
    for one, two in itertools.pairwise(pieces):
        assert one.start < two.start
        assert one.end < two.end
    assert [at for at, char in enumerate(text) if not char.isspace() and not covered[at]] == []


def test_the_built_in_strategies_are_registered() -> None:
    assert {"heading", "heuristic", "recursive"} <= set(NAMES)


@pytest.mark.parametrize("size,overlap", SIZES)
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("name", NAMES)
def test_spans_are_exact_and_cover_the_text(name: str, kind: str, size: int, overlap: int) -> None:
    text = TEXTS[kind]
    pieces = split(name, text, chunk_size=size, chunk_overlap=overlap)
    assert_exact(text, pieces)
    assert max(len(piece.content) for piece in pieces) <= size


@pytest.mark.parametrize("text", ["", " ", "\n \t\n\f\n", "\u3000"])
@pytest.mark.parametrize("name", NAMES)
def test_blank_text_has_no_pieces(name: str, text: str) -> None:
    assert split(name, text) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_table_piece_opens_with_the_header_once(name: str) -> None:
    pieces = [piece for piece in split(name, TABLE, chunk_size=200, chunk_overlap=50) if "M-" in piece.content]
    assert len(pieces) > 4
    rows = [line for piece in pieces for line in piece.content.splitlines() if line.startswith("M-")]
    assert rows == [f"M-{n}|{n} W" for n in range(80)]
    assert [piece.content.count("型号|功率\n---|---\n") for piece in pieces] == [1] * len(pieces)
    assert [piece.content.startswith("型号|功率\n---|---\n") for piece in pieces] == [False] + [True] * (len(pieces) - 1)
    assert pieces[0].content.startswith("表1 型号\n\n型号|功率\n")


@pytest.mark.parametrize("name", NAMES)
def test_code_lines_stay_whole(name: str) -> None:
    lines = set(CODE.splitlines())
    for piece in split(name, CODE, chunk_size=150, chunk_overlap=40):
        assert set(piece.content.splitlines()) <= lines


@pytest.mark.parametrize("name", NAMES)
def test_list_items_stay_whole(name: str) -> None:
    for piece in split(name, LISTS, chunk_size=150, chunk_overlap=0)[1:]:
        assert piece.content.startswith("- step")
        assert piece.content.endswith(" s.")


@pytest.mark.parametrize("name", NAMES)
def test_no_grapheme_is_cut(name: str) -> None:
    for piece in split(name, TEXTS["marks"], chunk_size=64, chunk_overlap=20):
        assert piece.content[0] in "e👩"
        assert piece.content[-1] in "\u0301👦"


@pytest.mark.parametrize("limit", [12, 60])
@pytest.mark.parametrize("kind", ["zh", "en", "mixed", "lists", "huge line"])
@pytest.mark.parametrize("name", NAMES)
def test_the_token_limit_caps_every_piece(name: str, kind: str, limit: int) -> None:
    pieces = split(name, TEXTS[kind], chunk_size=512, chunk_overlap=80, token_limit=limit)
    assert_exact(TEXTS[kind], pieces)
    assert max(approximate_tokens(piece.content) for piece in pieces) <= limit


PARTS = [
    "# H\n", "## 二级\n\n", "第三章 总则\n\n", "1.2 Scope\n\n", "1. one\n2. two\n   more\n\n", "- a\n- 很长的条目，内容。\n  - nested\n\n",
    "```py\nx = 1\n\n    y = 2\n```\n\n", "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n", "表1 型号\n\n", "> quote\n\n", "这是一句话。还有一句！",
    "The cat sat. Then it ended. ", "\n\n", "\n", "\f", "---\n\n", "  \t ", "e\u0301", "👨‍👩‍👧‍👦", "中" * 70, "a" * 90, "word " * 30, "\u200b",
    "\u3000", "\r\n", "；", "ABC DEF\n\n", "\x00", "\ud83d\ude00", "~~~\ncode\n",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_random_documents_keep_every_character(name: str) -> None:
    for seed in range(150):
        dice = random.Random(seed)
        text = "".join(dice.choice(PARTS) * dice.choice((1, 1, 1, 2, 5)) for _ in range(dice.randint(1, 50)))
        pieces = split(
            name,
            text,
            chunk_size=dice.choice((1, 5, 20, 64, 200, 512)),
            chunk_overlap=dice.choice((0, 3, 30)),
            token_limit=dice.choice((0, 0, 1, 20)),
            separators=dice.choice((("\n\n", "\n", "。"), ("；",), ("\n## ", "|"))),
        )
        assert_exact(text, pieces)
