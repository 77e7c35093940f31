"""Documents by name and passages by content, over every base of a space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors import as_uuid, base_list, document_search
from apps.portal import links
from apps.portal.document_rows import ICONS, type_of
from apps.portal.finding.test_page import passage_href
from apps.portal.reader.passages import kind_word, picture_beside, pieces_of, tidy
from apps.portal.reader.pictures import Shown
from apps.portal.reader.places import place_text
from apps.retrieval.models import RetrievalLog
from apps.retrieval.selectors import Options, Passage, Scope, highlights, search_asked, snippet

PALETTE_DOCUMENTS = 5
PALETTE_PASSAGES = 8
PALETTE_WIDTH = 90
PER_PAGE = 20
DEPTH = 200
NAMED = 10
NEAR = 5


@dataclass(frozen=True, slots=True)
class SpaceQuery:
    """What the address asks for. `kind`: "" for both, documents or passages; `base`: id of the only base to look in."""

    q: str = ""
    base: str = ""
    kind: str = ""
    page: int = 1

    @classmethod
    def read(cls, query: Any) -> SpaceQuery:
        page, kind = query.get("page", ""), query.get("kind", "")
        return cls(
            q=" ".join(query.get("q", "").split())[:400],
            base=query.get("base", "").strip()[:36],
            kind=kind if kind in ("documents", "passages") else "",
            page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 5 and int(page) else 1,
        )

    def href(self, address: str, **changes: Any) -> str:
        asked = replace(self, **{"page": 1, **changes})
        values = {"q": asked.q, "base": asked.base, "kind": asked.kind, "page": asked.page if asked.page > 1 else ""}
        return f"{address}?{urlencode({name: value for name, value in values.items() if value})}"


@dataclass(frozen=True, slots=True)
class Found:
    """One line of the results: a document by its name, or a passage with the words that match."""

    href: str
    icon: str
    title: tuple[tuple[str, bool], ...]
    pieces: tuple[tuple[str, bool], ...]
    place: str
    heading: str
    base: str
    base_href: str
    document: Document
    question: str = ""
    kind: str = ""
    picture: Shown | None = None


def search_address(space_id: int | None) -> str:
    return reverse("quick-search", args=[space_id])


def icon_of(document: Document) -> str:
    kind = type_of(document)
    return ICONS.get(kind, "globe" if kind == "url" else "file")


def palette_context(actor: Actor, q: str) -> dict[str, Any]:
    """Context of components/palette_results.html: by name, by content, and the way to the whole page. Words only: it answers while one
    types."""
    if not q:
        return {"groups": [], "query": ""}
    try:
        documents, count = document_search(actor=actor, keyword=q, limit=PALETTE_DOCUMENTS)
        options = Options(limit=PALETTE_PASSAGES, mode="text")
        hits = search_asked(actor=actor, door=RetrievalLog.Door.PALETTE, query=q, scope=Scope(), options=options).hits
    except DomainError as error:
        return {"groups": [], "query": q, "error": str(error), "retry_href": f"{search_address(actor.space_id)}?{urlencode({'q': q})}"}
    groups = []
    if documents:
        entries = [
            {
                "href": links.document_url(each),
                "icon": icon_of(each),
                "pieces": pieces_of(each.title, highlights(each.title, q)),
                "label": each.title,
                "note": each.kb.name,
            }
            for each in documents
        ]
        groups.append({"label": _("Documents"), "entries": entries})
    if hits:
        groups.append({"label": _("Passages"), "entries": [_palette_passage(hit, q) for hit in hits]})
    whole = f"{search_address(actor.space_id)}?{urlencode({'q': q})}"
    if groups:
        everything = {"href": whole, "icon": "search", "label": _("All results for “%(query)s”") % {"query": q}, "note": ""}
        groups.append({"label": _("Everything"), "entries": [everything]})
    return {"groups": groups, "query": q, "whole_href": whole, "documents_total": count}


def _palette_passage(hit: Passage, q: str) -> dict[str, Any]:
    cut = snippet(hit.chunk.content, q, PALETTE_WIDTH)
    note = " · ".join(filter(None, (place_text(hit.chunk.positions), hit.document.kb.name)))
    return {
        "href": passage_href(hit.document, hit.chunk, q),
        "icon": icon_of(hit.document),
        "pieces": [(text.replace("\n", " "), is_match) for text, is_match in tidy(cut.text, cut.spans)],
        "label": hit.document.title,
        "sub": hit.document.title,
        "note": note,
    }


def results_context(actor: Actor, asked: SpaceQuery) -> dict[str, Any]:
    """Context of `portal/search.html`."""
    bases = [row.base for row in base_list(actor=actor)]
    address = search_address(actor.space_id)
    chosen = next((base for base in bases if base.uid == as_uuid(asked.base)), None) if asked.base else None
    context: dict[str, Any] = {
        "asked": asked,
        "address": address,
        "bases": bases,
        "base_items": _base_items(bases, chosen, asked, address),
        "kind_items": [
            {"label": label, "href": asked.href(address, kind=kind), "current": asked.kind == kind}
            for kind, label in (("", _("All")), ("documents", _("Documents")), ("passages", _("Passages")))
        ],
        "chosen_base": chosen,
        "clear_base": asked.href(address, base=""),
        "here_href": asked.href(address),
        "crumbs": [{"label": _("Search")}],
    }
    if not asked.q:
        return context
    try:
        return {**context, **_results(actor, asked, [chosen] if chosen else bases, address)}
    except DomainError as error:
        return {**context, "error": error}


def _base_items(bases: Sequence[KnowledgeBase], chosen: KnowledgeBase | None, asked: SpaceQuery, address: str) -> list[dict[str, Any]]:
    whole = {"label": _("All knowledge bases"), "href": asked.href(address, base=""), "checked": "true" if chosen is None else "false"}
    rows = [
        {"label": base.name, "href": asked.href(address, base=str(base.uid)), "checked": "true" if base is chosen else "false"}
        for base in bases
    ]
    return [whole, *rows]


def _results(actor: Actor, asked: SpaceQuery, bases: Sequence[KnowledgeBase], address: str) -> dict[str, Any]:
    wanted = {base.pk for base in bases}
    named, named_total = [], 0
    if asked.kind != "passages" and bases:
        found, total = document_search(actor=actor, keyword=asked.q, limit=100 if len(wanted) == 1 or asked.kind else NAMED)
        named = [document for document in found if document.kb_id in wanted]
        named_total = total if not asked.base else len(named)
    hits: list[Passage] = []
    near: list[Passage] = []
    legs: dict[str, Any] = {}
    took = 0.0
    if asked.kind != "documents" and bases:
        options = Options(limit=DEPTH)
        scope = Scope(kb_uids=tuple(base.uid for base in bases))
        answer = search_asked(actor=actor, door=RetrievalLog.Door.PAGE, query=asked.q, scope=scope, options=options)
        legs, took = answer.legs, answer.took_ms
        # A vector is always near something: what shares no word with the question stands apart and never hides that nothing was found.
        hits = [hit for hit in answer.hits if hit.exact or hit.text_leg]
        near = [hit for hit in answer.hits if not (hit.exact or hit.text_leg)][:NEAR]
    rows = named if asked.kind == "documents" else hits
    pages = max(1, -(-len(rows) // PER_PAGE))
    page = min(asked.page, pages)
    start = (page - 1) * PER_PAGE
    shown = hits[start : start + PER_PAGE]
    names = named[start : start + PER_PAGE] if asked.kind == "documents" else named[:NAMED] if page == 1 else []
    return {
        "documents": [_document(each, asked.q) for each in names],
        "documents_total": named_total,
        "groups": _grouped([_passage(actor, hit, asked.q) for hit in shown]),
        "passages_total": len(hits),
        "near": [_passage(actor, hit, asked.q) for hit in near] if page == pages else [],
        "is_deep": len(hits) >= DEPTH,
        "words_only": legs.get("vector", {}).get("status") == "unavailable",
        "words_only_why": str(legs.get("vector", {}).get("reason", "")),
        "nothing": not names and not shown,
        "searched": [base.name for base in bases],
        "took": f"{took:.0f}",
        "pages": {
            "count": pages,
            "text": _("%(from)d–%(to)d of %(total)d")
            % {"from": start + 1 if rows else 0, "to": min(start + PER_PAGE, len(rows)), "total": len(rows)},
            "previous": asked.href(address, page=page - 1) if page > 1 else "",
            "next": asked.href(address, page=page + 1) if page < pages else "",
            "items": [
                {"number": number, "href": asked.href(address, page=number), "current": number == page}
                for number in range(1, min(pages, 10) + 1)
            ],
        },
    }


def _document(document: Document, q: str) -> Found:
    title = pieces_of(document.title, highlights(document.title, q))
    folder = document.folder_path.replace("/", " / ")
    return Found(
        links.document_url(document), icon_of(document), title, (), "", folder, document.kb.name, links.base_url(document.kb), document
    )


def _passage(actor: Actor, hit: Passage, q: str) -> Found:
    cut, document = hit.snippet, hit.document
    return Found(
        href=passage_href(document, hit.chunk, q),
        icon=icon_of(document),
        title=pieces_of(document.title, highlights(document.title, q)),
        pieces=tidy(cut.text, cut.spans),
        place=place_text(hit.chunk.positions),
        heading=" › ".join(hit.chunk.heading_path),
        base=document.kb.name,
        base_href=links.base_url(document.kb),
        document=document,
        question=hit.question,
        kind=kind_word(hit.chunk),
        picture=picture_beside(actor, hit.chunk),
    )


def _grouped(rows: Sequence[Found]) -> list[dict[str, Any]]:
    """By base, in the order in which their best passages come."""
    groups: dict[int, dict[str, Any]] = {}
    for row in rows:
        group = groups.setdefault(row.document.kb_id, {"base": row.base, "href": row.base_href, "rows": []})
        group["rows"].append(row)
    return list(groups.values())
