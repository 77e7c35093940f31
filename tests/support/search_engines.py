"""What the suites over every search engine share: the engines, their empty stores, another process, documents and questions in short."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from apps.retrieval.plugins import sqlite_engine  # noqa: F401 - registers the backend
from apps.retrieval.plugins.postgres_engine import PostgresBackend
from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, Query, SearchBackend, Vector, folder_key

SPACE = "hand:4"
ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("sqlite", "postgres", "postgres-plain")


def store_options(request: pytest.FixtureRequest, folder: Path, engine: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    name, _, mode = engine.partition("-")
    if name == "sqlite":
        yield name, {"path": str(folder / "search.sqlite3")}
        return
    schema = f"kb_index_{secrets.token_hex(4)}"
    options = {"dsn": request.getfixturevalue("index_database"), "schema": schema, "mode": mode or "auto"}
    yield name, options
    PostgresBackend(options["dsn"], schema=schema).drop()


READER = """
import json, sys
from apps.retrieval.plugins import postgres_engine, sqlite_engine
from apps.retrieval.plugins.protocol import Query, backends
name, options = json.loads(sys.argv[1])
backend = backends.get(name)(options)
for line in sys.stdin:
    print(json.dumps([hit.doc_id for hit in backend.search(Query(1, (1,), json.loads(line), mode="text"))]), flush=True)
"""


@contextmanager
def reader(options: tuple[str, Mapping[str, str]]) -> Iterator[Callable[[str], list[int]]]:
    """A function that searches in another process, which keeps its backend open between calls."""
    process = subprocess.Popen(
        [sys.executable, "-c", READER, json.dumps(options)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout

    def search(text: str) -> list[int]:
        process.stdin.write(json.dumps(text) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    try:
        yield search
    finally:
        process.stdin.close()
        process.wait(20)


def unit(*values: float) -> Vector:
    made = np.array(values, dtype=np.float32)
    return made / np.linalg.norm(made)


def doc(key: int, text: str | tuple[str, ...], *, vectors: tuple[Vector | None, ...] = (), **fields: object) -> IndexDocument:
    """A document of one chunk a text, chunk ids key * 100 + n."""
    texts = (text,) if isinstance(text, str) else text
    chunks = tuple(IndexChunk(key * 100 + at, t, vectors[at] if vectors else None) for at, t in enumerate(texts))
    values = {"tenant_id": 1, "kb_id": 1, "rev": 1, "folder_id": 0, "vector_space": SPACE if vectors else "", **fields}
    return IndexDocument(id=key, chunks=chunks, **values)  # type: ignore[arg-type]


def ask(backend: SearchBackend, text: str = "", **fields: object) -> list[int]:
    """Document ids found, best first."""
    values = {"tenant_id": 1, "kb_ids": (1,), "mode": "text", **fields}
    return [hit.doc_id for hit in backend.search(Query(text=text, **values))]  # type: ignore[arg-type]


def world(backend: SearchBackend) -> None:
    """Two spaces with twin data: every document says the same and points the same way."""
    same = unit(1, 0, 0, 0)
    backend.put(
        [
            doc(1, "水泵手册 pump manual", vectors=(same,), tag_ids=(7,), folder_id=folder_key("a/b")),
            doc(2, "水泵手册 pump manual", vectors=(same,), tag_ids=(8,)),
            doc(3, "水泵手册 pump manual", vectors=(same,), kb_id=2, tag_ids=(7, 8)),
            doc(4, "水泵手册 pump manual", vectors=(same,), enabled=False),
            doc(11, "水泵手册 pump manual", vectors=(same,), tenant_id=2, kb_id=21, tag_ids=(7,), folder_id=folder_key("a/b")),
        ]
    )
