"""Which entries answer a question: the one retrieval function over one FAQ base, folded to entries (contract content F10, 11.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.faq.models import FaqEntry
from apps.faq.selectors.entries import check_faq, entries_of
from apps.knowledge.models import KnowledgeBase, Tag
from apps.retrieval.selectors import Options, Passage, Results, Scope, search

THRESHOLD, COUNT, MOST = 0.7, 10, 50


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that answers. `score`: the cosine, or for one that only words led to its fused score; `question`: which one was met.

    `kind`: semantic, keyword or both. `vector_score`, `keyword_score` (BM25): of each leg that found it.
    """

    entry: FaqEntry
    question: str
    score: float
    kind: str
    vector_score: float | None
    keyword_score: float | None


@dataclass(frozen=True, slots=True)
class Matches:
    """`vetoed`: (title, negative question) of entries a negative question kept out; `legs`: what words and vectors did."""

    found: list[Match] = field(default_factory=list)
    vetoed: list[tuple[str, str]] = field(default_factory=list)
    legs: dict[str, dict[str, Any]] = field(default_factory=dict)
    took_ms: float = 0.0


def entries_match(
    *,
    actor: Actor,
    base: KnowledgeBase,
    query: str,
    threshold: float = THRESHOLD,
    count: int = COUNT,
    first_tags: Sequence[int] = (),
    second_tags: Sequence[int] = (),
) -> Matches:
    """The entries that answer `query`, best first; with tags only those that carry one, the first list before the second.

    A match by meaning needs the threshold; what holds the words asked for needs none. Negative questions and disabled entries are left out.

    Raises: InvalidInput for a blank or overlong query.
    """
    authorize(actor, "faq.read", base)
    check_faq(base)
    count = min(count if count > 0 else COUNT, MOST)
    threshold = threshold if threshold > 0 else THRESHOLD
    ranks = _ranks(actor, base, first_tags, second_tags)
    scope = Scope(kb_uids=(base.uid,), tag_uids=tuple(tag.uid for tag in ranks) or None)
    options = Options(limit=5 * count if ranks else count, vector_threshold=threshold)
    results = search(actor=actor, query=query, scope=scope, options=options, explain_dropped=True)
    entries = entries_of(actor=actor, document_ids=[hit.document.pk for hit in results.hits])
    found = [_match(entries[hit.document.pk], hit) for hit in results.hits if hit.document.pk in entries]
    if ranks:
        order = {tag.pk: rank for tag, rank in ranks.items()}
        found.sort(key=lambda match: min((order[tag.pk] for tag in match.entry.document.tags.all() if tag.pk in order), default=9))
    vetoed = [(row.document_title, row.detail) for row in results.dropped if row.why == "negative"]
    return Matches(found[:count], list(dict.fromkeys(vetoed)), results.legs, _took(results))


def _took(results: Results) -> float:
    return round(results.took_ms, 1)


def _ranks(actor: Actor, base: KnowledgeBase, first: Sequence[int], second: Sequence[int]) -> dict[Tag, int]:
    """{tag: 1 or 2}; numbers that are no tags of the base are passed over."""
    wanted = dict.fromkeys(second, 2) | dict.fromkeys(first, 1)
    tags = Tag.objects.visible_to(actor).filter(kb=base, pk__in=[number for number in wanted if 0 < number < 2**63])
    return {tag: wanted[tag.pk] for tag in tags}


def _match(entry: FaqEntry, hit: Passage) -> Match:
    vector = hit.vector_leg.score if hit.vector_leg is not None else None
    words = hit.text_leg.score if hit.text_leg is not None else None
    kind = "both" if vector is not None and words is not None else "semantic" if vector is not None else "keyword"
    return Match(entry, hit.question, vector if vector is not None else hit.score, kind, vector, words)
