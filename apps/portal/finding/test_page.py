"""What the retrieval-test tab shows, made of what the one retrieval function gave."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.text import folder_path
from apps.knowledge import reasons
from apps.knowledge.models import Chunk, Document, KnowledgeBase
from apps.knowledge.selectors import as_uuid, chunk_get, document_get, document_list
from apps.knowledge.selectors.documents import DocumentFilters
from apps.portal.reader.passages import kind_word, picture_beside, tidy
from apps.portal.reader.pictures import Shown
from apps.portal.reader.places import place_text
from apps.retrieval.selectors import Cause, Options, Passage, Results, Scope, WhyNot, why_not
from apps.retrieval.selectors import search as run_search

Mode = Literal["hybrid", "text", "vector"]
MODES: tuple[tuple[Mode, Any], ...] = (
    ("hybrid", gettext_lazy("Hybrid")),
    ("text", gettext_lazy("Words")),
    ("vector", gettext_lazy("Meaning")),
)
COUNTS = (3, 5, 10)
DROPPED_SHOWN = 20
NOBODY = uuid.UUID(int=0)


@dataclass(frozen=True, slots=True)
class TestQuery:
    """What the address asks for; anything unreadable counts as not said."""

    q: str = ""
    mode: Mode = "hybrid"
    count: int = 5
    folder: str = ""
    tags: tuple[str, ...] = ()
    document: str = ""
    words_min: float = 0.0
    vector_min: float = 0.0
    why: str = ""

    @classmethod
    def read(cls, query: Any) -> TestQuery:
        count, mode = query.get("count", ""), query.get("mode", "")
        return cls(
            q=query.get("q", "").strip()[:4000],
            mode=next((known for known, _word in MODES if known == mode), "hybrid"),
            count=int(count) if count in {str(known) for known in COUNTS} else 5,
            folder=folder_path(query.get("folder", "")),
            tags=tuple(dict.fromkeys(tag for tag in query.getlist("tag")[:20] if tag)),
            document=query.get("document", "").strip()[:36],
            words_min=_number(query.get("words_min", ""), 1000.0),
            vector_min=_number(query.get("vector_min", ""), 1.0),
            why=query.get("why", "").strip()[:2000],
        )

    def scope(self, base: KnowledgeBase) -> Scope:
        return Scope(
            kb_uids=(base.uid,),
            document_uids=(as_uuid(self.document) or NOBODY,) if self.document else None,
            tag_uids=tuple(as_uuid(tag) or NOBODY for tag in self.tags) if self.tags else None,
            folder_path=self.folder or None,
        )

    def options(self) -> Options:
        return Options(limit=self.count, mode=self.mode, vector_threshold=self.vector_min, keyword_threshold=self.words_min)

    def query(self, **changes: Any) -> str:
        values: dict[str, Any] = {
            "q": self.q,
            "mode": self.mode if self.mode != "hybrid" else "",
            "count": self.count if self.count != 5 else "",
            "folder": self.folder,
            "document": self.document,
            "words_min": self.words_min or "",
            "vector_min": self.vector_min or "",
            "why": self.why,
            **changes,
        }
        return urlencode([*((k, v) for k, v in values.items() if v), *(("tag", tag) for tag in self.tags)])

    @property
    def carried(self) -> list[tuple[str, Any]]:
        """What another form of the page has to carry on."""
        return list(parse_qsl(self.query(why="")))

    @property
    def without_why(self) -> str:
        return self.query(why="")

    @property
    def narrowed(self) -> bool:
        return bool(self.folder or self.tags or self.document or self.words_min or self.vector_min)

    @property
    def modes(self) -> list[tuple[str, str]]:
        return [(name, str(word)) for name, word in MODES]

    @property
    def counts(self) -> list[tuple[int, int]]:
        return [(count, count) for count in COUNTS]


def _number(raw: str, most: float) -> float:
    try:
        value = float(raw)
    except ValueError:
        return 0.0
    return min(most, max(0.0, value)) if value == value else 0.0


@dataclass(frozen=True, slots=True)
class Leg:
    """One leg of a hit: its rank and raw score, and the score as a share of the leg's best for the bar."""

    name: str
    rank: int | None
    score: str = ""
    percent: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """A hit as `portal/_test_card.html` draws it."""

    rank: int
    passage: Passage
    href: str
    place: str
    heading: str
    pieces: tuple[tuple[str, bool], ...]
    before: bool
    after: bool
    score: str
    percent: int
    legs: tuple[Leg, ...]
    kind: str = ""
    picture: Shown | None = None
    why_href: str = ""


def passage_href(document: Document, chunk: Chunk, q: str = "") -> str:
    """The reader, opened at exactly this passage with the words that found it marked."""
    address = reverse("document-reader", args=[document.space_id, document.uid])
    return f"{address}?{urlencode({'chunk': chunk.uid, **({'q': q[:400]} if q else {})})}#here"


def answer_context(actor: Actor, base: KnowledgeBase, results: Results, asked: TestQuery) -> dict[str, Any]:
    """The cards, and the candidates that did not make it."""
    best_text = max((hit.text_leg.score for hit in results.hits if hit.text_leg), default=0.0)
    cards = [_card(actor, rank, hit, asked, best_text) for rank, hit in enumerate(results.hits, 1)]
    dropped = results.dropped
    return {
        "cards": cards,
        "dropped": [
            {
                "title": each.document_title or _("a passage that is gone"),
                "why": DROPPED.get(each.why, each.why),
                "score": f"{each.score:.3f}",
                "text_rank": each.text_rank,
                "vector_rank": each.vector_rank,
            }
            for each in dropped[:DROPPED_SHOWN]
        ],
        "dropped_count": len(dropped),
        "took": f"{results.took_ms:.0f}",
        "without_document": asked.query(document=""),
        "bare_href": f"?{urlencode({'q': asked.q})}",
    }


DROPPED: dict[str, Any] = {
    "rank": gettext_lazy("beyond the number asked for"),
    "threshold": gettext_lazy("below the thresholds"),
    "disabled": gettext_lazy("turned off, or its edit is not indexed yet"),
    "gone": gettext_lazy("deleted a moment ago"),
}


def _card(actor: Actor, rank: int, hit: Passage, asked: TestQuery, best_text: float) -> Card:
    cut = hit.snippet
    legs = (
        Leg(
            _("Words"),
            hit.text_leg.rank if hit.text_leg else None,
            f"{hit.text_leg.score:.2f}" if hit.text_leg else "",
            round(100 * hit.text_leg.score / best_text) if hit.text_leg and best_text > 0 else 0,
        ),
        Leg(
            _("Meaning"),
            hit.vector_leg.rank if hit.vector_leg else None,
            f"{hit.vector_leg.score:.3f}" if hit.vector_leg else "",
            max(0, round(100 * hit.vector_leg.score)) if hit.vector_leg else 0,
        ),
    )
    return Card(
        rank=rank,
        passage=hit,
        href=passage_href(hit.document, hit.chunk, asked.q),
        place=place_text(hit.chunk.positions),
        heading=" › ".join(hit.chunk.heading_path),
        pieces=tidy(cut.text, cut.spans),
        before=cut.start > 0,
        after=cut.start + len(cut.text) < len(hit.chunk.content.rstrip()),
        score=f"{hit.score:.3f}",
        percent=round(100 * min(1.0, max(0.0, hit.score))),
        legs=legs,
        kind=kind_word(hit.chunk),
        picture=picture_beside(actor, hit.chunk),
    )


def legs_of(results: Results, asked: TestQuery) -> list[dict[str, Any]]:
    """What each leg did: state of components/status.html, words."""
    names = {"text": _("Words"), "vector": _("Meaning")}
    wanted = [name for name in ("text", "vector") if asked.mode in ("hybrid", name)]
    found = []
    for name in wanted:
        leg = results.legs.get(name)
        if leg is None:
            found.append({"name": names[name], "state": "cancelled", "word": _("not used by this base"), "why": ""})
        elif leg["status"] == "ok":
            word = ngettext("%(count)d candidate", "%(count)d candidates", leg["hits"]) % {"count": leg["hits"]}
            found.append({"name": names[name], "state": "completed", "word": word, "why": ""})
        elif leg["status"] == "unavailable":
            found.append({"name": names[name], "state": "stalled", "word": _("not available"), "why": str(leg.get("reason", ""))})
        else:
            found.append({"name": names[name], "state": "failed", "word": _("failed"), "why": str(leg.get("reason", ""))})
    return found


@dataclass(frozen=True, slots=True)
class Answer:
    """Why something was not found, in words. `lines`: (sentence, what to do)."""

    result: WhyNot
    title: str
    lines: tuple[tuple[str, str], ...]
    href: str
    place: str
    pieces: tuple[tuple[str, bool], ...] = field(default=())


def whynot_context(actor: Actor, base: KnowledgeBase, asked: TestQuery) -> dict[str, Any]:
    """Context of `portal/_whynot.html` for what was typed or chosen: an id or address of a passage or document, a title, or its words."""
    document, chunk, others = find_target(actor, base, asked.why)
    if document is None:
        return {"why_unknown": True}
    result = why_not(actor=actor, query=asked.q, scope=asked.scope(base), options=asked.options(), document=document, chunk=chunk)
    target = result.chunk
    href = passage_href(document, target, asked.q) if target else reverse("document-reader", args=[document.space_id, document.uid])
    return {
        "why": Answer(
            result=result,
            title=document.title,
            lines=tuple(_words(cause, result, asked) for cause in result.causes),
            href=href,
            place=place_text(target.positions) if target else "",
            pieces=tidy(result.snippet.text, result.snippet.spans) if result.snippet else (),
        ),
        "why_others": others,
    }


def find_target(actor: Actor, base: KnowledgeBase, typed: str) -> tuple[Document | None, Chunk | None, Sequence[Document]]:
    """(document, passage or None, other documents that fit): what a person means by a pasted id, address, title or piece of text."""
    for raw in reversed(
        [part for part in typed.replace("?", "/").replace("&", "/").replace("=", "/").replace("#", "/").split("/") if part]
    ):
        uid = as_uuid(raw)
        if uid is None:
            continue
        try:
            chunk = chunk_get(actor=actor, chunk_id=uid)
            if chunk.kb_id == base.pk:
                return chunk.document, chunk, ()
        except DomainError:
            pass
        try:
            return document_get(actor=actor, document_id=uid, base=base), None, ()
        except DomainError:
            pass
    named = list(document_list(actor=actor, base=base, filters=DocumentFilters(keyword=typed[:200]))[:6])
    if named:
        return named[0], None, named[1:]
    try:
        found = run_search(actor=actor, query=typed, scope=Scope(kb_uids=(base.uid,)), options=Options(limit=1, mode="text"))
    except DomainError:
        return None, None, ()
    if found.hits and (found.hits[0].exact or found.hits[0].text_leg):
        return found.hits[0].document, found.hits[0].chunk, ()
    return None, None, ()


def _words(cause: Cause, result: WhyNot, asked: TestQuery) -> tuple[str, str]:
    """(what is so, what can be done)."""
    facts = cause.facts
    if cause.code == "found":
        return _("It is found, at rank %(rank)d.") % {"rank": facts["rank"]}, ""
    if cause.code == "rank":
        text = _("It is found, but %(better)d others are better: rank %(rank)d, and only %(limit)d are shown.")
        values = {"better": facts["rank"] - 1, "rank": facts["rank"], "limit": facts["limit"]}
        return text % values, _("Ask for more results, or use words that stand in it.")
    if cause.code == "threshold":
        scores = [
            word % {"score": f"{score:.3f}", "least": least}
            for word, score, least in (
                (_("words %(score)s, at least %(least)s asked"), facts["text_score"], asked.words_min),
                (_("meaning %(score)s, at least %(least)s asked"), facts["vector_score"], asked.vector_min),
            )
            if score is not None
        ]
        return _("Its scores are below the thresholds (%(scores)s).") % {"scores": "; ".join(scores)}, _("Lower the thresholds.")
    if cause.code == "not_indexed":
        if facts.get("reason"):
            reason = reasons.reason_of(facts["reason"])
            return _("The document could not be read: %(reason)s") % {"reason": reason.title}, str(reason.next)
        return _("The document is not indexed yet."), _("It can be found as soon as it has been read; its page shows how far it is.")
    if cause.code == "other_folder":
        here = facts["folder"] or _("no folder")
        return _("It lies in %(folder)s, and only %(asked)s is searched.") % {"folder": here, "asked": facts["asked"]}, _(
            "Take the folder off."
        )
    if cause.code == "other_tag":
        tags = ", ".join(facts["tags"]) or _("none")
        return _("It does not carry the tags searched for (its tags: %(tags)s).") % {"tags": tags}, _(
            "Take the tags off, or tag the document."
        )
    if cause.code == "other_base":
        return _("It is in another knowledge base: %(base)s.") % {"base": facts["base"]}, ""
    sentence, step = SENTENCES[cause.code]
    return str(sentence), str(step)


SENTENCES: dict[str, tuple[Any, Any]] = {
    "other_document": (gettext_lazy("The search is limited to another document."), gettext_lazy("Take the document off.")),
    "document_off": (gettext_lazy("The document is a draft or turned off."), gettext_lazy("Publish it or turn it on.")),
    "no_passages": (gettext_lazy("The document has no passages."), gettext_lazy("Parse it again.")),
    "passage_off": (gettext_lazy("The passage is turned off."), gettext_lazy("Turn it on in the reader.")),
    "passage_waiting": (gettext_lazy("The passage was edited and is not indexed yet."), gettext_lazy("Try again in a few seconds.")),
    "passage_failed": (
        gettext_lazy("The last edit of the passage could not be indexed."),
        gettext_lazy("Save the passage once more in the reader; that tries it again."),
    ),
    "index_behind": (
        gettext_lazy("The index has not followed the latest change of this document yet."),
        gettext_lazy("Try again in a few seconds; if it stays so, have the index checked (manage.py reconcile)."),
    ),
    "no_words": (gettext_lazy("None of the words asked for is in it."), gettext_lazy("Use words that stand in it.")),
    "no_vector": (
        gettext_lazy("It has no vector yet, so that meaning alone cannot bring it up."),
        gettext_lazy("Wait until its vectors are made; the page of the document shows how many are missing."),
    ),
    "far": (gettext_lazy("It fits, but not among the best 500."), gettext_lazy("Ask more precisely, or narrow the scope.")),
}
