"""What `search()` costs beside the statements it sends: the same questions as a search, and as its bare statements on the same connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from apps.retrieval.plugins.bm25 import question_slots
from apps.retrieval.plugins.postgres_engine import PostgresBackend
from apps.retrieval.plugins.protocol import Query
from apps.retrieval.plugins.ranking import candidates, ranked
from apps.retrieval.plugins.sqlite_engine import SqliteBackend
from apps.retrieval.plugins.sqlite_vectors import best_rows
from apps.retrieval.plugins.sqlite_words import gathered
from apps.retrieval.tokens import query_tokens

FETCH = 128
Statement = tuple[str, Sequence[Any], bool]


class Recorder:
    """A connection of either engine that notes what is asked of it."""

    def __init__(self, connection: Any, notes: list[Statement], *, binary: bool = False) -> None:
        self._connection, self._notes, self._binary = connection, notes, binary

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        self._notes.append((sql, values, self._binary))
        return self._connection.execute(sql, values)

    def cursor(self, *, binary: bool = False) -> Any:
        return RecordingCursor(self._connection.cursor(binary=binary), self._notes, binary=binary)

    def transaction(self) -> AbstractContextManager[Any]:
        return self._connection.transaction()  # type: ignore[no-any-return]


class RecordingCursor(Recorder):
    def __enter__(self) -> RecordingCursor:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._connection.close()

    def fetchmany(self, count: int) -> Any:
        return self._connection.fetchmany(count)


def on_connection(backend: SqliteBackend | PostgresBackend, query: Query, work: Callable[[Any, Callable[[Any], Any]], Any]) -> Any:
    """`work(connection, lookups of a connection)` on a connection of the backend."""
    if isinstance(backend, PostgresBackend):
        return backend._read(lambda c, g: work(c, lambda seen: replace(backend._lookups(c, g, query), connection=seen)))
    with backend._lookups(query) as lookups:
        return work(lookups.connection, lambda seen: replace(lookups, connection=seen))


def bare(connection: Any, notes: Sequence[Statement], query: Query) -> None:
    """The statements again, their rows fetched; bytes of words looked through and those of vectors multiplied, as any caller has to."""
    for sql, values, binary in notes:
        cursor = connection.cursor(binary=True) if binary else connection
        rows = cursor.execute(sql, values)
        if "emb FROM" in sql and query.vector is not None:
            best_rows(iter(lambda rows=rows: rows.fetchmany(FETCH), []), query.vector, candidates(query))  # type: ignore[misc]
        elif "JOIN words" in sql:
            gathered(iter(lambda rows=rows: rows.fetchmany(FETCH), []), question_slots(query_tokens(query.text).tokens))  # type: ignore[misc]
        elif rows.description:
            rows.fetchall()


def measure(backend: SqliteBackend | PostgresBackend, queries: Sequence[Query]) -> tuple[float, float]:
    """(median milliseconds of a search, of its bare statements); each question is asked in both ways, one right after the other."""
    searched: list[float] = []
    stated: list[float] = []
    for query in queries:
        notes: list[Statement] = []

        def record(connection: Any, lookups: Callable[[Any], Any], query: Query = query, notes: list[Statement] = notes) -> None:
            ranked(query, query_tokens(query.text), lookups(Recorder(connection, notes)))

        def again(connection: Any, _lookups: Callable[[Any], Any], query: Query = query, notes: list[Statement] = notes) -> float:
            start = time.perf_counter()
            bare(connection, notes, query)
            return time.perf_counter() - start

        on_connection(backend, query, record)
        start = time.perf_counter()
        backend.search(query)
        searched.append(time.perf_counter() - start)
        stated.append(on_connection(backend, query, again))
    return float(np.median(searched)) * 1000, float(np.median(stated)) * 1000
