"""The life of a search engine's store: versions, damage, building it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from apps.common.errors import InvalidInput, TransientError, Unavailable
from apps.retrieval.plugins.protocol import IndexOutdated, SearchBackend, backends, folder_key
from tests.support.search_engines import ENGINES, ask, doc, reader, world


def test_no_engine_goes_untested() -> None:
    assert {engine.partition("-")[0] for engine in ENGINES} == set(backends.names())


def test_rebuilding_goes_on_beside_searching_and_is_swapped_in_for_everyone(
    backend: SearchBackend, options: tuple[str, Mapping[str, str]]
) -> None:
    backend.put([doc(1, "old pump"), doc(2, "orphan pump")])
    with reader(options) as elsewhere:
        assert sorted(elsewhere("pump")) == [1, 2]
        new = backend.begin_rebuild()
        new.put([doc(1, "new pump"), doc(5, "stale pump", rev=1)])
        assert (elsewhere("old"), elsewhere("new")) == ([1], [])
        backend.put([doc(3, "written meanwhile pump"), doc(5, "fresh pump", rev=2)])
        new.put([doc(5, "stale pump", rev=1)])
        backends.get(options[0])(options[1]).delete(1, doc_ids=[1])
        assert sorted(elsewhere("pump")) == [2, 3, 5]
        backend.swap(new)
        assert sorted(elsewhere("pump")) == [3, 5]
        assert (elsewhere("orphan"), elsewhere("stale"), elsewhere("fresh")) == ([], [], [5])
        backend.put([doc(4, "after pump")])
        assert elsewhere("after") == [4]
    assert backend.revisions() == {3: 1, 5: 2, 4: 1}
    assert backend.check() == []


def test_a_rebuild_that_was_given_up_cannot_be_swapped_in(backend: SearchBackend) -> None:
    backend.put([doc(1, "pump")])
    first = backend.begin_rebuild()
    second = backend.begin_rebuild()
    with pytest.raises(IndexOutdated):
        backend.swap(first)
    second.put([doc(2, "valve")])
    backend.swap(second)
    assert (ask(backend, "pump"), ask(backend, "valve")) == ([], [2])


def test_an_index_of_another_version_says_so_and_can_be_built_again(
    backend: SearchBackend, options: tuple[str, Mapping[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.put([doc(1, "pump")])
    for module in ("sqlite_store", "postgres_store", "postgres_schema"):
        monkeypatch.setattr(f"apps.retrieval.plugins.{module}.tokeniser_id", lambda: "another")
    later = backends.get(options[0])(options[1])
    for call in (later.ensure, lambda: ask(later, "pump"), lambda: later.put([doc(2, "x")]), later.stats):
        with pytest.raises(IndexOutdated, match="rebuild_index"):
            call()
    new = later.begin_rebuild()
    new.put([doc(1, "pump")])
    later.put([doc(2, "pump, written while the old index cannot be used")])
    later.swap(new)
    assert sorted(ask(later, "pump")) == [1, 2]


def test_a_damaged_file_says_so_and_can_be_built_again(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "search.sqlite3")}
    backend = backends.get("sqlite")(options)
    backend.ensure()
    backend.put([doc(1, "pump")])
    (file,) = tmp_path.glob("search-*.sqlite3")
    file.write_bytes(b"not a database at all" * 500)
    later = backends.get("sqlite")(options)
    for call in (lambda: ask(later, "pump"), lambda: later.put([doc(2, "x")]), later.revisions):
        with pytest.raises(Unavailable, match="rebuild_index") as failed:
            call()
        assert failed.value.code == "index_damaged"
    new = later.begin_rebuild()
    new.put([doc(1, "pump")])
    later.put([doc(2, "pump, written while the old index cannot be used")])
    later.swap(new)
    assert sorted(ask(later, "pump")) == [1, 2]
    assert later.check() == []


def test_an_index_deleted_by_hand_comes_back_empty(tmp_path: Path) -> None:
    backend = backends.get("sqlite")({"path": str(tmp_path / "search.sqlite3")})
    backend.ensure()
    backend.put([doc(1, "pump")])
    for file in tmp_path.glob("search-*"):
        file.unlink()
    later = backends.get("sqlite")({"path": str(tmp_path / "search.sqlite3")})
    with pytest.raises(TransientError) as failed:
        ask(later, "pump")
    assert failed.value.code == "index_busy"
    later.ensure()
    assert ask(later, "pump") == []
    later.put([doc(1, "pump")])
    assert ask(later, "pump") == [1]


def test_a_missing_index_says_so(options: tuple[str, Mapping[str, str]]) -> None:
    fresh = backends.get(options[0])(options[1])
    with pytest.raises(IndexOutdated, match="rebuild_index"):
        ask(fresh, "pump")
    fresh.ensure()
    fresh.ensure()
    assert ask(fresh, "pump") == []


def test_missing_options_are_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        backends.get("sqlite")({})
    assert refused.value.field == "path"


def test_stats_count_and_measure(backend: SearchBackend) -> None:
    world(backend)
    mine, all_of_it = backend.stats(1), backend.stats()
    assert (mine.documents, mine.chunks, mine.vectors) == (4, 4, 4)
    assert (all_of_it.documents, all_of_it.chunks, all_of_it.vectors) == (5, 5, 5)
    assert all_of_it.size_bytes > 0
    assert backend.revisions(2) == {11: 1}


def test_folder_key_is_stable_and_ignores_surplus_slashes() -> None:
    assert folder_key("") == folder_key("/") == 0
    assert folder_key("/a//b/") == folder_key("a/b") != folder_key("a/c")
    assert 0 < folder_key("a/b") < 2**63
    assert folder_key("财务") == folder_key("财务/")
