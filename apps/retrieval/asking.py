"""`search` as a door asks it: the same function, with a row of the retrieval log after it."""

from __future__ import annotations

from apps.common.actor import Actor
from apps.common.errors import DomainError, Forbidden, InvalidInput, NotFound, TransientError, Unauthenticated
from apps.retrieval.journal import journal, row_of
from apps.retrieval.models import RetrievalLog
from apps.retrieval.search import Options, Results, Scope, search

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
