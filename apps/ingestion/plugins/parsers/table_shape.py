"""Which rows of a table name its columns; merged cells are already filled."""

from __future__ import annotations

from collections.abc import Sequence


def is_number(text: str) -> bool:
    """Whether a cell shows an amount: digits, signs, separators, currency, percent."""
    bare = text.strip().lstrip("-+¥￥$€£(").rstrip("%)").replace(",", "")
    return bool(bare) and bare.replace(".", "", 1).isdigit()


def is_header(cells: Sequence[str]) -> bool:
    """Names of columns: words (or years beside words), at least two different ones; in a single column any word."""
    filled = [c for c in cells if c]
    if len(set(filled)) < 2:
        return len(cells) == 1 and len(filled) == 1 and not is_number(filled[0])
    return all(not is_number(c) or (c.isdigit() and 1900 <= int(c) <= 2100 and not is_number(filled[0])) for c in filled)


def is_second_header(header: Sequence[str], second: Sequence[str]) -> bool:
    """Names below names: some column is merged downwards (or the row merely repeats), and some name spans several columns."""
    if list(second) == list(header):
        return True
    spans = any(a and a == b for a, b in zip(header, header[1:], strict=False))
    downwards = any(a and a == b for a, b in zip(header, second, strict=False))
    return spans and downwards and is_header(second)


def join_headers(header: Sequence[str], second: Sequence[str]) -> list[str]:
    """One name per column out of two rows of names: `第一季度 收入`."""
    return [a if a == b or not b else b if not a else f"{a} {b}" for a, b in zip(header, second, strict=True)]
