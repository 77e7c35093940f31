"""What could be asked: question pairs, questions written for passages, and what documents have headings about. Nothing is made up: each
leads to something that is there."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, Literal

from django.utils import translation
from django.utils.translation import gettext as _

from apps.chat.answerers.citations import overlap
from apps.chat.answerers.evidence import is_wide
from apps.chat.models import Citation
from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.common.text import clean_line
from apps.faq.models import FaqEntry
from apps.knowledge.models import Chunk, Document, ParseStatus
from apps.knowledge.services.questions import questions_of

LIMIT, MOST = 6, 20
MAX_QUESTION = 120
RECENT = 12  # documents looked at, latest change first
BESIDE = 8  # passages before and after a cited one whose headings are looked at
_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+(.+)$")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}\Z")
Origin = Literal["faq", "document", "generated", "model"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`text` as it reads; `ask` as it is asked: the document it is about named first, so that it is read."""

    text: str
    ask: str
    source: Origin
    kb_uid: uuid.UUID | None = None

    @property
    def as_row(self) -> dict[str, str]:
        return {"question": self.text, "source": "faq" if self.source == "faq" else "document", "knowledge_base_id": str(self.kb_uid or "")}


def questions_suggested(
    *, actor: Actor, kb_uids: Sequence[uuid.UUID] | None = None, document_uids: Sequence[uuid.UUID] = (), limit: int = LIMIT
) -> list[Suggestion]:
    """Questions the bases (None: all of them) answer, of every kind in turn: question pairs first of all those that are recommended."""
    authorize(actor, "chat.read")
    limit = max(1, min(limit, MOST))
    documents = (
        Document.objects.visible_to(actor).listed().filter(enabled=True).exclude(parse_status=ParseStatus.DRAFT).select_related("kb")
    )
    if document_uids:
        documents = documents.filter(uid__in=list(document_uids))
    if kb_uids is not None:
        documents = documents.filter(kb__uid__in=list(kb_uids))
    latest = list(documents.order_by("-updated_at", "-pk")[:RECENT])
    chunks = _heads(actor, latest)
    kinds = [_of_passages(chunks), _of_headings(chunks)]
    if not document_uids:
        kinds.insert(0, _of_pairs(actor, kb_uids, limit))
    return _distinct(_in_turn(kinds), limit)


def follow_ups_found(*, actor: Actor, citations: Sequence[Citation], body: str, asked: Iterable[str], limit: int) -> list[Suggestion]:
    """What the passages of an answer (`body`) lead on to: pairs it did not use, questions of its passages, headings beside them."""
    authorize(actor, "chat.read")
    pairs = [
        Suggestion(citation.document_title, citation.document_title, "faq", citation.kb_uid)
        for citation in citations
        if not citation.is_cited and citation.row.get("chunk_type") == Chunk.Type.FAQ
    ]
    rows = Chunk.objects.visible_to(actor).select_related("document", "kb").filter(is_enabled=True, document__enabled=True)
    own = {chunk.uid: chunk for chunk in rows.filter(uid__in=[citation.chunk_uid for citation in citations])}
    ordered = [own[citation.chunk_uid] for citation in citations if citation.chunk_uid in own]
    cited = [own[citation.chunk_uid] for citation in citations if citation.is_cited and citation.chunk_uid in own]
    kinds = [iter(pairs), _of_passages(ordered), _of_headings(_beside(rows, cited), known={_used(chunk, body) for chunk in cited})]
    return _distinct(_in_turn(kinds), limit, said=asked)


def _beside(rows: Any, cited: Sequence[Chunk]) -> list[Chunk]:
    """Passages around the cited ones, nearest first."""
    if not cited:
        return []
    places: dict[int, int] = {}
    for chunk in cited:
        places.setdefault(chunk.document_id, chunk.chunk_index)
    lowest, highest = max(0, min(places.values()) - BESIDE), max(places.values()) + BESIDE
    near = rows.filter(document_id__in=list(places), chunk_type=Chunk.Type.TEXT, chunk_index__range=(lowest, highest))
    found = [chunk for chunk in near[:400] if abs(chunk.chunk_index - places[chunk.document_id]) <= BESIDE]
    return sorted(
        found, key=lambda chunk: (chunk.chunk_index <= places[chunk.document_id], abs(chunk.chunk_index - places[chunk.document_id]))
    )


def _of_pairs(actor: Actor, kb_uids: Sequence[uuid.UUID] | None, limit: int) -> Iterator[Suggestion]:
    rows = FaqEntry.objects.visible_to(actor).select_related("kb").filter(is_enabled=True)
    if kb_uids is not None:
        rows = rows.filter(kb__uid__in=list(kb_uids))
    seen: set[int] = set()
    for some in (rows.filter(is_recommended=True), rows):
        for entry in some.order_by("-updated_at", "-pk")[:limit]:
            if entry.pk not in seen:
                seen.add(entry.pk)
                yield Suggestion(entry.standard_question, entry.standard_question, "faq", entry.kb_uid)


def _heads(actor: Actor, documents: Sequence[Document]) -> list[Chunk]:
    """The first passages of documents, one document after the other, in their order."""
    pks = {document.pk: at for at, document in enumerate(documents)}
    rows = Chunk.objects.visible_to(actor).select_related("document", "kb")
    rows = rows.filter(document_id__in=list(pks), is_enabled=True, chunk_index__lt=6).exclude(index_status=Chunk.IndexStatus.FAILED)
    found = rows.exclude(chunk_type=Chunk.Type.PARENT)
    return sorted(found, key=lambda chunk: (pks[chunk.document_id], chunk.chunk_index, chunk.pk))


def _of_passages(chunks: Iterable[Chunk]) -> Iterator[Suggestion]:
    for chunk in chunks:
        for row in questions_of(chunk):
            yield Suggestion(str(row["question"]), str(row["question"]), "generated", chunk.kb_uid)


def _of_headings(chunks: Iterable[Chunk], known: Collection[tuple[int, str]] = ()) -> Iterator[Suggestion]:
    """One question for each heading, documents taking turns; `known`: (document, heading) that were read already."""
    taken = set(known)
    by_document: dict[int, list[Suggestion]] = {}
    for chunk in chunks:
        mine = by_document.setdefault(chunk.document_id, [])
        for heading, _text in _sections(chunk):
            if heading and (chunk.document_id, heading) not in taken:
                taken.add((chunk.document_id, heading))
                mine.append(_about(chunk, heading))
    yield from _in_turn([iter(rows) for rows in by_document.values()])


def _sections(chunk: Chunk) -> list[tuple[str, str]]:
    """(heading, what stands under it) of a passage; headings with nothing under them are left out."""
    pieces = _HEADING.split(chunk.content)
    heading = str(chunk.heading_path[-1]) if chunk.heading_path else ""
    found = [(heading, pieces[0]), *zip(pieces[1::2], pieces[2::2], strict=True)]
    return [(clean_line(name).strip(" #*_:："), text) for name, text in found if text.strip()]


def _used(chunk: Chunk, body: str) -> tuple[int, str]:
    """Under which heading of a passage that stands what an answer took from it."""
    sections = _sections(chunk)
    best = max(sections, key=lambda section: overlap(body, [section[1]])) if sections else ("", "")
    return chunk.document_id, best[0]


def _about(chunk: Chunk, heading: str) -> Suggestion:
    """A question in the language of its document."""
    title = _SUFFIX.sub("", chunk.document.title).strip()
    with translation.override("zh-hans" if is_wide(title + heading) else "en"):
        if heading.casefold() == title.casefold():
            text = _("What does “%(title)s” say?") % {"title": title}
        else:
            text = _("What does “%(title)s” say about %(heading)s?") % {"title": title, "heading": heading}
    label = re.sub(r"[\[\]|\n]", " ", title).strip()
    ask = f"[[document:{chunk.document.uid}|{label}]] {heading}" + ("？" if is_wide(heading) else "?")
    return Suggestion(text, ask, "document", chunk.kb_uid)


def _in_turn(kinds: Sequence[Iterator[Suggestion]]) -> Iterator[Suggestion]:
    return (row for row in chain.from_iterable(zip_longest(*kinds)) if row is not None)


def _distinct(rows: Iterator[Suggestion], limit: int, said: Iterable[str] = ()) -> list[Suggestion]:
    seen = {_key(text) for text in said}
    found: list[Suggestion] = []
    for row in rows:
        text = clean_line(row.text)
        if not text or len(text) > MAX_QUESTION or _key(text) in seen or _key(row.ask) in seen:
            continue
        seen |= {_key(text), _key(row.ask)}
        found.append(row)
        if len(found) == limit:
            break
    return found


def _key(text: str) -> str:
    return re.sub(r"[\s?？。.!！]+", "", text).casefold()
