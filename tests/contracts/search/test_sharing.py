"""Every search engine beside other processes and threads, and after one was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping

from apps.retrieval.plugins.protocol import SearchBackend
from tests.support.search_engines import ROOT, ask, doc, reader


def test_another_process_sees_every_write_at_once(backend: SearchBackend, options: tuple[str, Mapping[str, str]]) -> None:
    with reader(options) as elsewhere:
        assert elsewhere("pump") == []
        backend.put([doc(1, "pump")])
        assert elsewhere("pump") == [1]
        backend.put([doc(1, "valve", rev=2)])
        assert (elsewhere("pump"), elsewhere("valve")) == ([], [1])
        backend.set_flags(1, [1], enabled=False)
        assert elsewhere("valve") == []
        backend.set_flags(1, [1], enabled=True)
        assert elsewhere("valve") == [1]
        backend.delete(1, doc_ids=[1])
        assert elsewhere("valve") == []


def test_threads_search_and_write_together(backend: SearchBackend) -> None:
    backend.put([doc(key, f"pump number{key}") for key in range(1, 51)])
    failures: list[BaseException] = []

    def work(offset: int) -> None:
        try:
            for step in range(12):
                key = 1 + (offset * 12 + step) % 50
                backend.put([doc(key, f"pump number{key}", rev=2 + step)])
                assert key in ask(backend, f"number{key}")
        except BaseException as error:  # noqa: BLE001 - whatever a thread meets must reach the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert backend.check() == []


WRITER = """
import json, sys
from apps.retrieval.plugins import postgres_engine, sqlite_engine
from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, backends
name, options = json.loads(sys.argv[1])
backend, key = backends.get(name)(options), int(sys.argv[2])
while True:
    key += 1
    chunks = tuple(IndexChunk(key * 100 + n, f"pump number{key} passage {n}") for n in range(5))
    backend.put([IndexDocument(id=key, tenant_id=1, kb_id=1, rev=1, folder_id=0, chunks=chunks)])
    print(key, flush=True)
"""


def test_killing_a_writer_loses_nothing_it_acknowledged(backend: SearchBackend, options: tuple[str, Mapping[str, str]]) -> None:
    acknowledged: set[int] = set()
    for turn in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, json.dumps(options), str(turn * 1000)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        acknowledged |= {int(process.stdout.readline()) for _ in range(15 + turn * 7)}
        os.kill(process.pid, signal.SIGKILL)
        acknowledged |= {int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")}
        process.wait(20)
        assert acknowledged <= set(backend.revisions(1))
        assert backend.check() == []
    some = max(acknowledged)
    assert ask(backend, f"number{some}")[:5] == [some] * 5
    backend.put([doc(9000, "still writable")])
    assert ask(backend, "writable") == [9000]


def test_a_forked_child_searches_and_writes(backend: SearchBackend) -> None:
    backend.put([doc(1, "pump")])
    assert ask(backend, "pump") == [1]
    pid = os.fork()
    if pid == 0:
        try:
            backend.put([doc(2, "pump")])
            os._exit(0 if ask(backend, "pump") == [1, 2] else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ask(backend, "pump") == [1, 2]
