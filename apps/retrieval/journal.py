"""Writing the retrieval log: rows are made while the answer goes out and stored in batches by a thread of their own."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from apps.common import context
from apps.common.actor import Actor
from apps.common.scope import unscoped
from apps.retrieval.models import RetrievalLog
from apps.retrieval.search import Options, Passage, Results, Scope
from apps.spaces.models import Space

log = logging.getLogger(__name__)

LOGGED_HITS = 20
LOGGED_BASES = 20
WAITING_MAX = 10_000
BATCH = 500
TRIM_BATCH = 5_000


def row_of(
    actor: Actor, door: RetrievalLog.Door, query: str, scope: Scope, options: Options, results: Results | None, error: str
) -> RetrievalLog:
    """The row of one search, not stored yet; `error` is the code of what ended it, `results` None then."""
    text = results.query if results else " ".join(query.split())
    legs = (
        {name: {key: leg[key] for key in ("status", "hits", "code", "reason") if key in leg} for name, leg in results.legs.items()}
        if results
        else {}
    )
    failed = next((name for name, leg in legs.items() if leg["status"] != "ok"), "")
    return RetrievalLog(
        space_id=actor.space,
        created_at=timezone.now(),
        door=door,
        actor=actor.who,
        actor_user_id=actor.user_id,
        key_id=actor.key_id,
        request_id=context.request_id.get(),
        query_text=text,
        query_chars=len(text),
        kb_uids=[str(uid) for uid in (scope.kb_uids or ())[:LOGGED_BASES]],
        bases=results.bases if results else 0,
        mode=options.mode,
        options=_options(scope, options),
        outcome=_outcome(results, legs),
        hits=[_hit(hit) for hit in results.hits[:LOGGED_HITS]] if results else [],
        hits_count=len(results.hits) if results else 0,
        legs={**legs, **({"ms": {name: round(ms, 2) for name, ms in results.parts_ms.items()}} if results else {})},
        failed_leg=failed,
        error=error or _leg_error(legs),
        took_ms=round(results.took_ms, 2) if results else 0.0,
    )


def _options(scope: Scope, options: Options) -> dict[str, Any]:
    """What was asked for beside the words; only what differs from the default, and folders as a truth: their names are contents."""
    asked = {
        "limit": options.limit,
        "vector_threshold": options.vector_threshold,
        "keyword_threshold": options.keyword_threshold,
        "weights": options.weights,
        "own_vector": options.vector is not None,
        "documents": len(scope.document_uids or ()),
        "tags": len(scope.tag_uids or ()),
        "folder": scope.folder_path is not None,
    }
    return {name: value for name, value in asked.items() if value}


def _outcome(results: Results | None, legs: dict[str, Any]) -> RetrievalLog.Outcome:
    """A vector is always near something, so what shares no word with the question counts by itself."""
    if results is None or any(leg["status"] == "failed" for leg in legs.values()):
        return RetrievalLog.Outcome.ERROR
    if not results.hits:
        return RetrievalLog.Outcome.MISS
    return RetrievalLog.Outcome.HIT if any(hit.exact or hit.text_leg for hit in results.hits) else RetrievalLog.Outcome.NEAR


def _leg_error(legs: dict[str, Any]) -> str:
    return next((str(leg.get("reason", ""))[:64] for leg in legs.values() if leg["status"] == "failed"), "")


def _hit(hit: Passage) -> dict[str, Any]:
    both = hit.text_leg is not None and hit.vector_leg is not None
    reason = "exact" if hit.exact else "both" if both else "words" if hit.text_leg else "meaning"
    return {
        "document": str(hit.document.uid),
        "chunk": str(hit.chunk.uid),
        "reason": reason,
        "score": round(hit.score, 4),
        "text_rank": hit.text_leg.rank if hit.text_leg else None,
        "vector_rank": hit.vector_leg.rank if hit.vector_leg else None,
    }


class Journal:
    """Rows on their way into the table. `add` costs an append; a thread stores what waits every `settings.RETRIEVAL_LOG_FLUSH_S` seconds.

    With no interval (tests) nothing is stored before `flush`. Rows that cannot be stored are tried again; beyond WAITING_MAX the oldest go.
    """

    def __init__(self) -> None:
        self._rows: deque[RetrievalLog] = deque(maxlen=WAITING_MAX)
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def add(self, row: RetrievalLog) -> None:
        if settings.RETRIEVAL_LOG_DAYS <= 0:
            return
        self._rows.append(row)
        if settings.RETRIEVAL_LOG_FLUSH_S is None:
            return
        try:
            self._ensure_thread()
        except RuntimeError:  # no thread to be had now; the next search tries again
            log.warning("the thread of the retrieval log could not start", exc_info=True)

    def flush(self) -> int:
        """Store what waits now; how many rows. Raises: DatabaseError, and the rows wait on."""
        stored = 0
        with self._writing:
            while batch := self._take():
                try:
                    stored += _store(batch)
                except DatabaseError:
                    self._rows.extendleft(reversed(batch))
                    raise
        return stored

    def forget(self) -> None:
        """Drop what waits."""
        self._rows.clear()

    def _take(self) -> list[RetrievalLog]:
        batch: list[RetrievalLog] = []
        while self._rows and len(batch) < BATCH:
            batch.append(self._rows.popleft())
        return batch

    def _ensure_thread(self) -> None:
        if self._pid == os.getpid() and self._thread is not None and self._thread.is_alive():
            return
        with self._guard:
            if self._pid != os.getpid() or self._thread is None or not self._thread.is_alive():
                self._pid = os.getpid()
                self._thread = threading.Thread(target=self._run, name="retrieval-log", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._wake.wait(settings.RETRIEVAL_LOG_FLUSH_S)
            self.store()

    def store(self) -> None:
        """`flush`, for the thread and the end of the process: what fails is said in the log, and its rows wait."""
        if not self._rows:
            return
        try:
            self.flush()
        except DatabaseError:
            log.warning("%s rows of the retrieval log could not be stored and wait", len(self._rows), exc_info=True)
        finally:
            connection.close()


def _store(batch: list[RetrievalLog]) -> int:
    """Store rows; those whose space is gone for good are dropped. How many were stored. Raises: DatabaseError."""
    with unscoped("rows of the retrieval log carry their space"):
        known = set(Space.objects.filter(pk__in={row.space_id for row in batch}).values_list("pk", flat=True))
        return len(RetrievalLog.objects.bulk_create([row for row in batch if row.space_id in known]))


journal = Journal()


@atexit.register
def _store_the_rest() -> None:
    if settings.configured and settings.RETRIEVAL_LOG_FLUSH_S is not None:
        journal.store()


def trim(days: int) -> int:
    """Delete rows older than `days` (0: all of them), in pieces; how many."""
    limit = timezone.now() - timedelta(days=max(days, 0))
    gone = 0
    with unscoped("retention of the retrieval log"):
        while pks := list(RetrievalLog.objects.filter(created_at__lt=limit).order_by("pk").values_list("pk", flat=True)[:TRIM_BATCH]):
            gone += RetrievalLog.objects.filter(pk__in=pks).delete()[0]
    return gone


def forget_texts(space_ids: Sequence[int]) -> int:
    """Take the questions out of these spaces' rows, ids and figures stay; how many rows."""
    with unscoped("texts of deleted spaces leave the retrieval log"):
        return int(RetrievalLog.objects.filter(space_id__in=space_ids).exclude(query_text="").update(query_text=""))
