"""How long keeping one large base in order takes: 50,000 documents in 2,000 folders with 40 tags, lists and bulk actions, on each engine.

    python -m benchmarks.managing [--engine sqlite] [--engine postgres] [--documents 50000] [--rounds 10]

Every document has three passages of some 90 words, in the index. Each list is asked for, and each action done on another 200 documents, `rounds` times by a signed-in admin through the whole of Django in one
process; nobody works on the queues. "cpu" is the processor time of this process, SQLite's work included and PostgreSQL's not. "queries"
counts statements to the database; "few" is the same with 20 documents, which must not be less. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.portals import ENGINES, on_each, open_portal

TARGET_MS = 300
FOLDERS, TAGS, MANY, FEW = 2_000, 40, 200, 20


def inside(engine: str, documents: int, rounds: int) -> None:
    from apps.common.webserver import settle

    open_portal()
    shelf, uids, tags = furnish(documents)
    settle()  # as the web process does
    client, base = shelf.admin, shelf.base
    rest: dict[str, Any] = {"HTTP_X_TENANT_ID": str(shelf.space.pk)}
    api, page = f"/api/v1/knowledge-bases/{base.uid}", shelf.url("")
    reads = {
        "page of documents": (page, {}),
        "page of documents, deep folder": (f"{page}?folder=f7/g7", {}),
        "page of documents, two tags": (f"{page}?tag={tags[0]}&tag={tags[1]}", {}),
        "page: a level of the tree": (f"{page}folder/level?path=f7", {}),
        "page: tag drawer": (f"{page}tags", {}),
        "page: activity": (f"{page}activity", {}),
        "REST documents": (f"{api}/knowledge?page=1&page_size=50", rest),
        "REST folder tree": (f"{api}/knowledge/folders", rest),
        "REST tags with counts": (f"{api}/tags?page_size=50", rest),
    }
    for what, (url, extra) in reads.items():
        _report(engine, what, rounds, lambda _count, url=url, extra=extra: client.get(url, **extra))
    target = shelf.make_base("Target")
    left = iter(uids)

    def some(count: int) -> list[str]:
        return [next(left) for _ in range(count)]

    def sent(method: str, path: str, body: dict[str, Any]) -> Any:
        return client.generic(method, f"/api/v1/{path}", json.dumps(body), content_type="application/json", **rest)

    kb_id = str(base.uid)
    acts: dict[str, Callable[[int], Any]] = {
        "REST into a folder": lambda n: sent("POST", "knowledge/folder", {"kb_id": kb_id, "knowledge_ids": some(n), "folder_path": "new"}),
        "REST tags replaced": lambda n: sent("PUT", "knowledge/tags", {"updates": dict.fromkeys(some(n), tags[:2])}),
        "REST parsed again": lambda n: sent("POST", "knowledge/batch-reparse", {"kb_id": kb_id, "ids": some(n)}),
        "REST move begun": lambda n: sent(
            "POST",
            "knowledge/move",
            {"knowledge_ids": some(n), "source_kb_id": kb_id, "target_kb_id": str(target.uid), "mode": "reuse_vectors"},
        ),
        "REST deleted": lambda n: sent("POST", "knowledge/batch-delete", {"kb_id": kb_id, "ids": some(n)}),
        "page: into a folder": lambda n: client.post(f"{page}bulk/folder", {"ids": some(n), "folder": "new"}),
        "page: tags form": lambda n: client.get(f"{page}bulk/tags", {"ids": some(n)}),
        "page: tags saved": lambda n: client.post(f"{page}bulk/tags", {"ids": some(n), "on": tags[2:4]}),
        "page: archive form": lambda n: client.get(f"{page}bulk/zip", {"ids": some(n)}),
        "page: parsed again": lambda n: client.post(f"{page}bulk/reparse", {"ids": some(n)}),
        "page: deleted": lambda n: client.post(f"{page}bulk/delete", {"ids": some(n)}),
    }
    for what, act in acts.items():
        _report(engine, what, rounds, act)


def _report(engine: str, what: str, rounds: int, act: Callable[[int], Any]) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    counts = []
    for size in (MANY, FEW):
        answer = act(size)
        assert answer.status_code in (200, 302), (what, answer.status_code, answer.content[:300])
        with CaptureQueriesContext(connection) as queries:
            act(size)
        counts.append(len(queries))
    times, processor = [], []
    for _round in range(rounds):
        start, used = time.perf_counter(), time.process_time()
        act(MANY)
        times.append((time.perf_counter() - start) * 1000)
        processor.append((time.process_time() - used) * 1000)
    told = f"{counts[0]}" if counts[0] == counts[1] else f"{counts[0]} ({counts[1]} for few)"
    figures = [f"{each:.0f}" for taken in (times, processor) for each in (statistics.median(taken), np.percentile(taken, 95))]
    print(f"| {engine} | {what} | {' | '.join(figures)} | {TARGET_MS} | {told} |", flush=True)


def furnish(documents: int) -> tuple[Any, list[str], list[str]]:
    """(the shelf, ids of its documents, ids of its tags)."""
    from django.db import connection

    from apps.common.scope import unscoped
    from apps.knowledge.models import Document, Tag
    from apps.retrieval.services import index_documents
    from tests.support.rows import Filed, make_documents
    from tests.support.shelf import Shelf

    shelf = Shelf()
    with unscoped("rows of a benchmark"):
        tags = [Tag.objects.create(space=shelf.space, kb=shelf.base, name=f"tag {n}") for n in range(TAGS)]
    wanted = (
        Filed(f"report {n}.md", _passages(n), [tags[n % TAGS]] if n % 2 else [], f"f{n % 40}/g{n % FOLDERS}") for n in range(documents)
    )
    made = make_documents(shelf.base, wanted)
    with unscoped("rows of a benchmark"):
        Document.objects.update(storage_path="benchmark", file_size=1000)
        index_documents(shelf.space.pk, [document.pk for document in made])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return shelf, [str(document.uid) for document in made], [str(tag.uid) for tag in tags]


def _passages(number: int) -> tuple[str, ...]:
    return tuple(
        f"Report {number} part {part}: the pump of hall {number % 97} was looked at, valve {number * 7 % 9973} closed. " * 5
        for part in range(3)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=ENGINES[:2])
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--inside", choices=ENGINES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        inside(args.inside, args.documents, args.rounds)
        return
    print("| engine | what | p50 ms | p95 ms | cpu p50 | cpu p95 | target p95 | queries |\n|---|---|---|---|---|---|---|---|", flush=True)
    on_each(args.engine or ENGINES[:2], "benchmarks.managing", ["--documents", str(args.documents), "--rounds", str(args.rounds)])


if __name__ == "__main__":
    main()
