"""What a message names to be read first: `[[wiki/page.md]]`, `[[document:<id>]]`, `[[passage:<id>]]`, `[[a title]]`, each with `|label`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

RefKind = Literal["page", "document", "passage", "title"]
MAX_REFS = 20

_PAGE = re.compile(r"\[\[(wiki/[^\]\n]+\.md)\]\]")
_ANY = re.compile(r"\[\[([^\[\]\n|]{1,400})(?:\|([^\[\]\n]{0,200}))?\]\]")
_BY_ID = re.compile(r"(document|passage):([0-9a-fA-F-]{32,36})\Z")


@dataclass(frozen=True, slots=True)
class Reference:
    """`value`: path of a page, id of a document or passage, or a title; `label`: what people read; `written`: the whole as it was typed."""

    kind: RefKind
    value: str
    label: str
    written: str


def parse_explicit_page_refs(message: str) -> list[str]:
    """The paths of `[[wiki/....md]]` in a message, each once, in order. Whether they exist is not looked at."""
    return list(dict.fromkeys(_PAGE.findall(message)))


def parse_references(message: str) -> list[Reference]:
    """Everything a message names in double brackets, each once, in order; at most MAX_REFS."""
    found: dict[tuple[str, str], Reference] = {}
    for piece in pieces_of(message):
        if isinstance(piece, Reference):
            found.setdefault((piece.kind, piece.value), piece)
    return list(found.values())[:MAX_REFS]


def pieces_of(message: str) -> list[str | Reference]:
    """The message cut at what it names: put together again it is as it was written."""
    pieces: list[str | Reference] = []
    last = 0
    for match in _ANY.finditer(message):
        value, label = match.group(1).strip(), (match.group(2) or "").strip()
        if not value:
            continue
        kind: RefKind = "title"
        if value.startswith("wiki/") and value.endswith(".md"):
            kind = "page"
        elif by_id := _BY_ID.match(value):
            kind = "document" if by_id.group(1) == "document" else "passage"
            value = by_id.group(2)
        pieces += [message[last : match.start()], Reference(kind, value, label or value, match.group())]
        last = match.end()
    return [*pieces, message[last:]]


def without_references(message: str) -> str:
    """The message as people read it: brackets replaced by their labels, ids without a label left out."""

    def said(match: re.Match[str]) -> str:
        value, label = match.group(1).strip(), (match.group(2) or "").strip()
        return label or ("" if _BY_ID.match(value) else value)

    return " ".join(_ANY.sub(said, message).split())


def question_of(message: str) -> str:
    """What is searched for beside what is named: the message without its brackets; the labels when nothing else is said."""
    rest = " ".join(_ANY.sub(" ", message).split())
    return rest or without_references(message)
