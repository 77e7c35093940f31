"""One run over one source: list, take over what is new or changed, settle what is gone.

Stopped anywhere and begun again, it ends the same.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction
from django.utils import translation

from apps.common import activity
from apps.common.actor import Actor
from apps.common.errors import DomainError, NotYet, TransientError
from apps.common.jobs.claims import Claim, Stop, others_wait
from apps.common.jobs.models import RunState
from apps.sources.endings import run_ended, source_ok
from apps.sources.engine.deciding import BASE_GONE, Deciding
from apps.sources.engine.record import Record, short
from apps.sources.engine.taking import Taking, recalled
from apps.sources.engine.vanishing import Vanishing
from apps.sources.linking import link_to
from apps.sources.models import DataSource, SourceItem, SyncMode, SyncRun, item_key
from apps.sources.plugins.protocol import Cursor, Item, Link, SourceError, connectors
from apps.sources.rules import selection_of

CHECKPOINT_S = 15.0
CHECKPOINT_ITEMS = 200
GIVE_WAY_S = 60.0
SLICE = 200
LATER_MAX_S = 3600.0


def work_sync(claim: Claim) -> None:
    """The work of one `SyncRun`."""
    run: Any = claim.run
    source = DataSource.objects.select_related("kb").filter(pk=run.source_id).first()
    if source is None or source.deleted_at is not None or source.kb.deleted_at is not None:
        with transaction.atomic():
            claim.finish(RunState.CANCELLED, reason="deleted", error="data source deleted")
        return
    record = Record(claim)
    try:
        # What is written down is for everybody who reads it: pages say codes in their readers' own words.
        with translation.override("en"), link_to(source, check=claim.check) as link:
            Sync(claim, record, source, link).go()
    except SourceError as error:
        _source_failed(claim, record, error)
    except DomainError as error:
        if isinstance(error, TransientError):
            raise
        _fail(claim, record, BASE_GONE if error.code == BASE_GONE else error.code, str(error))


class Sync:
    def __init__(self, claim: Claim, record: Record, source: DataSource, link: Link) -> None:
        self.claim, self.record, self.source, self.link = claim, record, source, link
        self.run: SyncRun = claim.run  # type: ignore[assignment]
        self.connector = connectors.get(source.type)
        self.full = self.run.mode == SyncMode.FULL
        self.selection = selection_of(source)
        actor = Actor.system(source.space_id, f"sync of data source {source.uid}")
        self.taking = Taking(source, actor, self.run.pk)
        restoring = self.full and self.run.trigger == SyncRun.Trigger.MANUAL
        self.deciding = Deciding(self.taking, record, lambda item: self.connector.fetch(link, item), full=self.full, restoring=restoring)
        point = self.run.checkpoint or {}
        self.cursor: Cursor | None = point["cursor"] if point else self._start()
        self.gone: dict[str, None] = dict.fromkeys(point.get("gone", ()))
        self.faulty = bool(point.get("faulty"))
        self._saved_at = self._since = time.monotonic()
        self._saved_worked = 0

    def _start(self) -> Cursor | None:
        """Where the last run stood; from the beginning when everything is wanted or something else is selected."""
        if self.full or self.source.selection != self.selection:
            return None
        return self.source.cursor  # type: ignore[no-any-return]

    def go(self) -> None:
        with activity.folded():
            whole = self._list()
            if not whole:
                self._take(self._left_over())
            Vanishing(self.taking, self.record).settle(list(self.gone), whole=whole and not self.faulty)
            self.deciding.again = True
            self._take(list(self.deciding.twins))
        self._end()

    def _list(self) -> bool:
        """Take over what the source names; whether it named everything there is."""
        whole = False
        for page in self.connector.listing(self.link, self.cursor):
            self._take(page.items)
            for fault in page.faults:
                self.faulty = True
                self.record.sample(fault.item or fault.code, fault.code, fault.detail, fault.params)
                self.record.warn("partial_listing", code=fault.code)
            whole = page.whole
            if page.cursor is not None:
                self.cursor = page.cursor
                self._checkpoint()
            self.record.progress()
        return whole

    def _take(self, items: Sequence[Item]) -> None:
        for part in _sliced(items):
            known = self._known(part)
            for item in part:
                self.claim.check()
                key = item_key(item.external_id)
                if not self.deciding.again:
                    if short(key) in self.record.named:
                        continue
                    self.record.named.add(short(key))
                    self.record.listed += 1
                if item.deleted:
                    self.gone[key] = None
                    continue
                self.gone.pop(key, None)
                self.deciding.one(item, known.get(key))
                self.record.progress()

    def _known(self, items: Sequence[Item]) -> dict[str, SourceItem]:
        keys = [item_key(item.external_id) for item in items]
        rows = SourceItem.objects.filter(source=self.source, key__in=keys).select_related("document", "document__kb", "twin")
        return {row.key: row for row in rows}

    def _left_over(self) -> list[Item]:
        """What could not be taken over before and is not named now, because it has not changed since."""
        rows = SourceItem.objects.filter(source=self.source, retry__isnull=False).exclude(run_ref=self.run.pk).order_by("pk")
        return [recalled(row.retry) for row in rows if short(row.key) not in self.record.named]

    def _checkpoint(self) -> None:
        now = time.monotonic()
        if now - self._saved_at < CHECKPOINT_S and self.record.worked - self._saved_worked < CHECKPOINT_ITEMS:
            return
        self.record.checkpoint({"cursor": self.cursor, "gone": list(self.gone), "faulty": self.faulty})
        self._saved_at, self._saved_worked = now, self.record.worked
        if now - self._since > GIVE_WAY_S and others_wait(self.claim):
            self.claim.give_way()
            raise Stop("lost")

    def _end(self) -> None:
        counts = self.record.counts
        good = counts["created"] + counts["updated"] + counts["renamed"] + counts["deleted"] + counts["held"] + self.record.unchanged
        failed = bool(counts["failed"]) and not good and not counts["skipped"]
        with transaction.atomic():
            self.claim.rows().update(**self.record.closing())
            state, reason = (RunState.FAILED, "sync_failed") if failed else (RunState.DONE, "")
            if not self.claim.finish(state, reason=reason, error="no item could be taken over" if failed else ""):
                raise Stop("lost")
            self.run.refresh_from_db()
            if failed:
                run_ended(self.run)
            else:
                source_ok(self.source, self.run, cursor=self.cursor, selection=self.selection)


def _sliced(items: Sequence[Item]) -> Iterator[list[Item]]:
    several = iter(items)
    while part := list(itertools.islice(several, SLICE)):
        yield part


def _source_failed(claim: Claim, record: Record, error: SourceError) -> None:
    """A source that is away or wants to be left alone is asked again later, as often as it takes while something gets done in between."""
    if not (error.passing or error.code == "rate_limited" or error.retry_after_s):
        _fail(claim, record, error.code, error.detail or str(error))
        return
    delay = min(LATER_MAX_S, error.retry_after_s or min(600.0, 15.0 * 2.0**claim.run.attempt))
    kind = NotYet if record.worked else TransientError
    raise kind(error.detail or str(error), code=error.code[:32], retry_after_s=delay) from error


def _fail(claim: Claim, record: Record, code: str, message: str) -> None:
    with transaction.atomic():
        claim.rows().update(**record.closing())
        state = RunState.CANCELLED if code == BASE_GONE else RunState.FAILED
        if claim.finish(state, reason=code, error=message):
            claim.run.refresh_from_db()
            run_ended(claim.run)
