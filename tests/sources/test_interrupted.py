"""Runs that are killed, stopped, or whose source or base goes away under them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from apps.common.jobs.tasks import work
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Document
from apps.knowledge.services import base_delete, base_purge, base_restore
from apps.sources.engine import run as engine
from apps.sources.engine.taking import Taking
from apps.sources.models import DataSource, SourceItem, SyncRun
from apps.sources.services import source_delete, sync_stop
from tests.sources.conftest import Desk, Killed
from tests.sources.test_sync import COUNTS


def _end_state(desk: Desk) -> dict[str, Any]:
    """What a run left, without what is never the same twice."""
    with unscoped("test look"):
        documents = sorted(
            (row.title, row.folder_path, row.version, desk.text(row), row.deleted_at is None)
            for row in Document.objects.filter(kb=desk.world.base)
        )
        items = sorted(
            (row.external_id, row.state, row.fingerprint, row.title, row.document.title if row.document else "", row.retry is None)
            for row in SourceItem.objects.filter(source=desk.source).select_related("document")
        )
    return {"documents": documents, "items": items, "cursor": desk.source.cursor}


def _expire(run: SyncRun) -> None:
    with unscoped("test data"):
        SyncRun.objects.filter(pk=run.pk).update(lease_until=Now() - timedelta(seconds=1))


def _scene(desk: Desk) -> None:
    """Forty things in pages of five; then some are new, changed, renamed, gone, the same as others, or fail."""
    desk.shelf.per_page = 5
    desk.shelf.fill(40)
    desk.sync()
    for number in (2, 11, 23):
        desk.shelf.put(f"id-{number}", f"Note {number}", f"Changed {number}.", stamp=f"changed-{number}")
    desk.shelf.change("id-5", title="Five", folder="moved")
    desk.shelf.drop("id-7", "id-8", "id-9")
    desk.shelf.put("copy", "Copy", "The text of note number 12.", stamp="c")
    for number in range(41, 46):
        desk.shelf.put(f"id-{number}", f"Note {number}", f"New {number}.", stamp=f"n{number}")


#: where the process dies -> (object, name of the function after or before which it does, on which call)
DEATHS = {
    "fetching": (None, "", 4),
    "document written, item not": (Taking, "put", 3),
    "item written": (SourceItem, "save", 5),
    "before anything is deleted": (engine.Vanishing, "settle", 1),
    "deleted, run not ended": (engine.Sync, "_end", 1),
}


@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("death", DEATHS)
def test_killed_anywhere_it_ends_like_an_undisturbed_run(
    world: Any, death: str, checkpoints: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm, killed = Desk(world), None
    _scene(calm)
    expected_run = calm.sync()
    expected = _end_state(calm)
    with unscoped("test data"):
        Document.objects.filter(kb=world.base).update(deleted_at=Now(), purge_at=None, file_hash="")
    world.base = world.make_base(world.space, "Second")
    killed = Desk(world)
    _scene(killed)
    if checkpoints:
        monkeypatch.setattr(engine, "CHECKPOINT_ITEMS", 1)
    run = killed.start()
    claim = killed.claim()
    with pytest.raises(Killed):
        _work_until_death(killed, claim, death)
    assert killed.fresh(run).state == "running"
    _expire(run)
    work(killed.claim())
    ended = killed.fresh(run)
    assert {name: getattr(ended, name) for name in COUNTS if name not in ("listed", "unchanged")} == {
        name: getattr(expected_run, name) for name in COUNTS if name not in ("listed", "unchanged")
    }
    assert (ended.listed, ended.outcome, ended.checkpoint, ended.seen) == (expected_run.listed, expected_run.outcome, None, None)
    assert _end_state(killed) == expected
    assert {name for name in COUNTS if getattr(killed.sync(), name)} == {"unchanged", "listed"}


def _work_until_death(desk: Desk, claim: Any, death: str) -> None:
    owner, name, at = DEATHS[death]
    calls = [0]

    def dies(*args: Any, **kwargs: Any) -> None:
        calls[0] += 1
        if calls[0] == at:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        if owner is None:
            desk.shelf.on_fetch = dies
        else:
            real = getattr(owner, name)

            def around(*args: Any, **kwargs: Any) -> Any:
                dies()
                return real(*args, **kwargs)

            patch.setattr(owner, name, around)
        try:
            work(claim)
        finally:
            desk.shelf.on_fetch = lambda item: None


def test_after_a_checkpoint_the_listing_goes_on_and_nothing_counts_as_gone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, die: Callable[[], None]
) -> None:
    monkeypatch.setattr(engine, "CHECKPOINT_ITEMS", 1)
    desk.shelf.per_page = 10
    desk.shelf.fill(50)
    pages: list[int] = []
    desk.shelf.on_page = lambda number: die() if number == 3 and not pages else None
    run = desk.start()
    with pytest.raises(Killed):
        work(desk.claim())
    assert desk.fresh(run).checkpoint["cursor"] == {"open": True, "at": 30}
    desk.shelf.on_page = pages.append
    _expire(run)
    work(desk.claim())
    ended = desk.fresh(run)
    assert (pages, ended.listed, ended.created, ended.held, ended.deleted) == ([0, 1], 50, 50, 0, 0)


def test_stopped_it_keeps_what_it_has_and_the_next_run_goes_on(desk: Desk) -> None:
    desk.shelf.fill(6)
    run = desk.start()
    claim = desk.claim()

    def stop(item: Any) -> None:
        if item.external_id == "id-4":
            with space_scope(desk.world.space.pk, "test"):
                assert sync_stop(actor=desk.actor, source=desk.source)
            claim.beat()

    desk.shelf.on_fetch = stop
    work(claim)
    stopped = desk.fresh(run)
    assert (stopped.outcome, stopped.reason, stopped.created, desk.source.status) == ("canceled", "cancelled", 4, "active")
    desk.shelf.on_fetch = lambda item: None
    assert desk.sync().created == 2
    assert len(desk.documents()) == 6


def test_a_run_that_waits_is_stopped_at_once(desk: Desk) -> None:
    run = desk.start()
    with space_scope(desk.world.space.pk, "test"):
        assert sync_stop(actor=desk.actor, source=desk.source)
        assert not sync_stop(actor=desk.actor, source=desk.source)
    assert desk.fresh(run).outcome == "canceled"


def test_the_source_is_deleted_under_a_run(desk: Desk) -> None:
    desk.shelf.fill(5)
    source = desk.source
    run = desk.start()
    claim = desk.claim()

    def delete(item: Any) -> None:
        if item.external_id == "id-3":
            with space_scope(desk.world.space.pk, "test"):
                source_delete(actor=desk.actor, source=source)

    desk.shelf.on_fetch = delete
    work(claim)
    ended = desk.fresh(run)
    assert (ended.outcome, ended.error, ended.created) == ("canceled", "data source deleted", 2)
    with unscoped("test look"):
        assert DataSource.objects.get(pk=source.pk).sealed == ""
    assert len(desk.documents()) == 3, "what was taken over stays"


def test_the_base_is_deleted_under_a_run_and_comes_back(desk: Desk) -> None:
    desk.shelf.fill(5)
    desk.source  # noqa: B018 - made before the base goes
    run = desk.start()
    claim = desk.claim()

    def delete(item: Any) -> None:
        if item.external_id == "id-3":
            with space_scope(desk.world.space.pk, "test"):
                base_delete(actor=desk.actor, base=desk.world.base)

    desk.shelf.on_fetch = delete
    work(claim)
    assert (desk.fresh(run).outcome, desk.documents()) == ("canceled", {})
    desk.shelf.on_fetch = lambda item: None
    with space_scope(desk.world.space.pk, "test"):
        base_restore(actor=desk.actor, base=desk.world.base)
    desk.sync()
    assert len(desk.documents()) == 5


def test_a_base_removed_for_good_takes_its_sources_along(desk: Desk, run_jobs: Any) -> None:
    desk.shelf.fill(3)
    desk.sync()
    with space_scope(desk.world.space.pk, "test"):
        base_delete(actor=desk.actor, base=desk.world.base)
        base_purge(actor=desk.actor, base=desk.world.base)
    run_jobs("cleanup")
    with unscoped("test look"):
        assert [model.objects.count() for model in (DataSource, SourceItem, SyncRun, Document)] == [0, 0, 0, 0]


def test_there_is_one_run_at_a_time(desk: Desk) -> None:
    first, second = desk.start(), desk.start(mode="full")
    assert (first.pk, second.mode) == (second.pk, "incremental")
