"""Two machines whose clocks are minutes apart: leases, heartbeats and times in words do not depend on whose clock is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import AccessToken
from apps.accounts.tokens import issue, read
from apps.common.errors import Unauthenticated
from apps.common.jobs import tasks
from apps.common.jobs.claims import claim_next
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.service import served_queues
from apps.common.models import WorkerBeat
from apps.common.scope import space_scope
from apps.ingestion.selectors import stall_verdicts
from apps.portal.templatetags.portal import when_text
from tests.support.kit import Kit, make_kit, work_all
from tests.support.world import make_user

pytestmark = pytest.mark.django_db
SKEWS = [timedelta(minutes=10), timedelta(minutes=-10)]


@contextmanager
def clock_off_by(skew: timedelta) -> Iterator[None]:
    """Python's clock as another machine has it; the database keeps its own."""
    real = timezone.now
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: real() + skew)
        yield


@pytest.fixture
def kit() -> Kit:
    return make_kit()


@pytest.mark.parametrize("skew", SKEWS)
def test_a_worker_with_another_clock_takes_nothing_away(kit: Kit, skew: timedelta) -> None:
    kit.upload("a.md", "# A\n\nSome text.")
    parse = job_kinds.get("parse")
    claim = claim_next(parse)
    assert claim is not None
    with clock_off_by(skew):
        assert claim_next(parse) is None, "the first worker's lease holds"
        claim.beat()
        assert claim.stopped == ""
        assert claim_next(parse) is None
    claim.beat()
    assert (claim.stopped, claim_next(parse)) == ("", None)


@pytest.mark.parametrize("skew", SKEWS)
def test_a_retry_waits_as_long_as_it_should(kit: Kit, skew: timedelta) -> None:
    kit.upload("a.md", "# A\n\nSome text.")
    parse = job_kinds.get("parse")
    with clock_off_by(skew):
        claim = claim_next(parse)
        assert claim is not None
        claim.retry_later(60, "later")
        assert claim_next(parse) is None
    assert claim_next(parse) is None
    with space_scope(kit.space.pk):
        parse.model.objects.filter(pk=claim.run.pk).update(not_before=timezone.now() - timedelta(seconds=1))
    with clock_off_by(skew):
        assert claim_next(parse) is not None


@pytest.mark.parametrize("skew", SKEWS)
def test_a_worker_is_heard_of_whatever_its_clock_says(settings: Any, skew: timedelta) -> None:
    settings.WORKER_QUEUES = ["parse"]
    with clock_off_by(skew):
        tasks.beat_worker()
    assert served_queues() == {"parse"}
    with clock_off_by(skew):
        assert served_queues() == {"parse"}
    WorkerBeat.objects.update(seen_at=timezone.now() - timedelta(seconds=31))
    with clock_off_by(skew):
        assert served_queues() == set(), "and one that is gone is missed"


@pytest.mark.parametrize("skew", SKEWS)
def test_a_document_worked_on_by_another_clock_is_not_called_stalled(kit: Kit, skew: timedelta) -> None:
    with clock_off_by(skew):
        document = kit.upload("a.md", "# A\n\nSome text.")
        assert work_all("parse") == 1
    with space_scope(kit.space.pk):
        verdicts = stall_verdicts(actor=kit.actor, documents=[kit.reload(document)])
    assert [verdict.state for verdict in verdicts.values()] in ([], [""])


@pytest.mark.parametrize("skew", SKEWS)
def test_a_token_of_one_server_is_good_on_another(skew: timedelta) -> None:
    user = make_user("ann@example.com")
    with clock_off_by(skew):
        token = issue(user, AccessToken.Kind.ACCESS)
    assert read(token, AccessToken.Kind.ACCESS)[0] == user
    with clock_off_by(timedelta(hours=24) + max(skew, timedelta())):
        with pytest.raises(Unauthenticated):
            read(token, AccessToken.Kind.ACCESS)


def test_what_another_clock_wrote_did_not_happen_in_the_future() -> None:
    now = datetime(2026, 3, 1, 0, 2, tzinfo=timezone.get_current_timezone())
    assert [str(when_text(now + timedelta(minutes=m), now)) for m in (0, 5, 59)] == [str(when_text(now, now))] * 3
    assert when_text(now - timedelta(minutes=5), now) != when_text(now, now)
