"""What every search engine promises of writes."""

from __future__ import annotations

import numpy as np
import pytest

from apps.common.errors import InvalidInput
from apps.retrieval.plugins.protocol import Filing, IndexChunk, Query, SearchBackend, Vector
from tests.support.search_engines import SPACE, ask, doc, unit


def test_put_replaces_the_whole_document(backend: SearchBackend) -> None:
    backend.put([doc(1, ("old words", "second passage"), vectors=(unit(1, 0, 0, 0), unit(0, 1, 0, 0)), tag_ids=(3,), rev=1)])
    backend.put([doc(1, "new words", kb_id=2, rev=2)])
    assert ask(backend, "old") == ask(backend, "second") == ask(backend, "new") == []
    assert ask(backend, "new", kb_ids=(2,)) == [1]
    assert ask(backend, "new", kb_ids=(2,), tag_ids=(3,)) == []
    assert ask(backend, mode="vector", vector=unit(1, 0, 0, 0), vector_space=SPACE, kb_ids=(1, 2)) == []
    assert backend.revisions(1) == {1: 2}
    stats = backend.stats(1)
    assert (stats.documents, stats.chunks, stats.vectors) == (1, 1, 0)
    assert backend.check() == []


def test_an_older_revision_is_ignored_and_the_same_one_replaces(backend: SearchBackend) -> None:
    backend.put([doc(1, "second version", rev=5)])
    backend.put([doc(1, "first version", rev=4)])
    assert ask(backend, "first") == []
    assert ask(backend, "second") == [1]
    backend.put([doc(1, "second again", rev=5)])
    assert ask(backend, "again") == [1]
    assert backend.revisions() == {1: 5}


def test_a_document_of_another_space_cannot_be_overwritten_or_deleted(backend: SearchBackend) -> None:
    backend.put([doc(1, "mine")])
    with pytest.raises(InvalidInput):
        backend.put([doc(1, "stolen", tenant_id=2, rev=9)])
    backend.delete(2, doc_ids=[1])
    backend.delete(2, kb_ids=[1])
    backend.set_flags(2, [1], enabled=False, kb_id=9, folder_id=5, tag_ids=[1])
    backend.set_chunk_enabled(2, [100], False)
    assert backend.set_vectors(2, 1, 1, SPACE, {100: unit(1, 0, 0, 0)}) is False
    assert ask(backend, "mine") == [1]


def test_delete_by_document_and_by_base(backend: SearchBackend) -> None:
    backend.put([doc(key, "pump", kb_id=1 + key % 2, vectors=(unit(1, 0, 0, 0),), tag_ids=(1,)) for key in range(1, 451)])
    backend.delete(1, doc_ids=[2, 4, 999])
    assert set(backend.revisions(1)) == set(range(1, 451)) - {2, 4}
    backend.delete(1, kb_ids=[1])
    assert set(backend.revisions(1)) == set(range(1, 451, 2))
    assert ask(backend, "pump", tag_ids=(1,)) == []
    assert len(ask(backend, "pump", kb_ids=(1, 2), k=10)) == 10
    backend.delete(1)
    assert len(backend.revisions(1)) == 225
    assert backend.check() == []


@pytest.mark.parametrize("mode", ["text", "vector"])
def test_flags_change_what_filters_see(backend: SearchBackend, mode: str) -> None:
    backend.put([doc(1, ("pump", "pump"), vectors=(unit(1, 0, 0, 0), unit(1, 0, 0, 0)), tag_ids=(1,))])

    def seen(**fields: object) -> int:
        return len(ask(backend, "pump", mode=mode, vector=unit(1, 0, 0, 0), vector_space=SPACE, **fields))

    backend.set_chunk_enabled(1, [101], False)
    assert seen() == 1
    backend.set_flags(1, [1], enabled=False)
    assert seen() == 0
    backend.set_chunk_enabled(1, [100], True)  # the document is off, so this stays hidden
    assert seen() == 0
    backend.set_flags(1, [1], enabled=True)
    assert seen() == 1  # and the passage that was off by itself stays off
    backend.set_chunk_enabled(1, [101], True)
    assert seen() == 2
    backend.set_flags(1, [1], tag_ids=[2, 3], folder_id=77)
    assert (seen(tag_ids=(1,)), seen(tag_ids=(2,)), seen(folder_ids=(0,)), seen(folder_ids=(77,))) == (0, 2, 0, 2)
    backend.set_flags(1, [1], tag_ids=[])
    assert (seen(tag_ids=(2, 3)), seen()) == (0, 2)


def test_a_moved_document_is_found_in_its_new_base_only(backend: SearchBackend) -> None:
    backend.put([doc(1, "pump ERR-4021", vectors=(unit(1, 0, 0, 0),)), doc(2, "valve", kb_id=2)])
    fields = {"mode": "hybrid", "vector": unit(1, 0, 0, 0), "vector_space": SPACE}
    backend.set_flags(1, [1], kb_id=2)
    assert ask(backend, "pump", **fields) == []
    assert ask(backend, "ERR-4021", kb_ids=(2,), **fields) == [1]
    assert ask(backend, "pump", kb_ids=(2, *range(50, 120))) == [1]
    backend.set_flags(1, [1], kb_id=3)
    assert ask(backend, "pump", kb_ids=(1, 2), **fields) == []
    assert ask(backend, "pump", kb_ids=(3,), **fields) == [1]
    backend.set_flags(1, [1], kb_id=1)
    assert ask(backend, "pump") == [1]
    backend.set_flags(1, [1], kb_id=3)
    backend.put([doc(1, "pump again", kb_id=3, rev=2)])
    assert ask(backend, "again", kb_ids=(3,)) == [1]
    assert ask(backend, "pump again") == []
    assert backend.check() == []


def test_vectors_may_follow_later_and_only_for_the_same_revision(backend: SearchBackend) -> None:
    backend.put([doc(1, ("one", "two"), rev=3)])
    assert backend.set_vectors(1, 1, 2, SPACE, {100: unit(1, 0, 0, 0)}) is False
    assert backend.set_vectors(1, 9, 3, SPACE, {900: unit(1, 0, 0, 0)}) is False
    assert backend.stats().vectors == 0
    assert backend.set_vectors(1, 1, 3, SPACE, {100: unit(1, 0, 0, 0)}) is True
    assert backend.set_vectors(1, 1, 3, SPACE, {101: unit(0, 1, 0, 0), 999: unit(0, 0, 1, 0)}) is True
    hits = backend.vector_leg(Query(1, (1,), vector=unit(0.1, 1, 0, 0), vector_space=SPACE))
    assert [(h.chunk_id, h.rank) for h in hits] == [(101, 1), (100, 2)]
    assert hits[0].score == pytest.approx(float(unit(0.1, 1, 0, 0) @ unit(0, 1, 0, 0)), abs=0.01)
    assert backend.stats().vectors == 2
    assert ask(backend, "two") == [1]


def test_vectors_of_another_space_are_never_compared(backend: SearchBackend) -> None:
    backend.put([doc(1, "one", vectors=(unit(1, 0, 0, 0),))])
    assert ask(backend, mode="vector", vector=unit(1, 0, 0, 0), vector_space="other:4") == []
    assert ask(backend, mode="vector", vector=unit(1, 0, 0), vector_space=SPACE) == []
    assert backend.set_vectors(1, 1, 1, "other:3", {100: unit(1, 0, 0)}) is True
    assert ask(backend, mode="vector", vector=unit(1, 0, 0, 0), vector_space=SPACE) == []
    assert ask(backend, mode="vector", vector=unit(1, 0, 0), vector_space="other:3") == [1]


@pytest.mark.parametrize(
    "vectors",
    [
        (unit(1, 0, 0),),  # the space has four dimensions
        (np.array([np.nan, 0, 0, 0], dtype=np.float32),),
        (np.zeros((2, 2), dtype=np.float32),),
    ],
)
def test_wrong_vectors_are_refused_and_change_nothing(backend: SearchBackend, vectors: tuple[Vector, ...]) -> None:
    backend.put([doc(1, "one", vectors=(unit(1, 0, 0, 0),))])
    with pytest.raises(InvalidInput):
        backend.put([doc(1, "changed", vectors=vectors, rev=2)])
    assert (ask(backend, "one"), ask(backend, "changed")) == ([1], [])


def test_bytes_keep_the_order_of_cosines(backend: SearchBackend) -> None:
    random = np.random.default_rng(7)
    made = random.normal(size=(400, 64)).astype(np.float32) + 2.0  # squeezed together, as real embeddings are
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    backend.put([doc(key, "", vectors=(made[key],), vector_space="random:64") for key in range(400)])
    recalled = 0
    for at in range(0, 400, 20):
        question = made[at] + 0.02 * random.normal(size=64).astype(np.float32)
        best = set(np.argsort(-(made @ question))[:50].tolist())
        found = backend.vector_leg(Query(1, (1,), vector=question, vector_space="random:64"))
        assert found[0].doc_id == at
        recalled += len(best & {hit.doc_id for hit in found})
    assert recalled / (20 * 50) > 0.97


def test_refiled_documents_keep_their_words_and_vectors_and_take_new_heads(backend: SearchBackend) -> None:
    fields = {"mode": "hybrid", "vector": unit(1, 0, 0, 0), "vector_space": SPACE}
    texts, vectors = ("pump redtag", "valve"), (unit(1, 0, 0, 0), unit(0, 1, 0, 0))
    backend.put([doc(key, texts, vectors=vectors, tag_ids=(1,), rev=4) for key in (1, 2, 3, 4)])
    backend.put([doc(5, "pump", tenant_id=2, rev=4)])
    backend.set_chunk_enabled(1, [101], False)
    filings = [
        Filing(1, 5, 77, (2, 3, 2), (IndexChunk(100, "pump bluetag"),)),
        Filing(2, 6, 77, (2,)),  # the index is a revision behind
        Filing(3, 4, 77, (2,)),  # it has this one
        Filing(4, 3, 77, (2,)),  # and here a newer one
        Filing(9, 1, 77, (2,)),  # it never heard of this
        Filing(5, 5, 77, (2,)),  # another space's
    ]
    assert sorted(backend.refile(1, filings)) == [2, 5, 9]
    assert backend.revisions() == {1: 5, 2: 4, 3: 4, 4: 4, 5: 4}
    assert ask(backend, "bluetag") == [1] and sorted(ask(backend, "redtag")) == [2, 3, 4]
    assert ask(backend, "pump", folder_ids=(77,)) == [1] and ask(backend, "pump", folder_ids=(0,), doc_ids=(1,)) == []
    assert (ask(backend, "pump", tag_ids=(3,)), ask(backend, "pump", tag_ids=(1,), doc_ids=(1,))) == ([1], [])
    assert ask(backend, "nothing of it", folder_ids=(77,), **fields) == [1], "vectors stay, and are filtered alike"
    assert ask(backend, "valve", doc_ids=(1,)) == [], "a passage that was off stays off"
    backend.set_flags(1, [1], kb_id=2)
    assert backend.refile(1, [Filing(1, 6, 0, (), (IndexChunk(100, "pump greentag"),))]) == []
    assert (ask(backend, "greentag", kb_ids=(2,)), ask(backend, "greentag"), ask(backend, "bluetag", kb_ids=(2,))) == ([1], [], [])
    assert backend.refile(1, []) == [] and backend.check() == []
