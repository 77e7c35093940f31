"""Messages of a conversation as the page shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.chat.models import ChatSession, Message
from apps.chat.selectors import CitedPassage, body_of, citations_of_messages
from apps.common.actor import Actor
from apps.llm.failures import failure_of
from apps.portal import links
from apps.portal.asking.marks import answer_html, cite_url, question_html
from apps.portal.reader.places import place_text
from apps.retrieval.selectors import highlights, without_references

_HEADING = re.compile(r"(?m)^#{1,6}\s+")
_MARKS = re.compile(r"\s*\[\d{1,4}\]")
LEVELS = {"strong": 3, "weak": 2, "none": 0}


@dataclass(frozen=True, slots=True)
class Source:
    """A cited passage under an answer. `level` as in components/evidence_bar.html."""

    number: int
    title: str
    place: str
    href: str
    level: int | None
    note: str
    gone: bool


@dataclass(slots=True)
class Shown:
    """A message on the page."""

    message: Message
    html: SafeString | str = ""
    plain: str = ""
    stage: str = ""
    stage_kind: str = ""  # ok | none | failed | skipped
    why_href: str = ""
    sources: list[Source] = field(default_factory=list)
    others: list[Source] = field(default_factory=list)
    label: str = ""
    follow_ups: list[dict[str, Any]] | None = None  # offered after it; None: not made yet
    next_step: str = ""  # not_found | anyway | again | ""
    search_href: str = ""
    base_href: str = ""

    @property
    def is_answer(self) -> bool:
        return bool(self.message.role == Message.Role.ASSISTANT)

    @property
    def key(self) -> str:
        return str(self.message.uid)

    @property
    def is_live(self) -> bool:
        return self.message.is_live


def shown(actor: Actor, session: ChatSession, messages: Sequence[Message]) -> list[Shown]:
    """The messages with everything their page shows; constant number of queries."""
    cited = citations_of_messages(actor=actor, messages=messages)
    questions = {message.pk: message for message in messages if message.role == Message.Role.USER}
    return [
        _answer(session, message, cited[message.pk], questions.get(message.parent_id or 0))
        if message.role == Message.Role.ASSISTANT
        else Shown(message, html=question_html(message.content), plain=message.content)
        for message in messages
    ]


def _answer(session: ChatSession, message: Message, passages: list[CitedPassage], question: Message | None) -> Shown:
    space_id = session.space_id
    titles = {passage.citation.number: passage.citation.document_title for passage in passages}
    found = Shown(message, plain=body_of(message.content))
    found.html = answer_html(space_id, session.uid, message.uid, message.content, titles, message.support)
    found.stage, found.stage_kind = stage_of(message.search)
    found.label = label_of(message)
    levels = _levels(message)
    rows = [_source(session, message, passage, levels) for passage in passages]
    found.sources = [row for row, passage in zip(rows, passages, strict=True) if passage.citation.is_cited]
    found.others = [row for row, passage in zip(rows, passages, strict=True) if not passage.citation.is_cited]
    asked = question.content if question is not None else ""
    bases = (question.request.get("knowledge_base_ids") or []) if question is not None else []
    found.search_href = f"{reverse('quick-search', args=[space_id])}?{urlencode({'q': asked[:400]})}"
    if len(bases) == 1:
        found.base_href = reverse("base-documents", args=[space_id, bases[0]])
        found.why_href = f"{reverse('base-test', args=[space_id, bases[0]])}?{urlencode({'q': asked[:400]})}"
    found.next_step = _next(message)
    found.follow_ups = message.suggestions["questions"] if message.suggestions else None
    return found


def _next(message: Message) -> str:
    if message.reason == "not_found":
        return "not_found"
    if message.reason in ("skip_about_assistant", "skip_too_short", "skip_export"):
        return "anyway"
    return "again" if message.state == Message.State.FAILED or message.reason == "search_failed" else ""


def _levels(message: Message) -> dict[int, int]:
    """{number: how well the best sentence that cites it is backed}."""
    found: dict[int, int] = {}
    for row in message.support:
        for number in row.get("numbers", []):
            found[number] = max(found.get(number, 0), LEVELS.get(str(row.get("level")), 0))
    return found


def _source(session: ChatSession, message: Message, passage: CitedPassage, levels: dict[int, int]) -> Source:
    citation = passage.citation
    notes = {"changed": _("changed since"), "moved": _("read again since")}
    return Source(
        number=citation.number,
        title=citation.document_title,
        place=place_text(citation.positions) or " › ".join(citation.heading_path[-1:]),
        href=cite_url(session.space_id, session.uid, message.uid, citation.number),
        level=levels.get(citation.number),
        note=notes.get(passage.state, ""),
        gone=passage.is_gone,
    )


def stage_of(search: dict[str, Any]) -> tuple[str, str]:
    """(what was looked up in a sentence, kind of its mark)."""
    if not search:
        return "", ""
    if not search.get("searched"):
        return _("Nothing was looked up"), "skipped"
    if search.get("error"):
        return _("The search failed; answered without it"), "failed"
    bases = ngettext("Searched %(count)d knowledge base", "Searched %(count)d knowledge bases", search["bases"]) % {
        "count": search["bases"]
    }
    seconds = _("%(seconds)s s") % {"seconds": f"{search.get('took_ms', 0) / 1000:.2f}"}
    if not search.get("used"):
        return _("%(bases)s, nothing fits · %(seconds)s") % {"bases": bases, "seconds": seconds}, "none"
    counts = {"bases": bases, "found": search["found"], "used": search["used"], "seconds": seconds}
    return _("%(bases)s, found %(found)d passages, used %(used)d · %(seconds)s") % counts, "ok"


def label_of(message: Message) -> str:
    """Who wrote an answer, and what happened on the way."""
    if message.state == Message.State.STOPPED:
        return _("Stopped")
    if message.reason == "interrupted":
        return _("The portal was restarted while this answer was written")
    if message.answerer == Message.Answerer.MODEL:
        return message.model_name
    if message.answerer != Message.Answerer.EXTRACTIVE:
        return ""
    if message.reason == "no_model":
        return _("Extracted, no language model is configured")
    if message.reason in ("built_in", ""):
        return _("Extracted, without a language model")
    if message.reason == "model_gone":
        return _("Extracted, the chosen model no longer exists")
    return _("Extracted: %(why)s") % {"why": failure_of(message.reason).why}


def cited_context(actor: Actor, session: ChatSession, message: Message, passage: CitedPassage) -> dict[str, Any]:
    """What the dock shows of a citation: the passage as it was, where the answer leans on it, and what became of its source."""
    citation = passage.citation
    href = ""
    if passage.document is not None:
        href = links.reader_url(session.space_id, citation.document_uid)
        href = f"{href}?{urlencode({'chunk': str(citation.chunk_uid)})}" if href and passage.state != "moved" else href
    question = message.parent.content if message.parent is not None else ""
    return {
        "passage": passage,
        "citation": citation,
        "place": place_text(citation.positions),
        "heading": " › ".join(citation.heading_path),
        "base_name": citation.row.get("kb_name", ""),
        "pieces": _pieces(passage.content, message, citation.number, question),
        "current": passage.current if passage.state == "changed" else "",
        "href": href,
        "asked_again": f"[[passage:{citation.chunk_uid}|{citation.document_title}]] ".replace("\n", " "),
    }


def _pieces(text: str, message: Message, number: int, question: str) -> list[tuple[str, bool]]:
    """The passage cut at what the answer took from it: word for word where it did, else the words asked for."""
    ranges: list[tuple[int, int]] = []
    body = body_of(message.content)
    for row in message.support:
        if number in row.get("numbers", []):
            claim = without_marks(body[row["start"] : row["end"]])
            at = text.find(claim) if len(claim) > 3 else -1
            if at >= 0:
                ranges.append((at, at + len(claim)))
    ranges = sorted(ranges) or list(highlights(text, question))
    pieces: list[tuple[str, bool]] = []
    last = 0
    for start, end in ranges:
        if start < last:
            continue
        pieces += [(text[last:start], False), (text[start:end], True)]
        last = end
    return [(_HEADING.sub("", piece), hit) for piece, hit in [*pieces, (text[last:], False)] if piece]


def without_marks(text: str) -> str:
    """A sentence without its marks and the mark of a list."""
    return _MARKS.sub("", text).strip().removeprefix("- ").strip()


def exported(session: ChatSession, rows: Sequence[Shown]) -> str:
    """A conversation as Markdown, sources as they were cited."""
    lines = [f"# {session.title or _('Conversation')}", ""]
    for row in rows:
        if not row.is_answer:
            lines += [f"## {without_references(row.message.content) or row.message.content}", ""]
            continue
        lines += [row.plain, ""]
        if row.label:
            lines += [f"*{row.label}*", ""]
        for source in row.sources:
            state = _("deleted") if source.gone else source.note
            place = f", {source.place}" if source.place else ""
            lines.append(f"- [{source.number}] {source.title}{place}{f' ({state})' if state else ''}")
            if text := _quoted(row, source.number):
                lines += [f"  > {line}" for line in text.splitlines() if line.strip()]
        if row.sources:
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _quoted(row: Shown, number: int) -> str:
    citation = next((citation for citation in row.message.citations.all() if citation.number == number), None)
    gone = next((source.gone for source in row.sources if source.number == number), True)
    return citation.content if citation is not None and not gone else ""
