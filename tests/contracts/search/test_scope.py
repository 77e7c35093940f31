"""Every search engine sees the scope of a question and nothing else."""

from __future__ import annotations

import pytest

from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, Query, SearchBackend, folder_key
from tests.support.search_engines import SPACE, ask, doc, unit, world

CASES = [
    ({}, [1, 2]),
    ({"kb_ids": (1, 2)}, [1, 2, 3]),
    ({"kb_ids": (2,)}, [3]),
    ({"kb_ids": ()}, []),
    ({"kb_ids": (21,)}, []),  # another space's base
    ({"kb_ids": (1, 21)}, [1, 2]),
    ({"kb_ids": tuple(range(1, 200))}, [1, 2, 3]),  # more bases than are pushed into the word index
    ({"kb_ids": (21, *range(300, 400))}, []),
    ({"tenant_id": 2, "kb_ids": (1, 2, 21)}, [11]),
    ({"tenant_id": 2, "kb_ids": tuple(range(1, 200))}, [11]),
    ({"tenant_id": 3, "kb_ids": (1, 2, 21)}, []),
    ({"tag_ids": (7,)}, [1]),
    ({"tag_ids": (7, 8)}, [1, 2]),
    ({"tag_ids": (9,)}, []),
    ({"tag_ids": ()}, []),
    ({"folder_ids": (folder_key("a/b"),)}, [1]),
    ({"folder_ids": (0,)}, [2]),
    ({"folder_ids": ()}, []),
    ({"doc_ids": (2, 3, 11)}, [2]),
    ({"doc_ids": ()}, []),
    ({"tag_ids": (7,), "folder_ids": (folder_key("a/b"),), "doc_ids": (1, 2)}, [1]),
    ({"tag_ids": (8,), "folder_ids": (folder_key("a/b"),)}, []),
    ({"kb_ids": (2**70, -1)}, []),
    ({"kb_ids": (1,), "doc_ids": (2**70,)}, []),
]


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
@pytest.mark.parametrize(("fields", "expected"), CASES)
def test_a_query_sees_its_scope_and_nothing_else(backend: SearchBackend, mode: str, fields: dict, expected: list[int]) -> None:
    world(backend)
    found = ask(backend, "水泵 pump", mode=mode, vector=unit(1, 0, 0, 0), vector_space=SPACE, **fields)
    assert sorted(found) == expected


def test_every_leg_keeps_to_the_scope(backend: SearchBackend) -> None:
    world(backend)
    query = Query(tenant_id=2, kb_ids=(1, 21), text="水泵 pump manual", vector=unit(1, 0, 0, 0), vector_space=SPACE)
    assert [(h.doc_id, h.held) for h in backend.text_leg(query)] == [(11, 1.0)]
    assert [h.doc_id for h in backend.vector_leg(query)] == [11]
    assert [h.doc_id for h in backend.exact_leg(query)] == []


@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
@pytest.mark.parametrize(
    "fields",
    [{"tag_ids": (5,)}, {"folder_ids": (folder_key("x"),)}, {"doc_ids": (500,)}, {"kb_ids": (2,)}, {"kb_ids": tuple(range(2, 90))}],
)
def test_filters_come_before_the_best_are_taken(backend: SearchBackend, mode: str, fields: dict) -> None:
    """The one allowed document is worse than 80 others in both legs, with 5 candidates a leg."""
    better = [doc(key, "pump pump pump", vectors=(unit(1, 0.001 * key, 0, 0),)) for key in range(1, 81)]
    worst = doc(
        500, "a very long text about many things and one pump " * 3, vectors=(unit(0.2, 0, 1, 0),), tag_ids=(5,), folder_id=folder_key("x")
    )
    backend.put(better)
    backend.put([worst if "kb_ids" not in fields else doc(500, worst.chunks[0].text, vectors=(unit(0.2, 0, 1, 0),), kb_id=2)])
    assert ask(backend, "pump", mode=mode, vector=unit(1, 0, 0, 0), vector_space=SPACE, candidates=5, k=5, **fields) == [500]


def test_disabled_passages_are_hidden_before_the_best_are_taken(backend: SearchBackend) -> None:
    chunks = tuple(IndexChunk(at, "pump", unit(1, 0, 0, 0), enabled=at == 79) for at in range(80))
    backend.put([IndexDocument(id=1, tenant_id=1, kb_id=1, rev=1, folder_id=0, vector_space=SPACE, chunks=chunks)])
    for mode in ("text", "vector", "hybrid"):
        hits = backend.search(Query(1, (1,), "pump", unit(1, 0, 0, 0), SPACE, mode=mode, candidates=3, k=3))
        assert [hit.chunk_id for hit in hits] == [79]
