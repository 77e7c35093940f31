"""The order in which lines seen by OCR are read: one column after the other, rows of tables kept together."""

from __future__ import annotations

import random

import pytest

from apps.ingestion.ocr import OcrLine, reading_order

HEIGHT = 0.02


def line(text: str, left: float, top: float, right: float) -> OcrLine:
    return OcrLine(text, (left, top, right, top + HEIGHT), 20, 0.9)


def column(name: str, left: float, right: float, count: int, top: float = 0.2) -> list[OcrLine]:
    return [line(f"{name} column line number {n}", left, top + n * 0.04, right) for n in range(count)]


def read(lines: list[OcrLine]) -> list[str]:
    """The order whatever order they were seen in."""
    shuffled = list(lines)
    random.Random(7).shuffle(shuffled)
    return [each.text for each in reading_order(shuffled)]


def texts(*groups: list[OcrLine]) -> list[str]:
    return [each.text for group in groups for each in group]


def test_two_columns_are_read_one_after_the_other() -> None:
    left, right = column("left", 0.1, 0.45, 8), column("right", 0.55, 0.9, 8)
    assert read([*left, *right]) == texts(left, right)


def test_columns_of_unlike_length_whose_lines_do_not_stand_level() -> None:
    left, right = column("left", 0.1, 0.45, 9), column("right", 0.55, 0.9, 5, top=0.207)
    assert read([*left, *right]) == texts(left, right)


def test_three_columns() -> None:
    columns = [column(name, left, left + 0.25, 6) for name, left in (("first", 0.05), ("second", 0.37), ("third", 0.69))]
    assert read([each for part in columns for each in part]) == texts(*columns)


def test_a_headline_over_both_columns_comes_first_and_one_between_divides_them() -> None:
    head = [line("A headline that goes over both of the columns", 0.1, 0.1, 0.9)]
    left, right = column("left", 0.1, 0.45, 4), column("right", 0.55, 0.9, 4)
    middle = [line("A second headline that goes over both columns", 0.1, 0.42, 0.9)]
    under, beside = column("lower", 0.1, 0.45, 4, top=0.5), column("other", 0.55, 0.9, 4, top=0.5)
    assert read([*head, *left, *right, *middle, *under, *beside]) == texts(head, left, right, middle, under, beside)


def test_the_cells_of_a_table_are_read_by_rows() -> None:
    rows = [[line(f"P{n}", 0.1, 0.2 + n * 0.04, 0.2), line(f"{n} mm", 0.55, 0.2 + n * 0.04, 0.65)] for n in range(6)]
    assert read([cell for row in rows for cell in row]) == texts(*rows)


@pytest.mark.parametrize("count", [1, 3, 12])
def test_one_column_is_read_from_top_to_bottom(count: int) -> None:
    only = column("only", 0.1, 0.9, count)
    assert read(only) == texts(only)
