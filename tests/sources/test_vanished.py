"""Things that are gone at the source, that come back, and listings that are not to be believed."""

from __future__ import annotations

from typing import Any

import pytest

from apps.common.scope import space_scope
from apps.sources.plugins.protocol import SourceError
from apps.sources.selectors import held_items, source_row
from apps.sources.services import held_delete, held_keep
from tests.sources.conftest import Desk
from tests.sources.test_sync import counts


def _uids(desk: Desk) -> dict[str, Any]:
    return {title: row.uid for title, row in desk.documents().items()}


def test_deletions_failures_and_returns(desk: Desk) -> None:
    """Ten items; eight; an error; an empty answer; ten again."""
    desk.shelf.fill(10)
    assert counts(desk.sync()) == {"created": 10, "listed": 10}
    before = _uids(desk)
    gone = desk.shelf.drop("id-3", "id-7")
    assert counts(desk.sync()) == {"deleted": 2, "unchanged": 8, "listed": 8}
    assert set(before) - set(_uids(desk)) == {"Note 3", "Note 7"}

    desk.shelf.listing_error = SourceError("unavailable", "500", passing=True)
    run = desk.sync()
    assert (run.outcome, run.reason, counts(run), len(_uids(desk))) == ("failed", "unavailable", {}, 8)
    assert desk.source.status == "error"
    desk.shelf.listing_error = None

    kept, desk.shelf.things = desk.shelf.things, {}
    run = desk.sync()
    assert (run.outcome, counts(run), len(_uids(desk))) == ("partial", {"held": 8}, 8)
    assert run.warnings == [{"code": "suspicious_listing", "params": {"gone": 8, "known": 8}}]
    assert counts(desk.sync()) == {}, "nobody is asked twice, and nothing is written again"

    desk.shelf.things = {**kept, **gone}
    run = desk.sync()
    assert (run.outcome, counts(run)) == ("success", {"created": 2, "unchanged": 10, "listed": 10})
    assert _uids(desk) == before, "what returns is what it was"
    assert {row.version for row in desk.documents().values()} == {1}
    assert counts(desk.sync()) == {"unchanged": 10, "listed": 10}


def test_a_listing_that_breaks_off_deletes_nothing(desk: Desk) -> None:
    desk.shelf.per_page = 3
    desk.shelf.fill(9)
    desk.sync()
    desk.shelf.drop("id-9")
    desk.shelf.fail_after_pages, desk.shelf.listing_error = 2, SourceError("forbidden")
    run = desk.sync()
    assert (run.outcome, run.reason, len(desk.documents())) == ("failed", "forbidden", 9)
    desk.shelf.listing_error = None
    assert counts(desk.sync()) == {"deleted": 1, "unchanged": 8, "listed": 8}


def test_a_listing_with_a_part_missing_deletes_nothing_and_says_so(desk: Desk) -> None:
    desk.shelf.fill(4)
    desk.sync()
    desk.shelf.drop("id-4")
    desk.shelf.faults = (SourceError("forbidden", "no right", item="Folder B"),)
    run = desk.sync()
    assert (run.outcome, counts(run), len(desk.documents())) == ("partial", {"unchanged": 3, "listed": 3}, 4)
    assert run.warnings == [{"code": "partial_listing", "params": {"code": "forbidden"}}]
    assert run.errors == [{"title": "Folder B", "code": "forbidden", "message": "no right"}]
    desk.shelf.faults = ()
    assert counts(desk.sync()) == {"deleted": 1, "unchanged": 3, "listed": 3}


@pytest.mark.parametrize(("gone", "outcome"), [(5, {"deleted": 5}), (6, {"held": 6})])
def test_more_than_half_at_once_waits_for_a_person(desk: Desk, gone: int, outcome: dict[str, int]) -> None:
    desk.shelf.fill(10)
    desk.sync()
    desk.shelf.drop(*[f"id-{number}" for number in range(1, gone + 1)])
    run = desk.sync()
    assert counts(run) == {**outcome, "unchanged": 10 - gone, "listed": 10 - gone}


def test_other_names_for_everything_delete_nothing(desk: Desk) -> None:
    """A site that changed all its addresses names ten new things and none of the old ones."""
    desk.shelf.fill(4)
    desk.sync()
    old = desk.shelf.drop(*list(desk.shelf.things))
    for name, thing in old.items():
        desk.shelf.put(f"new-{name}", f"New {thing.title}", f"{thing.text} (moved)")
    run = desk.sync()
    assert (run.outcome, counts(run)) == ("partial", {"created": 4, "held": 4, "listed": 4})
    assert len(desk.documents()) == 8


@pytest.mark.parametrize("as_delta", [False, True])
def test_policies(desk: Desk, as_delta: bool) -> None:
    desk.shelf.as_delta = as_delta
    for policy, outcome, left, state in (
        ("apply", {"deleted": 1}, 3, "deleted"),
        ("hold", {"held": 1}, 3, "held"),
        ("ignore", {}, 3, "kept"),
    ):
        desk.shelf.things.clear()
        desk.shelf.changes.clear()
        desk.make(deletion_policy=policy)
        for number in range(1, 5):
            desk.shelf.put(f"{policy}-{number}", f"{policy} {number}", f"Text {number} for {policy}.")
        desk.sync()
        desk.shelf.drop(f"{policy}-1")
        run = desk.sync()
        assert {name: count for name, count in counts(run).items() if name not in ("unchanged", "listed")} == outcome, policy
        assert len([title for title in desk.documents() if title.startswith(policy)]) == left + (policy != "apply")
        assert desk.items()[f"{policy}-1"].state == state
        again = counts(desk.sync())
        assert {name for name in again if name not in ("unchanged", "listed")} == set(), "the same thing is not said twice"


def test_an_admin_decides_about_what_is_held(desk: Desk) -> None:
    desk.make(deletion_policy="hold")
    desk.shelf.fill(6)
    desk.sync()
    gone = desk.shelf.drop("id-1", "id-2", "id-3")
    desk.sync()
    with space_scope(desk.world.space.pk, "test"):
        held = list(held_items(actor=desk.actor, source=desk.source))
        assert [item.title for item in held] == ["Note 1", "Note 2", "Note 3"]
        assert (source_row(actor=desk.actor, source=desk.source).held, source_row(actor=desk.actor, source=desk.source).retained) == (3, 6)
        assert held_delete(actor=desk.actor, source=desk.source, items=held[:1]).count == 1
        assert held_keep(actor=desk.actor, source=desk.source, items=held[1:2]) == 1
        assert (
            held_delete(actor=desk.actor, source=desk.source, items=held[:2]).count,
            held_keep(actor=desk.actor, source=desk.source, items=held[:2]),
        ) == (0, 0)
    assert sorted(desk.documents()) == [f"Note {number}" for number in range(2, 7)]
    assert counts(desk.sync()) == {"unchanged": 3, "listed": 3}, "what was decided is not asked again"
    desk.shelf.things.update(gone)
    uid = desk.items()["id-1"].document.uid
    desk.sync()
    assert (desk.documents()["Note 1"].uid, {row.state for row in desk.items().values()}) == (uid, {"live"})


def test_a_document_that_is_being_moved_is_deleted_next_time(desk: Desk) -> None:
    from apps.knowledge.models import MoveRun
    from apps.knowledge.services import documents_move

    desk.shelf.fill(4)
    desk.sync()
    target = desk.world.make_base(desk.world.space, "Elsewhere")
    with space_scope(desk.world.space.pk, "test"):
        document = desk.documents()["Note 1"]
        type(document).objects.filter(pk=document.pk).update(parse_status="completed")
        document = type(document).objects.select_related("kb").get(pk=document.pk)
        move = documents_move(actor=desk.actor, source=desk.world.base, target=target, documents=[document], mode="reuse_vectors")
    desk.shelf.drop("id-1", "id-2")
    run = desk.sync()
    assert (run.outcome, counts(run), run.errors[0]["code"]) == (
        "partial",
        {"deleted": 1, "failed": 1, "unchanged": 2, "listed": 2},
        "deletion_failed",
    )
    with space_scope(desk.world.space.pk, "test"):
        MoveRun.objects.filter(pk=move.pk).update(state="cancelled")
    assert counts(desk.sync()) == {"deleted": 1, "unchanged": 2, "listed": 2}
    assert sorted(desk.documents()) == ["Note 3", "Note 4"]
