"""The left side of the reader: how a document is shown, and which part of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.markdown import MAX_CHARS, page, render
from apps.knowledge.models import Chunk, Document
from apps.knowledge.selectors import document_original
from apps.knowledge.selectors.passages import SHOWN, passage_spans
from apps.portal import links
from apps.portal.reader.drawing import Marker, draw_part
from apps.portal.reader.passages import Asked, boxes_of, reader_address
from apps.portal.reader.pictures import pictures_of
from apps.portal.reader.source import Part, Source, part_label
from apps.retrieval.selectors import highlights

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})
NUMBERED = frozenset("txt log csv tsv json yaml yml ini toml conf properties xml srt vtt tex rst".split())
MARKDOWN = frozenset({"md", "markdown", "manual"})
WEB = frozenset({"text/html", "application/xhtml+xml"})
LONGEST_MENU = 400


def kind_of(document: Document) -> str:
    """How the original can be shown: "pdf", "image", "markdown", "web" or "text" (what was read of it)."""
    if document.type == Document.Type.MANUAL:
        return "markdown"
    if not document.storage_path:
        return "text"
    if document.media_type == "application/pdf":
        return "pdf"
    if document.media_type in PICTURES:
        return "image"
    if document.media_type in WEB:
        return "web"
    return "markdown" if document.file_type in MARKDOWN else "text"


def original_context(actor: Actor, document: Document, source: Source | None, asked: Asked, chosen: Chunk | None) -> dict[str, Any]:
    """Context of `portal/_original.html`."""
    kind = kind_of(document)
    view = asked.view
    if kind in ("pdf", "image"):
        view = "text" if asked.view == "text" and source else kind
    elif kind in ("markdown", "web"):
        view = "formatted" if asked.view == "formatted" else "text"
    else:
        view = "text"
    context: dict[str, Any] = {
        "view": view,
        "views": _views(document, kind, view, asked, has_text=source is not None),
        "preview_src": links.preview_url(actor, document),
        "download_href": links.download_url(actor, document),
    }
    if view == "formatted":
        context["formatted"] = formatted(actor, document)
    if source is None:
        return context
    if view == "pdf" and chosen is not None and chosen.chunk_type in SHOWN:
        boxes = boxes_of(source, chosen)
        context |= {"boxes": json.dumps(boxes), "open_page": boxes[0]["page"] if boxes else _page_of(chosen)}
    elif view == "pdf" and chosen is not None:
        context["open_page"] = _page_of(chosen)
    parts = _parts(source, asked, chosen)
    return {**context, **part_context(actor, document, source, parts, asked, chosen), **_navigation(document, source, parts[0], asked)}


def _page_of(chunk: Chunk) -> int | None:
    return next((position["page"] for position in chunk.positions if "page" in position), None)


def _views(document: Document, kind: str, view: str, asked: Asked, *, has_text: bool) -> list[dict[str, Any]]:
    """The switch between ways to show the same document; empty when there is only one."""
    names = {"pdf": _("Original"), "image": _("Original"), "formatted": _("Formatted"), "text": _("Text as read")}
    choices = {"pdf": ["pdf", "text"], "image": ["image", "text"], "markdown": ["text", "formatted"], "web": ["text", "formatted"]}.get(
        kind, []
    )
    if not has_text:
        choices = [name for name in choices if name != "text"]
    if len(choices) < 2:
        return []
    address = reader_address(document)
    return [
        {
            "label": names[name],
            "href": f"{address}?{asked.query(view=name if name in ('text', 'formatted') and name != choices[0] else '')}",
            "current": name == view,
        }
        for name in choices
    ]


def _parts(source: Source, asked: Asked, chosen: Chunk | None) -> list[Part]:
    """The part asked for; else those that hold the chosen passage, from its first character to its last; else the first."""
    if asked.part:
        return [source.parts[min(asked.part, len(source.parts)) - 1]]
    if chosen is not None and chosen.chunk_type in SHOWN:
        first, last = source.part_at(chosen.start_at), source.part_at(max(chosen.start_at, chosen.end_at - 1))
        return source.parts[first.number - 1 : last.number]
    return [source.parts[0]]


def part_context(
    actor: Actor, document: Document, source: Source, parts: Sequence[Part], asked: Asked, chosen: Chunk | None
) -> dict[str, Any]:
    """Context of `portal/_part.html`: the sections of consecutive parts, every run tied to its passages."""
    start, end = parts[0].start, parts[-1].end
    passages = passage_spans(actor=actor, document=document, start=start, end=end)
    words: Sequence[tuple[int, int]] = ()
    if asked.q:
        words = [(low + start, high + start) for low, high in highlights(source.text[start:end], asked.q)]
    index = chosen.chunk_index if chosen is not None and chosen.chunk_type != Chunk.Type.PARENT else None  # a picture's is its passage's
    marker = Marker(source.text, passages, words, index, pictures_of(actor, [source.text[start:end]]))
    numbered = document.file_type in NUMBERED and document.type != Document.Type.MANUAL
    address = reader_address(document)
    more = asked.query(chunk="", page=0, find="", state="", part=0)
    joint = f"{address}?{more}{'&' if more else ''}"
    before, after = parts[0].number - 1, parts[-1].number + 1
    has_after = after <= len(source.parts)
    return {
        "part": parts[0],
        "drawn": [{"number": part.number, "sections": draw_part(source.text, part, marker, numbered=numbered)} for part in parts],
        "before_href": f"{address}?{asked.query(part=before, chunk='')}" if before else "",
        "before_more": f"{joint}part={before}&more=before" if before else "",
        "after_href": f"{address}?{asked.query(part=after, chunk='')}" if has_after else "",
        "after_more": f"{joint}part={after}&more=after" if has_after else "",
    }


def _navigation(document: Document, source: Source, part: Part, asked: Asked) -> dict[str, Any]:
    """Sheets as tabs, everything else as a list of parts to jump to."""
    address = reader_address(document)
    total = len(source.parts)
    firsts: dict[str, Part] = {}
    for each in source.parts:
        if name := each.pieces[0].position.get("sheet"):
            firsts.setdefault(str(name), each)
    current = part.pieces[0].position.get("sheet")
    sheets = [
        {"label": name, "href": f"{address}?{asked.query(part=first.number, chunk='')}", "current": name == current}
        for name, first in firsts.items()
    ]
    options: list[tuple[int, str]] = []
    if total > 1:
        step = max(1, -(-total // LONGEST_MENU))
        shown = {*range(0, total, step), part.number - 1}
        options = [(number + 1, part_label(source.parts[number], total)) for number in sorted(shown)]
    return {"sheets": sheets if len(sheets) > 1 else [], "part_options": options, "part_total": total}


def formatted(actor: Actor, document: Document) -> Any:
    """The Markdown or HTML of the original as a reader sees it. SECURITY: both come sanitised out of `apps.common.markdown`."""
    original = document_original(actor=actor, document=document, action="document.read")
    with original.source as source:
        raw = source.read(MAX_CHARS * 4)
    try:
        text = raw.decode(original.encoding or "utf-8", "replace")
    except LookupError:
        text = raw.decode("utf-8", "replace")
    text = text.lstrip("\ufeff")
    if kind_of(document) == "web":
        return page(text)
    return render(text, {url: picture.src for url, picture in pictures_of(actor, [text]).items()})


def live_address(document: Document) -> str:
    return reverse("document-live", args=[document.space_id, document.uid])
