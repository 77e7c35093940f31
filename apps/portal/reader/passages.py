"""The list of passages beside the original: one page of it, with what each row shows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.knowledge.models import Chunk, Document
from apps.knowledge.selectors.passages import State, passage_counts, passage_list, passage_rank
from apps.knowledge.services import questions_of
from apps.portal import links
from apps.portal.reader.pictures import Pictures, Shown, pictures_of, thumbnails
from apps.portal.reader.places import place_text
from apps.portal.reader.source import Source
from apps.retrieval.selectors import highlights

PER_PAGE = 50
STATES: tuple[State, ...] = ("", "on", "off", "edited", "unindexed")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address of a reader says. Anything unreadable counts as not said."""

    chunk: str = ""
    q: str = ""
    find: str = ""
    state: State = ""
    page: int = 0
    part: int = 0
    view: str = ""

    @classmethod
    def read(cls, query: Any) -> Asked:
        def number(name: str) -> int:
            raw = query.get(name, "")
            return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 9 else 0

        state = query.get("state", "")
        view = query.get("view", "")
        return cls(
            chunk=query.get("chunk", "")[:36],
            q=" ".join(query.get("q", "").split())[:400],
            find=query.get("find", "").strip()[:200],
            state=next((known for known in STATES if known == state), ""),
            page=number("page"),
            part=number("part"),
            view=view if view in ("text", "formatted") else "",
        )

    def query(self, **changes: Any) -> str:
        """The query string of this reader with changes; empty values are left out."""
        names = ("chunk", "q", "find", "state", "page", "part", "view")
        values = {**{name: getattr(self, name) for name in names}, **changes}
        return urlencode({name: values[name] for name in names if values[name]})


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A passage as `portal/_passage.html` draws it. `pieces`: (text, is it a word that was looked for)."""

    chunk: Chunk
    number: int
    href: str
    place: str
    heading: str
    pieces: tuple[tuple[str, bool], ...]
    boxes: str
    page: int | None
    chosen: bool
    pictures: tuple[Shown, ...] = ()

    @property
    def is_edited(self) -> bool:
        return self.chunk.content_revision > 0

    @property
    def version(self) -> int:
        return self.chunk.content_revision + 1

    @property
    def questions(self) -> int:
        return len(questions_of(self.chunk))

    @property
    def kind_word(self) -> str:
        return kind_word(self.chunk)


def kind_word(chunk: Chunk) -> str:
    """What a passage is that does not stand in the text itself; "" for one that does."""
    words = {Chunk.Type.IMAGE_OCR: _("Text of a picture"), Chunk.Type.IMAGE_CAPTION: _("Description of a picture")}
    return words.get(Chunk.Type(chunk.chunk_type), "")


def picture_beside(actor: Actor, chunk: Chunk) -> Shown | None:
    """The picture a passage speaks of, from the passage alone; None for passages of the text."""
    word = kind_word(chunk)
    found = re.search(r"resource://[0-9a-f-]{36}", chunk.image_info) if word else None
    return Shown(links.file_url(actor, chunk.space_id, chunk.document.kb.uid, found[0]), word) if found else None


def reader_address(document: Document) -> str:
    return reverse("document-reader", args=[document.space_id, document.uid])


def pieces_of(text: str, spans: Sequence[tuple[int, int]]) -> tuple[tuple[str, bool], ...]:
    """The text cut at the spans: (stretch, whether it is one of the spans)."""
    found, at = [], 0
    for start, end in spans:
        if start > at:
            found.append((text[at:start], False))
        found.append((text[start:end], True))
        at = end
    if at < len(text):
        found.append((text[at:], False))
    return tuple(found)


_MARKS = re.compile(
    r"!\[[^\[\]\n]*\]\(resource://[0-9a-fA-F-]{36}\)|^#{1,6}[ \t]+|^\|(?: ?:?-{3,}:? ?\|)+\n?|^\| ?|(?: *\|)+$|^```.*\n?|(?<=\n)\n+",
    re.MULTILINE,
)


def tidy(text: str, spans: Sequence[tuple[int, int]]) -> tuple[tuple[str, bool], ...]:
    """The text cut at the spans as by `pieces_of`, without the marks of its blocks: `#`, pipes at the ends of a row, rulers, fences."""
    hidden = [found.span() for found in _MARKS.finditer(text)]
    shown: list[tuple[str, bool]] = []
    at = 0
    for piece, is_match in pieces_of(text, spans):
        end, kept = at + len(piece), []
        for start, stop in hidden:
            if stop > at and start < end:
                kept.append(text[at : max(at, start)])
                at = max(at, min(stop, end))
        kept.append(text[at:end])
        at = end
        if joined := "".join(kept):
            shown.append((joined, is_match))
    return tuple(shown)


def _found_in(text: str, find: str) -> list[tuple[int, int]]:
    """Where a text has the words of the filter, letter for letter but for case."""
    low, wanted, spans, at = text.lower(), find.lower(), [], 0
    if len(low) != len(text):  # a letter whose lower case is longer: positions would shift
        low, wanted = text, find
    while wanted and (at := low.find(wanted, at)) >= 0:
        spans.append((at, at + len(wanted)))
        at += len(wanted)
    return spans


def boxes_of(source: Source, chunk: Chunk) -> list[dict[str, Any]]:
    """Where a passage stands on the pages; a picture's own rectangle for what is said of it."""
    if chunk.chunk_type == Chunk.Type.TEXT:
        return source.boxes(chunk.start_at, chunk.end_at)
    places = [place for place in chunk.positions if place.get("bbox") and place.get("page")]
    return [
        {"page": place["page"], "x": box[0], "y": box[1], "w": box[2] - box[0], "h": box[3] - box[1]}
        for place in places
        for box in [place["bbox"]]
    ]


def row_of(document: Document, chunk: Chunk, source: Source | None, asked: Asked, chosen: Chunk | None, pictures: Pictures) -> PassageRow:
    """A row of the list; `pictures` of what `named_in` gives."""
    spans = _found_in(chunk.content, asked.find) if asked.find else highlights(chunk.content, asked.q) if asked.q else ()
    boxes = boxes_of(source, chunk) if source else []
    page = next((position["page"] for position in chunk.positions if "page" in position), None)
    return PassageRow(
        chunk=chunk,
        number=chunk.chunk_index + 1,
        href=f"{reader_address(document)}?{asked.query(chunk=chunk.uid, part=0, page=0)}#here",
        place=place_text(chunk.positions),
        heading=" › ".join(chunk.heading_path),
        pieces=tidy(chunk.content, spans),
        boxes=json.dumps([{name: round(value, 5) for name, value in box.items()} for box in boxes]) if boxes else "",
        page=boxes[0]["page"] if boxes else page,  # type: ignore[arg-type]
        chosen=chosen is not None and chosen.pk == chunk.pk,
        pictures=thumbnails(pictures, named_in(chunk)),
    )


def named_in(chunk: Chunk) -> str:
    """The text that names the pictures shown with a passage."""
    if chunk.chunk_type == Chunk.Type.TEXT:
        return chunk.content
    return "".join(f"![]({url})" for url in re.findall(r"resource://[0-9a-f-]{36}", chunk.image_info)[:1])


def passages_context(actor: Actor, document: Document, source: Source | None, asked: Asked, chosen: Chunk | None) -> dict[str, Any]:
    """Context of `portal/_passages.html`: the page of the list that was asked for, else the one with the chosen passage."""
    rows = passage_list(actor=actor, document=document, keyword=asked.find, state=asked.state)
    counts = passage_counts(actor=actor, document=document)
    total = rows.count() if asked.find or asked.state else counts["all"]
    pages = max(1, -(-total // PER_PAGE))
    page = min(asked.page, pages)
    if not page:
        rank = passage_rank(actor=actor, chunk=chosen, keyword=asked.find, state=asked.state) if chosen else None
        page = rank // PER_PAGE + 1 if rank is not None else 1
    shown = list(rows[(page - 1) * PER_PAGE : page * PER_PAGE])
    pictures = pictures_of(actor, map(named_in, shown))
    address = reader_address(document)
    here = {"from": (page - 1) * PER_PAGE + 1 if total else 0, "to": min(page * PER_PAGE, total), "total": f"{total:,}"}
    return {
        "passages": [row_of(document, chunk, source, asked, chosen, pictures) for chunk in shown],
        "passages_total": total,
        "passages_counts": counts,
        "passages_pages": pages,
        "passages_text": _("%(from)d–%(to)d of %(total)s") % here,
        "passages_previous": f"{address}?{asked.query(page=page - 1)}" if page > 1 else "",
        "passages_next": f"{address}?{asked.query(page=page + 1)}" if page < pages else "",
        "passages_states": [
            {"label": label, "href": f"{address}?{asked.query(state=state, page=0)}", "current": asked.state == state}
            for state, label in (("", _("All")), ("off", _("Off")), ("edited", _("Edited")), ("unindexed", _("Not indexed")))
            if state != "unindexed" or counts["unindexed"] or asked.state == state
        ],
    }
