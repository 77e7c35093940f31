"""Background work: who takes which row, and that every row ends truthfully whatever happens to its worker."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.common.errors import InvalidInput, TransientError
from apps.common.jobs import claims, tasks
from apps.common.jobs.claims import Claim, Stop, claim_next
from apps.common.jobs.models import RunState
from apps.common.jobs.registry import JobKind, job_kinds
from apps.common.jobs.service import cancel_run, has_worker, served_queues
from apps.common.models import WorkerBeat
from apps.common.scope import unscoped
from apps.ingestion.models import IngestionRun
from apps.knowledge.models import Document, KnowledgeBase
from apps.spaces.models import Space

pytestmark = pytest.mark.django_db(transaction=True)


class Probe:
    """A kind of work that the tests steer."""

    def __init__(self) -> None:
        self.worked: list[int] = []
        self.ended: list[tuple[int, str, str]] = []
        self.body: Callable[[Claim], None] = lambda claim: None

    def work(self, claim: Claim) -> None:
        self.worked.append(claim.run.pk)
        self.body(claim)
        claim.finish(RunState.DONE)

    def on_end(self, run: Any) -> None:
        self.ended.append((run.pk, run.state, run.reason))


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Probe]:
    probe = Probe()
    kind = JobKind("probe", IngestionRun, "parse", probe.work, lambda: 2, probe.on_end, max_attempts=3, max_takeovers=2)
    monkeypatch.setitem(job_kinds._items, "probe", kind)
    monkeypatch.setattr(tasks, "_slots", {})
    with unscoped("tests look at every space"):
        yield probe


def space_with_documents(name: str, count: int) -> list[IngestionRun]:
    space = Space.objects.create(name=name, kind=Space.Kind.ORGANIZATION)
    kb = KnowledgeBase.objects.create(space=space, name=name)
    documents = [Document.objects.create(space=space, kb=kb, title=f"{name}{n}", file_hash=f"{n}") for n in range(count)]
    return [IngestionRun.objects.create(space=space, document=d, document_attempt=1, kind="probe") for d in documents]


def kind() -> JobKind:
    return job_kinds.get("probe")


def test_spaces_take_turns_and_each_keeps_its_order(probe: Probe) -> None:
    a = space_with_documents("a", 3)
    b = space_with_documents("b", 1)
    tasks.drain.run("probe")
    assert probe.worked == [a[0].pk, b[0].pk, a[1].pk, a[2].pk]
    assert set(IngestionRun.objects.values_list("state", flat=True)) == {RunState.DONE}


def test_a_second_bell_finds_nothing_to_do(probe: Probe) -> None:
    space_with_documents("a", 2)
    assert tasks.drain.run("probe") == 2
    assert tasks.drain.run("probe") == 0
    assert len(probe.worked) == 2


def test_racing_workers_never_get_the_same_row(probe: Probe) -> None:
    space_with_documents("a", 12)
    got: list[int] = []
    start = threading.Barrier(4)

    def worker() -> None:
        start.wait()
        while (claim := claim_next(kind())) is not None:
            got.append(claim.run.pk)
        connection.close()

    threads = [threading.Thread(target=worker) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(got) == 12
    assert len(set(got)) == 12


def test_an_expired_lease_is_taken_over_and_the_first_worker_stores_nothing(probe: Probe) -> None:
    (run,) = space_with_documents("a", 1)
    first = claim_next(kind())
    assert first is not None
    assert claim_next(kind()) is None
    IngestionRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    second = claim_next(kind())
    assert second is not None and second.run.takeovers == 1
    first.beat()
    assert first.stopped == "lost"
    with pytest.raises(Stop), transaction.atomic():
        first.hold()
    assert first.finish(RunState.FAILED) is False
    assert second.finish(RunState.DONE) is True
    run.refresh_from_db()
    assert (run.state, run.claim_token) == (RunState.DONE, None)


def test_a_row_that_kills_its_worker_every_time_ends_failed(probe: Probe) -> None:
    (run,) = space_with_documents("a", 1)
    for _ in range(3):
        assert claim_next(kind()) is not None
        IngestionRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert claim_next(kind()) is None
    assert probe.ended == [(run.pk, RunState.FAILED, "stalled")]


def test_cancel_of_a_queued_row_is_immediate(probe: Probe) -> None:
    (run,) = space_with_documents("a", 1)
    cancel_run(run)
    assert run.state == RunState.CANCELLED
    assert tasks.drain.run("probe") == 0
    assert probe.worked == []


def test_cancel_of_a_running_row_stops_its_work_at_the_next_look(probe: Probe) -> None:
    (run,) = space_with_documents("a", 1)

    def body(claim: Claim) -> None:
        cancel_run(IngestionRun.objects.get(pk=run.pk))
        claim.beat()
        claim.check()
        raise AssertionError("work went on after the cancel")

    probe.body = body
    tasks.drain.run("probe")
    run.refresh_from_db()
    assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled")
    assert probe.ended == [(run.pk, RunState.CANCELLED, "cancelled")]


def test_a_transient_fault_is_tried_again_later_and_at_last_fails_with_its_reason(probe: Probe) -> None:
    (run,) = space_with_documents("a", 1)

    def body(claim: Claim) -> None:
        raise TransientError("the endpoint said 429", code="embedding_unavailable", retry_after_s=7)

    probe.body = body
    tasks.drain.run("probe")
    run.refresh_from_db()
    assert (run.state, run.attempt, run.error) == (RunState.QUEUED, 1, "the endpoint said 429")
    assert 5 < (run.not_before - timezone.now()).total_seconds() <= 7
    assert tasks.drain.run("probe") == 0  # not due yet
    for _ in range(2):
        IngestionRun.objects.update(not_before=None)
        tasks.drain.run("probe")
    run.refresh_from_db()
    assert (run.state, run.reason) == (RunState.FAILED, "embedding_unavailable")


@pytest.mark.parametrize(
    ("fault", "reason"), [(InvalidInput("no", code="corrupt"), "corrupt"), (ZeroDivisionError("boom"), "internal")], ids=["expected", "bug"]
)
def test_a_fault_ends_its_row_and_the_next_one_is_worked(probe: Probe, fault: Exception, reason: str) -> None:
    first, second = space_with_documents("a", 2)

    def body(claim: Claim) -> None:
        if claim.run.pk == first.pk:
            raise fault

    probe.body = body
    assert tasks.drain.run("probe") == 2
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, first.reason) == (RunState.FAILED, reason)
    assert second.state == RunState.DONE


def test_a_bell_is_dropped_when_all_slots_are_taken(probe: Probe) -> None:
    space_with_documents("a", 1)
    slot = tasks._slot(kind())
    assert slot.acquire(blocking=False) and slot.acquire(blocking=False)
    assert tasks.drain.run("probe") == 0
    assert IngestionRun.objects.get().state == RunState.QUEUED


def test_the_sweep_rings_for_rows_nobody_picked_up_and_then_waits(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[str] = []
    monkeypatch.setattr(tasks, "ring", rung.append)
    (run,) = space_with_documents("a", 1)
    tasks.sweep()
    tasks.sweep()
    assert rung == ["probe"]
    IngestionRun.objects.update(rung_at=timezone.now() - timedelta(seconds=9))
    tasks.sweep()
    assert rung == ["probe", "probe"]


def test_a_queue_is_served_only_while_its_worker_is_heard_of(probe: Probe, settings: Any) -> None:
    settings.WORKER_QUEUES = ["parse"]
    assert has_worker("probe") is False
    tasks.beat_worker()
    assert served_queues() == {"parse"}
    assert has_worker("probe") is True
    WorkerBeat.objects.update(seen_at=timezone.now() - timedelta(seconds=31))
    assert has_worker("probe") is False


def test_a_row_gives_way_to_another_space_and_keeps_its_place_in_its_own(probe: Probe) -> None:
    a = space_with_documents("a", 1)
    b = space_with_documents("b", 1)
    claim = claim_next(kind())
    assert claim is not None and claim.run.pk == a[0].pk
    assert claims.others_wait(claim) is True
    claim.give_way()
    after = claim_next(kind())
    assert after is not None and after.run.pk == b[0].pk


def test_a_restart_frees_what_dead_workers_of_this_machine_held(probe: Probe) -> None:
    mine, dead = space_with_documents("a", 2)
    assert claim_next(kind()) is not None and claim_next(kind()) is not None
    gone = subprocess.Popen(["true"])
    gone.wait()
    host = claims.WORKER_NAME.rpartition(":")[0]
    IngestionRun.objects.filter(pk=dead.pk).update(worker=f"{host}:{gone.pid}")
    assert claims.release_dead(kind()) == 1
    taken = claim_next(kind())
    assert taken is not None and taken.run.pk == dead.pk
    assert claim_next(kind()) is None
