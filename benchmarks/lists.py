"""How long lists take with many documents: 100,000 of them as rows, asked for through REST and as pages, on each engine.

    python -m benchmarks.lists [--engine sqlite] [--engine postgres] [--documents 100000] [--rounds 20]

A third of the documents stands in one base with 2,000 folders and 40 tags, the rest in 60 others; one document has 5,000 passages. Each list
is asked for `rounds` times by a signed-in admin through the whole of Django in one process. "queries" counts statements to the database; it
must be the same for the full base and for one with 20 documents. "cpu" is the processor time of this process, SQLite's work included and
PostgreSQL's not. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.portals import ENGINES, on_each, open_portal

TARGET_MS = 300
BASES, FOLDERS, TAGS, PASSAGES, FEW = 60, 2_000, 40, 5_000, 20
TYPES = ("md", "pdf", "docx", "xlsx", "txt")


def inside(engine: str, documents: int, rounds: int) -> None:
    open_portal()
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    space, client, full, few, long_document, short_document = furnish(documents)
    rest: dict[str, Any] = {"HTTP_X_TENANT_ID": str(space.pk)}
    api, page = f"/api/v1/knowledge-bases/{full.uid}", f"/s/{space.pk}/bases/{full.uid}/"
    deep = documents // 3 // 100
    lists = {
        "REST documents, first page": f"{api}/knowledge?page=1&page_size=50",
        "REST documents, in the middle": f"{api}/knowledge?page={deep}&page_size=50",
        "REST documents, by name": f"{api}/knowledge?page=1&page_size=50&sort_by=file_name&sort_order=asc",
        "REST documents, a keyword": f"{api}/knowledge?page=1&page_size=50&keyword=report 17",
        "REST folder tree": f"{api}/knowledge/folders",
        "REST tags": f"{api}/tags?page_size=50",
        "REST bases": "/api/v1/knowledge-bases",
        "REST passages of a document": f"/api/v1/chunks/{long_document.uid}?page=40&page_size=50",
        "REST documents by name over all bases": "/api/v1/knowledge/search?keyword=report 17",
        "page of bases": f"/s/{space.pk}/",
        "page of documents with facets": page,
        "page of documents, a folder": f"{page}?folder=f7",
        "page of a document": f"/s/{space.pk}/documents/{long_document.uid}/",
    }
    small = {
        str(full.uid): str(few.uid),
        str(long_document.uid): str(short_document.uid),
        f"page={deep}&": "page=1&",
        "page=40&": "page=1&",
    }
    for what, url in lists.items():
        extra = rest if what.startswith("REST") else {}
        other = url
        for mine, theirs in small.items():
            other = other.replace(mine, theirs)
        for path in (url, other):
            found = client.get(path, follow=True, **extra)
            assert found.status_code == 200, (path, found.status_code, found.content[:200])
        counts = []
        for path in (url, other):
            with CaptureQueriesContext(connection) as queries:
                client.get(path, follow=True, **extra)
            counts.append(len(queries))
        times, processor = zip(*(_timed(client, url, extra) for _ in range(rounds)), strict=True)
        high, used = float(np.percentile(times, 95)), statistics.median(processor)
        told = f"{counts[0]}" if counts[0] == counts[1] else f"{counts[0]} ({counts[1]} for few)"
        print(f"| {engine} | {what} | {statistics.median(times):.0f} | {high:.0f} | {TARGET_MS} | {used:.0f} | {told} |", flush=True)


def _timed(client: Any, url: str, extra: dict[str, Any]) -> tuple[float, float]:
    """(milliseconds on the clock, of processor time in this process)."""
    start, used = time.perf_counter(), time.process_time()
    client.get(url, follow=True, **extra)
    return (time.perf_counter() - start) * 1000, (time.process_time() - used) * 1000


def furnish(documents: int) -> tuple[Any, ...]:
    """(space, a signed-in client, the full base, one with few documents, a long document, a short one)."""
    from django.db import connection

    from apps.common.scope import unscoped
    from apps.knowledge.models import KnowledgeBase, Tag
    from tests.support.rows import Filed, make_documents
    from tests.support.shelf import Shelf

    shelf = Shelf()
    space = shelf.space
    full, few = shelf.base, shelf.make_base("Few")
    with unscoped("rows of a benchmark"):
        tags = [Tag.objects.create(space=space, kb=full, name=f"tag {n}") for n in range(TAGS)]
        others = [KnowledgeBase.objects.create(space=space, name=f"Base {n}") for n in range(BASES)]

    def filed(count: int) -> Iterator[Filed]:
        for n in range(count):
            folder = f"f{n % 50}/g{n % FOLDERS}" if n % 5 else f"f{n % 50}"
            yield Filed(f"report {n}.{TYPES[n % len(TYPES)]}", (), [tags[n % TAGS]] if n % 2 else [], folder)

    make_documents(full, filed(documents // 3))
    for other in others:
        make_documents(other, [Filed(f"report {n}.md") for n in range(documents * 2 // 3 // BASES)])
    make_documents(few, [Filed(f"report {n}.md", (), (), f"f{n % 5}") for n in range(FEW)])
    (long_document,) = make_documents(full, [Filed("long.md", [f"passage number {n}" for n in range(PASSAGES)])])
    (short_document,) = make_documents(full, [Filed("short.md", [f"passage number {n}" for n in range(60)])])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return space, shelf.admin, full, few, long_document, short_document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=ENGINES[:2])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--inside", choices=ENGINES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        inside(args.inside, args.documents, args.rounds)
        return
    print("| engine | list | p50 ms | p95 ms | target p95 | cpu p50 ms | queries |\n|---|---|---|---|---|---|---|", flush=True)
    on_each(args.engine or ENGINES[:2], "benchmarks.lists", ["--documents", str(args.documents), "--rounds", str(args.rounds)])


if __name__ == "__main__":
    main()
