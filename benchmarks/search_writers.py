"""Searching while somebody writes, and a writer that is killed: two readers and a writer in processes of their own, then twelve kill -9.

    python -m benchmarks.search_writers [--engine sqlite] [--engine postgres] [--engine postgres-plain] [--chunks 20000] [--seconds 20]

The writer replaces documents of 20 passages, the readers ask hybrid questions to ten bases. A killed writer must have lost no document whose
`put` had returned, and the index must find no fault in itself. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from apps.common.errors import TransientError
from apps.retrieval.plugins import sqlite_engine  # noqa: F401 - registers the backend
from apps.retrieval.plugins.postgres_store import close_pools
from apps.retrieval.plugins.protocol import Query, SearchBackend, backends
from benchmarks.processes import Processes
from benchmarks.search_latency import BIG, DIMENSION, SERVER, TARGETS, Meanings, Words, corpus, fill
from tests.support.postgres import PostgresProcess

READERS, KILLS = 2, 12
READER_P95_MS, WRITER_PACE = 60, 400
BEYOND = 1_000_000  # ids of the documents that a writer adds and is killed over


def opened(told: str) -> SearchBackend:
    name, options = json.loads(told)
    return backends.get(name)(options)


def read(told: str, seconds: float, seed: int) -> dict[str, Any]:
    """Ask until the time is over; how long each question took and how many met a lock."""
    backend, words, meanings = opened(told), Words(seed), Meanings(seed)
    times, locked, until = [], 0, time.monotonic() + seconds
    while time.monotonic() < until:
        query = Query(1, text=words.question(), vector=meanings.vectors(1)[0], vector_space=f"bench:{DIMENSION}", **BIG["10 bases"])  # type: ignore[arg-type]
        start = time.perf_counter()
        try:
            backend.search(query)
        except TransientError:
            locked += 1
        times.append(time.perf_counter() - start)
    return {"times": times[3:], "locked": locked}


def write(told: str, seconds: float, chunks: int) -> dict[str, Any]:
    """Replace documents until the time is over; passages a second and how many writes met a lock."""
    backend, chance, locked, made = opened(told), random.Random(3), 0, 0
    documents = list(corpus(min(chunks, 4000), Words(3)))
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        batch = chance.sample(documents, 5)
        try:
            backend.put(batch)
        except TransientError:
            locked += 1
        made += sum(len(document.chunks) for document in batch)
    return {"pace": made / (time.monotonic() - start), "locked": locked}


def add(told: str, first: int) -> None:
    """Add documents for ever and say the id of each once it is in; somebody kills this process."""
    backend = opened(told)
    pattern = next(corpus(20, Words(4)))
    for key in range(BEYOND + first, BEYOND + first + 100_000):
        parts = tuple(replace(chunk, id=key * 100 + n) for n, chunk in enumerate(pattern.chunks))
        backend.put([replace(pattern, id=key, chunks=parts)])
        sys.stdout.write(f"{key}\n")
        sys.stdout.flush()


def child(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "benchmarks.search_writers", "--role", *arguments], stdout=subprocess.PIPE, text=True)


def together(told: str, seconds: float, chunks: int) -> tuple[float, float, int]:
    """(95th percentile of the readers in milliseconds, passages a second of the writer, locks met)."""
    running = [child("read", told, str(seconds), str(seed)) for seed in range(READERS)] + [child("write", told, str(seconds), str(chunks))]
    found = [json.loads(process.communicate()[0]) for process in running]
    times = [spent for answer in found[:-1] for spent in answer["times"]]
    return float(np.percentile(times, 95)) * 1000, found[-1]["pace"], sum(answer["locked"] for answer in found)


def killed(told: str, backend: SearchBackend) -> tuple[int, int, list[str]]:
    """(documents acknowledged, of those lost, faults of the index after all kills)."""
    acknowledged: set[int] = set()
    for turn in range(KILLS):
        process = child("add", told, str(turn * 10_000))
        assert process.stdout
        acknowledged |= {int(process.stdout.readline()) for _ in range(3 + turn * 5)}
        os.kill(process.pid, signal.SIGKILL)
        acknowledged |= {int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")}
        process.wait(20)
    return len(acknowledged), len(acknowledged - set(backend.revisions())), backend.check()


def measure(engine: str, options: Mapping[str, str], chunks: int, seconds: float, server: Processes) -> None:
    name = engine.partition("-")[0]
    backend: Any = backends.get(name)(options)
    backend.ensure()
    fill(engine, backend, corpus(chunks, Words()), server)
    told = json.dumps([name, dict(options)])
    print("\n| engine | what | measured | target |\n|---|---|---|---|", flush=True)
    high, pace, locked = together(told, seconds, chunks)
    print(f"| {engine} | readers p95 beside a writer | {high:.0f} ms | {READER_P95_MS} ms |")
    print(f"| {engine} | writer beside {READERS} readers | {pace:.0f} passages/s | {WRITER_PACE} |")
    print(f"| {engine} | locks met | {locked} | 0 |")
    count, lost, faults = killed(told, backend)
    print(f"| {engine} | lost of {count} acknowledged documents, {KILLS} kills | {lost} | 0 |")
    print(f"| {engine} | faults found afterwards | {len(faults)} | 0 |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=TARGETS)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        role, told, *rest = args.role
        if role == "add":
            add(told, int(rest[0]))
        else:
            sys.stdout.write(json.dumps({"read": read, "write": write}[role](told, float(rest[0]), int(rest[1]))))
        return
    for engine in args.engine or TARGETS:
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
            options = {"path": f"{scratch}/search.sqlite3"}
            server = Processes()
            if engine != "sqlite":
                postgres = stack.enter_context(PostgresProcess(Path(scratch), settings=SERVER))
                stack.callback(close_pools)
                server = Processes(postgres.pid)
                options = {"dsn": postgres.create_database(), "schema": "kb_index", "mode": engine.partition("-")[2] or "auto"}
            print(f"\n## {engine}, {args.chunks} passages\n", flush=True)
            measure(engine, options, args.chunks, args.seconds, server)


if __name__ == "__main__":
    main()
