"""`search` as a door asks it: the same function, with a row of the retrieval log after it."""

from __future__ import annotations

from typing import Any

from apps.common.actor import Actor
from apps.common.errors import DomainError, Forbidden, InvalidInput, NotFound, TransientError, Unauthenticated
from apps.retrieval.grounding.decision import Decision
from apps.retrieval.grounding.finding import Found, KnowledgeHit
from apps.retrieval.journal import LOGGED_HITS, journal, row_of
from apps.retrieval.models import RetrievalLog
from apps.retrieval.search import Options, Results, Scope, search

MAX_LOGGED_CHARS = 4000
THE_ASKERS = (InvalidInput, NotFound, Forbidden, Unauthenticated)  # nothing was searched: the request was not one


def search_asked(
    *, actor: Actor, door: RetrievalLog.Door, query: str, scope: Scope, options: Options | None = None, explain_dropped: bool = False
) -> Results:
    """What `search` gives, and one row of the retrieval log, written in the background: it neither slows an answer nor breaks one.

    Raises: what `search` raises. A request that could not be searched for (no question, no such base, no right) leaves no row.
    """
    options = options or Options()
    results: Results | None = None
    error = "internal"
    try:
        results = search(actor=actor, query=query, scope=scope, options=options, explain_dropped=explain_dropped)
        error = ""
    except THE_ASKERS:
        error = ""
        raise
    except (DomainError, TransientError) as failure:
        error = failure.code
        raise
    finally:
        if results is not None or error:
            journal.add(row_of(actor, door, query, scope, options, results, error))
    return results


def turn_logged(
    *,
    actor: Actor,
    door: RetrievalLog.Door,
    query: str,
    scope: Scope,
    decision: Decision,
    found: Found | None,
    budget_chars: int,
    injected_chars: int,
    error: str = "",
    rejected: bool = False,
) -> None:
    """One row of the retrieval log for a turn or a tool call: what was decided by which rule, found, and put into the prompt.

    `rejected`: nothing of what was found can answer; the row keeps the passages and counts as a miss.
    """
    results = found.results if found is not None else None
    row = row_of(actor, door, query[:MAX_LOGGED_CHARS], scope, Options(), results, error)
    row.decision, row.rule = ("search" if decision.use else "skip"), decision.rule
    row.budget_chars, row.injected_chars = budget_chars, injected_chars
    if found is not None:
        row.explicit_refs = {"found": found.found_refs, "missing": found.missing}
        row.hits, row.hits_count = [_turn_hit(hit) for hit in found.hits[:LOGGED_HITS]], len(found.hits)
        if results is None and not error:  # nothing but what was named
            row.outcome = RetrievalLog.Outcome.HIT if found.hits else RetrievalLog.Outcome.MISS
        elif found.hits and row.outcome == RetrievalLog.Outcome.MISS:  # what the base as a whole is about, without a word in common
            row.outcome = RetrievalLog.Outcome.HIT
        if rejected:
            row.outcome = RetrievalLog.Outcome.MISS
    elif not decision.use:
        row.outcome = RetrievalLog.Outcome.SKIP
    journal.add(row)


def _turn_hit(hit: KnowledgeHit) -> dict[str, Any]:
    passage = hit.passage
    legs = {"text_rank": passage.text_leg, "vector_rank": passage.vector_leg} if passage is not None else {}
    return {
        "document": str(hit.document.uid),
        "chunk": str(hit.chunk.uid),
        "reason": hit.hit_reason,
        "score": round(hit.score, 4),
        "text_rank": None,
        "vector_rank": None,
        **{name: leg.rank for name, leg in legs.items() if leg is not None},
    }
