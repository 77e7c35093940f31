"""Small pieces of Markdown that every kind of block needs."""

from __future__ import annotations

import re
from collections.abc import Sequence


def styled(text: str, *, bold: bool = False, italic: bool = False, strike: bool = False, code: bool = False, link: str = "") -> str:
    """A run of text with its marks; white space stays outside of them, as Markdown wants it."""
    inner = text.strip()
    if not inner:
        return text
    if code and "`" not in inner:
        inner = f"`{inner}`"
    if strike:
        inner = f"~~{inner}~~"
    if italic:
        inner = f"*{inner}*"
    if bold:
        inner = f"**{inner}**"
    if re.match(r"https?://|mailto:", link):
        inner = f"[{inner}]({link.replace(')', '%29').replace(' ', '%20')})"
    start = len(text) - len(text.lstrip())
    return text[:start] + inner + text[start + len(text.strip()) :]


def indented(text: str, spaces: int) -> str:
    """Every line but empty ones moved to the right."""
    pad = " " * spaces
    return "\n".join(pad + line if line.strip() else line for line in text.split("\n"))


def quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def fenced(code: str, language: str = "") -> str:
    fence = "`" * max(3, max((len(run) for run in re.findall(r"`+", code)), default=0) + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a table, the first one as its head; "" for none."""
    width = max((len(row) for row in rows), default=0)
    if not width:
        return ""
    cells = [[re.sub(r"\s*\n\s*", "<br>", cell.strip()).replace("|", "\\|") for cell in row] + [""] * (width - len(row)) for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])
