"""When sources are looked at: cron in a person's time zone, once after a pause, never twice at a time; and how long history is kept."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.scope import space_scope, unscoped
from apps.knowledge.services import base_delete
from apps.sources.models import DataSource, SyncRun
from apps.sources.schedule import JITTER_MAX_S, clean_schedule, next_run, parse, share
from apps.sources.services import due_start, log_trim, source_pause, source_resume
from apps.sources.tasks import sources_upkeep, start_due
from tests.sources.conftest import Desk


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("0 */30 * * * *", "", "2026-03-01 10:29:59", "2026-03-01 10:30:00"),
        ("0 */30 * * * *", "", "2026-03-01 10:30:00", "2026-03-01 11:00:00"),
        ("0 0 */6 * * *", "", "2026-03-01 19:00", "2026-03-02 00:00"),
        ("0 0 2 * * *", "Asia/Shanghai", "2026-03-01 10:00", "2026-03-01 18:00"),
        ("30 7 * * mon-fri", "", "2026-03-06 08:00", "2026-03-09 07:30"),
        ("0 9 1 * *", "", "2026-01-31 10:00", "2026-02-01 09:00"),
        ("0 0 29 2 *", "", "2026-03-01 00:00", "2028-02-29 00:00"),
        ("0 0 13 * 5", "", "2026-03-01 00:00", "2026-03-06 00:00"),  # the 13th or a Friday, as cron has it
        ("0 0 * * 7", "", "2026-03-02 00:00", "2026-03-08 00:00"),
        ("@daily", "", "2026-03-01 10:00", "2026-03-02 00:00"),
        ("15 0 12 ? jan,jul sun", "", "2026-03-01 00:00", "2026-07-05 12:00:15"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29 00:00", "2026-03-29 01:30"),  # 02:30 is left out that night: an hour later
        ("30 2 * * *", "Europe/Berlin", "2026-10-25 00:45", "2026-10-26 01:30"),  # it came once already
    ],
)
def test_next_time(schedule: str, zone: str, after: str, expected: str) -> None:
    assert parse(schedule).next_after(at(after), zone) == at(expected)


@pytest.mark.parametrize(
    "text", ["soon", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "*/0 * * * *", "0 0 30 2 *", "a b c d e", "1" * 121]
)
def test_what_is_no_schedule_is_refused_at_its_field(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        clean_schedule(text)
    assert (refused.value.code, refused.value.field) == ("bad_schedule", "sync_schedule")


def test_sources_of_one_schedule_do_not_all_fire_at_once() -> None:
    now = at("2026-03-01 10:00:30")
    due = [next_run("0 0 * * * *", "", uuid.UUID(int=number), now) for number in range(50)]
    waits = sorted((each - at("2026-03-01 11:00")).total_seconds() for each in due if each)
    assert 0 <= waits[0] and waits[-1] <= JITTER_MAX_S and len({int(wait) for wait in waits}) > 25
    assert next_run("0 0 * * * *", "", uuid.UUID(int=1), now) == due[1], "a source keeps its own moment"
    assert 0 <= share(uuid.UUID(int=9)) <= 1
    often = next_run("* * * * *", "", uuid.UUID(int=3), now)
    assert often is not None and (often - at("2026-03-01 10:01")).total_seconds() <= 6
    assert next_run("", "", uuid.UUID(int=3), now) is None


def _due(desk: Desk, now: datetime) -> int:
    with space_scope(desk.world.space.pk, "test"):
        return due_start(actor=Actor.system(desk.world.space.pk, "test"), now=now)


def _runs(desk: Desk) -> list[SyncRun]:
    with unscoped("test look"):
        return list(SyncRun.objects.filter(source=desk.source).order_by("pk"))


def test_after_days_without_a_schedule_process_there_is_one_run(desk: Desk) -> None:
    desk.make(schedule="0 0 * * * *")
    first = desk.source.next_run_at
    assert _due(desk, first - timedelta(seconds=1)) == 0
    later = first + timedelta(days=3, minutes=10)
    assert (_due(desk, later), _due(desk, later), len(_runs(desk))) == (1, 0, 1)
    assert later < desk.source.next_run_at <= later + timedelta(hours=1, seconds=JITTER_MAX_S)
    assert (_runs(desk)[0].trigger, _runs(desk)[0].mode) == ("schedule", "incremental")


def test_what_is_under_way_is_not_started_again(desk: Desk) -> None:
    desk.make(schedule="*/5 * * * *")
    run = desk.start()
    assert _due(desk, desk.source.next_run_at) == 0
    assert [each.pk for each in _runs(desk)] == [run.pk]


def test_paused_sources_and_those_of_deleted_bases_rest(desk: Desk) -> None:
    desk.make(schedule="*/5 * * * *")
    due = desk.source.next_run_at + timedelta(hours=1)
    with space_scope(desk.world.space.pk, "test"):
        source_pause(actor=desk.actor, source=desk.source)
    assert (_due(desk, due), desk.source.next_run_at) == (0, None)
    with space_scope(desk.world.space.pk, "test"):
        source_resume(actor=desk.actor, source=desk.source)
        base_delete(actor=desk.actor, base=desk.world.base)
    assert _due(desk, due) == 0


def test_the_task_starts_what_is_due_in_every_space(desk: Desk) -> None:
    desk.make(schedule="*/5 * * * *")
    with unscoped("test data"):
        DataSource.objects.update(next_run_at=at("2026-01-01 00:00"))
    assert (start_due(), start_due()) == (1, 0)
    assert desk.source.next_run_at > datetime.now(UTC)


def test_history_is_kept_as_long_as_the_source_says(desk: Desk) -> None:
    desk.make(log_retention_days=7)
    desk.shelf.fill(1)
    good = desk.sync()
    desk.shelf.key = "another"
    failed = [desk.sync() for _each in range(3)]
    with unscoped("test data"):
        SyncRun.objects.update(created_at=datetime.now(UTC) - timedelta(days=8))
    assert sources_upkeep() == 2
    assert [run.pk for run in _runs(desk)] == [good.pk, failed[-1].pk], "the latest and the latest good one say how the source stands"
    with space_scope(desk.world.space.pk, "test"):
        assert log_trim(actor=Actor.system(desk.world.space.pk, "test")) == 0


def test_a_failing_source_is_asked_later_and_later_and_then_has_failed(desk: Desk) -> None:
    from apps.common.jobs.tasks import work
    from apps.sources.plugins.protocol import SourceError

    desk.shelf.listing_error = SourceError("unavailable", "connection refused", passing=True)
    run = desk.start()
    waits: list[Any] = []
    while desk.fresh(run).is_live:
        desk.ready(run)
        work(desk.claim())
        ended = desk.fresh(run)
        if ended.is_live:
            waits.append(round((ended.not_before - ended.started_at).total_seconds()))
    assert waits == [15, 30, 60, 120, 240]
    assert (desk.fresh(run).reason, desk.source.status, desk.source.error_message) == ("unavailable", "error", "connection refused")
