"""The block finder of the preview: kinds, exact spans, lines."""

from __future__ import annotations

import pytest

from apps.ingestion.chunking.markdown_blocks import columns, heading_title, markdown_blocks


def shape(text: str) -> list[tuple[str, str]]:
    return [(block.kind, text[block.start : block.end]) for block in markdown_blocks(text)]


def test_every_kind_with_its_span_and_lines() -> None:
    text = (
        "---\ntitle: x\n---\n\n# One #\n\nTwo\n===\n\nA line\nand more\n\n- a\n  b\n\n  c\n- d\n\n> q\n> r\n\n表 1 名\n\n"
        "x|y\n-|-\n1|2\n3|4\n\n![p](p.png)\n\n```py\n# no heading\n\n```\n***\nend"
    )
    assert shape(text) == [
        ("note", "---\ntitle: x\n---"),
        ("heading", "# One #"),
        ("heading", "Two\n==="),
        ("paragraph", "A line\nand more"),
        ("list", "- a\n  b\n\n  c\n- d"),
        ("quote", "> q\n> r"),
        ("caption", "表 1 名"),
        ("table", "x|y\n-|-\n1|2\n3|4"),
        ("image", "![p](p.png)"),
        ("code", "```py\n# no heading\n\n```"),
        ("paragraph", "end"),
    ]
    for block in markdown_blocks(text):
        assert text.split("\n")[block.position.line - 1 : block.position.line_end] == text[block.start : block.end].split("\n")  # type: ignore[operator]
    table = next(block for block in markdown_blocks(text) if block.kind == "table")
    assert table.header == "x|y\n-|-\n"
    assert [text[start:end] for start, end, _ in table.rows] == ["1|2", "3|4"]
    assert [place.line for _, _, place in table.rows] == [26, 27]


@pytest.mark.parametrize(
    "text,kinds",
    [
        ("a | b\nnot a ruler", ["paragraph"]),
        ("| a |\n|---|---|\n| 1 |", ["paragraph"]),
        ("text\n| a | b |\n|---|---|\n| 1 | 2 |", ["paragraph", "table"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n# H", ["table", "heading"]),
        ("```\nnever closed\n# x", ["code"]),
        ("####### seven", ["paragraph"]),
        ("#no space", ["paragraph"]),
        ("    four spaces of Chinese prose", ["paragraph"]),
        ("\f# after a page break", ["heading"]),
        ("* * *", []),
        ("text\n- item", ["paragraph", "list"]),
        ("1. a\n\n2. b\n\ntext", ["list", "paragraph"]),
        ("- a\n  ```\n- not an item\n  ```\n- b", ["list"]),
        ("", []),
        ("\n\n  \n", []),
    ],
)
def test_edge_shapes(text: str, kinds: list[str]) -> None:
    assert [block.kind for block in markdown_blocks(text)] == kinds


@pytest.mark.parametrize(
    "text,title",
    [
        ("## **第3.2条** 期限 ##", "第3.2条 期限"),
        ("## `__init__`", "__init__"),
        ("# C#", "C#"),
        ("Two\n---", "Two"),
        ("#", ""),
        ("# a   b", "a b"),
    ],
)
def test_heading_titles(text: str, title: str) -> None:
    assert heading_title(text) == title


@pytest.mark.parametrize("line,count", [("| a | b |", 2), ("a|b|c", 3), (r"a \| b | c", 2), ("none", 0), ("||", 1)])
def test_columns(line: str, count: int) -> None:
    assert columns(line) == count
