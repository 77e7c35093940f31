"""`[[address|label]]` and `[^claim]` in the Markdown of pages. Code is left alone: what stands in it is no link."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from apps.wiki.slugs import link_key

#: Handles by which a model names passages; none may stay in a text (contract content 5.2).
_HANDLE = re.compile(r" ?\[c\d{3,}\]")
_CODE = re.compile(
    r"(?P<fence>^[ ]{0,3}(?P<mark>`{3,}|~{3,})[^\n]*\n(?:.*?\n)??[ ]{0,3}(?P=mark)[`~]*[ \t]*(?=\n|\Z)"
    r"|^[ ]{0,3}(?:`{3,}|~{3,})[^\n]*\n.*\Z)"
    r"|(?P<span>(?<!`)(?P<ticks>`+)(?!`)[^\n]*?[^`\n](?P=ticks)(?!`))",
    re.M | re.S,
)
_LINK = re.compile(r"(?<!!)\[\[([^\[\]\n|]{1,1024})(?:\|([^\[\]\n]{0,1024}))?\]\]")
_ANCHOR = re.compile(r"\[\^([A-Za-z0-9_-]{1,32})\](?!:)")


@dataclass(frozen=True, slots=True)
class Link:
    """One link as it stands in a text. `key` is what it is looked up by, `heading` follows `#`, `label` is what is read (or empty)."""

    key: str
    target: str
    label: str
    heading: str = ""

    @property
    def text(self) -> str:
        return self.label or self.target


def prose(text: str) -> Iterator[tuple[bool, str]]:
    """(whether it is prose, the piece) of a text in order; the other pieces are code."""
    at = 0
    for found in _CODE.finditer(text):
        if found.start() > at:
            yield True, text[at : found.start()]
        yield False, found[0]
        at = found.end()
    if at < len(text):
        yield True, text[at:]


def _link(found: re.Match[str]) -> Link:
    whole = found[1].rstrip("\\")  # a bar inside a table is written \\|
    target, _hash, heading = whole.partition("#")
    return Link(link_key(whole), target.strip() or whole.strip(), (found[2] or "").strip(), heading.strip())


def links_of(text: str) -> list[Link]:
    """The links of a text, each key once, with its first label."""
    seen: dict[str, Link] = {}
    for is_prose, piece in prose(text):
        for found in _LINK.finditer(piece) if is_prose and "[[" in piece else ():
            link = _link(found)
            if link.key:
                seen.setdefault(link.key, link)
    return list(seen.values())


def with_links(text: str, written: Callable[[Link], str | None]) -> str:
    """The text with each link written anew; None leaves one as it stands."""

    def one(found: re.Match[str]) -> str:
        link = _link(found)
        made = written(link) if link.key else None
        return found[0] if made is None else made

    return "".join(_LINK.sub(one, piece) if is_prose and "[[" in piece else piece for is_prose, piece in prose(text))


def written_link(slug: str, label: str = "", heading: str = "") -> str:
    """A link as it is written; a label that would end it early is put right."""
    target = f"{slug}#{heading}" if heading else slug
    label = label.replace("[", "(").replace("]", ")").replace("\n", " ").replace("|", "/").strip()
    return f"[[{target}|{label}]]" if label and label != target else f"[[{target}]]"


def anchors_of(text: str) -> list[str]:
    """The claims named in a text, each once, in order."""
    found = (anchor for is_prose, piece in prose(text) if is_prose for anchor in _ANCHOR.findall(piece))
    return list(dict.fromkeys(found))


def without_anchors(text: str, *, unless: Callable[[str], bool] = lambda _anchor: False) -> str:
    """The text without marks of claims, but for those kept."""
    return "".join(
        _ANCHOR.sub(lambda found: found[0] if unless(found[1]) else "", piece) if is_prose else piece for is_prose, piece in prose(text)
    )


def marked(text: str, written: Callable[[Link], str | None], mark: Callable[[str], str | None]) -> str:
    """The text with each link and each mark of a claim written anew; None leaves one as it stands."""
    linked = with_links(text, written)
    return "".join(
        _ANCHOR.sub(lambda found: found[0] if (made := mark(found[1])) is None else made, piece) if is_prose else piece
        for is_prose, piece in prose(linked)
    )


def cleaned(text: str) -> str:
    """A text as it is kept: one kind of line end, no NUL, no handles of passages, no blank lines around it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    return _HANDLE.sub("", text).strip("\n")


def plain(text: str) -> str:
    """The text that is searched: links as they read, no marks of claims."""
    return without_anchors(with_links(text, lambda link: link.text))
