"""Why something that should have been found is not among the hits: asked about a document or a passage, answered by trying.

    why_not(actor=..., query="...", scope=Scope(...), options=Options(...), document=document)

The checks run in the order in which a search would lose it: scope, state of the document, state of the passage, index, legs, thresholds,
rank. Reasons are codes of REASONS with the figures that prove them; whoever shows them has the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import Chunk, Document, ParseStatus
from apps.retrieval.engine import engine
from apps.retrieval.explain import SNIPPET_WIDTH, Snippet, Term, explain, snippet
from apps.retrieval.plugins.protocol import LegHit
from apps.retrieval.search import Options, Passage, Results, Scope, search
from apps.retrieval.services import INDEXED_TYPES, words_of
from apps.retrieval.tokens import document_spans, query_tokens

DEPTH = 500  # how far down the list is looked

REASONS = (
    "found",  # it is among the hits: rank
    "other_base", "other_document", "other_folder", "other_tag",  # the scope leaves it out
    "not_indexed",  # nothing of the document can be found yet (or it failed): state
    "document_off",  # not enabled, or a draft
    "no_passages",  # it was read, but no passage came of it
    "passage_off", "passage_waiting", "passage_failed",  # the passage was turned off; its edit is not in the index yet, or never got there
    "index_behind",  # the index holds another revision of the document
    "negative",  # one of the pair's negative questions is nearer to what was asked than its own: question
    "threshold",  # found, but below the thresholds asked for: text_score, vector_score
    "rank",  # found, but others were better: rank
    "no_words",  # none of the words asked for is in it, and no vector brought it up
    "no_vector",  # only meaning was searched, and it has no vector (of the space in use)
    "far",  # it has words or a vector, but is not among the best DEPTH
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cause:
    """`code` is one of REASONS; `facts` the figures behind it."""

    code: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The answer about one passage: the document's best one when a document was asked about.

    `causes`: what kept it out, in the order a search meets it; never empty. `rank` is its place among everything found, 1-based.
    `matched`, `missing`: words of the question that it holds, and those that it does not. `last_score`: score of the last hit shown.
    """

    document: Document
    chunk: Chunk | None
    causes: tuple[Cause, ...]
    rank: int | None = None
    score: float | None = None
    last_score: float | None = None
    text_leg: LegHit | None = None
    vector_leg: LegHit | None = None
    matched: tuple[Term, ...] = ()
    missing: tuple[str, ...] = ()
    snippet: Snippet | None = None

    @property
    def is_found(self) -> bool:
        return self.causes[0].code == "found"


def why_not(
    *, actor: Actor, query: str, scope: Scope, options: Options | None = None, document: Document | None = None, chunk: Chunk | None = None
) -> WhyNot:
    """Why this document (or passage) is not among the hits of this search, or at which rank it is.

    Raises: what `search` raises; ValueError when neither is given.
    """
    authorize(actor, "search.explain")
    if chunk is not None:
        document = chunk.document
    if document is None:
        raise ValueError("name a document or a passage")
    authorize(actor, "document.read", document)
    options = options or Options()
    wide = replace(options, limit=DEPTH, vector_threshold=0.0, keyword_threshold=0.0)
    alone = search(actor=actor, query=query, scope=Scope(kb_uids=(document.kb.uid,), document_uids=(document.uid,)), options=wide)
    own = _own(alone.hits, chunk)
    target = chunk or (own.chunk if own else _nearest(actor, document, alone.query))
    causes = [*_scope_causes(document, scope), *_state_causes(document), *_passage_causes(target, asked_for=chunk is not None)]
    if not causes:
        causes = _index_causes(document)
    whole: Results | None = None
    place: int | None = None
    if not causes or own is not None:
        whole = search(actor=actor, query=query, scope=scope, options=wide)
        place = next((rank for rank, hit in enumerate(whole.hits, 1) if _is(hit, target)), None)
    hit = whole.hits[place - 1] if whole and place else own
    if not causes and own is None and (negative := _negative(alone)):
        causes = [Cause("negative", {"question": negative})]
    if not causes:
        causes = _rank_causes(options, whole, place, hit, own)
    return WhyNot(
        document=document,
        chunk=target,
        causes=tuple(causes),
        rank=place,
        score=hit.score if hit and place else None,
        last_score=_last_score(options, whole),
        text_leg=hit.text_leg if hit else None,
        vector_leg=hit.vector_leg if hit else None,
        matched=explain(words_of(document, target), alone.query).terms if target else (),
        missing=missing_words(words_of(document, target) if target else "", alone.query),
        snippet=snippet(target.content, alone.query, SNIPPET_WIDTH) if target else None,
    )


def missing_words(text: str, query: str) -> tuple[str, ...]:
    """The pieces of a question that a text does not hold, as the question writes them; stop words are not missed."""
    wanted = query_tokens(query)
    held = {span.token for span in document_spans(text)}
    asked = set(wanted.tokens)
    absent = [span for span in document_spans(query) if span.token in asked and span.token not in held]
    if wanted.prefix and not any(token.startswith(wanted.prefix) for token in held):
        return (query.strip(),)
    pieces: list[list[int]] = []
    for span in sorted(absent, key=lambda span: (span.start, -span.end)):
        if pieces and span.start < pieces[-1][1]:
            pieces[-1][1] = max(pieces[-1][1], span.end)
        else:
            pieces.append([span.start, span.end])
    return tuple(dict.fromkeys(query[start:end] for start, end in pieces))


def _negative(alone: Results) -> str:
    """The negative question that keeps a question pair out of a search of its own."""
    return next((row.detail for row in alone.dropped if row.why == "negative"), "")


def _is(hit: Passage, chunk: Chunk | None) -> bool:
    return chunk is not None and hit.chunk.pk == chunk.pk


def _own(hits: Sequence[Passage], chunk: Chunk | None) -> Passage | None:
    """The hit for the passage asked about; for a document its best."""
    return next((hit for hit in hits if chunk is None or hit.chunk.pk == chunk.pk), None)


def _nearest(actor: Actor, document: Document, query: str) -> Chunk | None:
    """The passage of a document that holds most of the question, when no leg lists one (they may all be off)."""
    rows = Chunk.objects.visible_to(actor).filter(document=document, chunk_type__in=INDEXED_TYPES).select_related("document", "kb")
    asked = set(query_tokens(query).tokens)
    best: tuple[int, Chunk] | None = None
    for row in rows.order_by("chunk_index", "pk")[:DEPTH]:
        held = len(asked & {span.token for span in document_spans(words_of(document, row))})
        if best is None or held > best[0]:
            best = (held, row)
    return best[1] if best else None


def _scope_causes(document: Document, scope: Scope) -> list[Cause]:
    causes = []
    if scope.kb_uids is not None and document.kb.uid not in scope.kb_uids:
        causes.append(Cause("other_base", {"base": document.kb.name}))
    if scope.document_uids is not None and document.uid not in scope.document_uids:
        causes.append(Cause("other_document"))
    if scope.folder_path is not None and not _in_folder(document.folder_path, scope):
        causes.append(Cause("other_folder", {"folder": document.folder_path, "asked": scope.folder_path}))
    if scope.tag_uids is not None:
        own = list(document.tags.all())
        if not any(tag.uid in scope.tag_uids for tag in own):
            causes.append(Cause("other_tag", {"tags": [tag.name for tag in own]}))
    return causes


def _in_folder(path: str, scope: Scope) -> bool:
    asked = scope.folder_path or ""
    if path == asked:
        return True
    return scope.folder_recursive and (not asked or path.startswith(f"{asked}/"))


def _state_causes(document: Document) -> list[Cause]:
    state = document.parse_status
    if state == ParseStatus.DRAFT:
        return [Cause("document_off", {"state": str(state)})]
    if not document.enabled:
        waiting = state in (ParseStatus.PENDING, ParseStatus.PROCESSING, ParseStatus.FAILED, ParseStatus.CANCELLED)
        return [Cause("not_indexed" if waiting else "document_off", {"state": str(state), "reason": document.reason})]
    return [] if document.chunk_count else [Cause("no_passages", {"state": str(state)})]


def _passage_causes(chunk: Chunk | None, *, asked_for: bool) -> list[Cause]:
    if chunk is None:
        return []
    if not chunk.is_enabled:
        return [Cause("passage_off")]
    if chunk.index_status == Chunk.IndexStatus.PROCESSING:
        return [Cause("passage_waiting")]
    if chunk.index_status == Chunk.IndexStatus.FAILED:
        return [Cause("passage_failed")]
    if asked_for and chunk.chunk_type not in INDEXED_TYPES:
        return [Cause("passage_off")]
    return []


def _index_causes(document: Document) -> list[Cause]:
    held = engine().revisions(document.space_id).get(document.pk)
    if held is None or held < document.index_rev:
        return [Cause("index_behind", {"held": held, "wanted": document.index_rev})]
    return []


def _rank_causes(options: Options, whole: Results | None, place: int | None, hit: Passage | None, own: Passage | None) -> list[Cause]:
    if hit is not None and place is not None and whole is not None:
        if not _above(hit, options):
            scores = {
                "text_score": hit.text_leg.score if hit.text_leg else None,
                "vector_score": hit.vector_leg.score if hit.vector_leg else None,
            }
            return [Cause("threshold", scores)]
        above = sum(1 for each in whole.hits[: place - 1] if _above(each, options))
        return (
            [Cause("found", {"rank": above + 1})] if above < options.limit else [Cause("rank", {"rank": above + 1, "limit": options.limit})]
        )
    if own is not None:
        return [Cause("far", {"depth": DEPTH})]
    words_asked = options.mode != "vector"
    vector_leg = (whole.legs.get("vector") if whole else None) or {}
    vectors_ran = options.mode != "text" and vector_leg.get("status") == "ok"
    if words_asked:
        return [Cause("no_words"), *([Cause("no_vector")] if vectors_ran else [])]
    return [Cause("no_vector", {"status": vector_leg.get("status", "")})]


def _above(hit: Passage, options: Options) -> bool:
    by_words = hit.text_leg is not None and hit.text_leg.score >= options.keyword_threshold
    by_meaning = hit.vector_leg is not None and hit.vector_leg.score >= options.vector_threshold
    return hit.exact or by_words or by_meaning


def _last_score(options: Options, whole: Results | None) -> float | None:
    shown = [hit for hit in whole.hits if _above(hit, options)][: options.limit] if whole else []
    return shown[-1].score if shown else None
