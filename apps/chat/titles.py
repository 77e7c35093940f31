"""What a conversation is called."""

from __future__ import annotations

from apps.common.text import clean_line
from apps.retrieval.selectors import without_references

TITLE_CHARS = 40


def title_of(question: str) -> str:
    """A question as the name of its conversation: one line, its first clause, at most TITLE_CHARS characters."""
    line = clean_line(without_references(question)).strip(" ?？。.!！")
    if len(line) <= TITLE_CHARS:
        return line
    cut = line[:TITLE_CHARS]
    space = cut.rfind(" ")
    return (cut[:space] if space > TITLE_CHARS // 2 else cut).rstrip(" ,，、:：;；") + "…"
