"""What is known and not there any more: deleted here too, held for an admin to decide, or kept, as the source's policy says.

A listing that failed in part, or in which suddenly little is left, deletes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import transaction
from django.utils import timezone

from apps.common.errors import Conflict
from apps.sources.engine.record import Record, short
from apps.sources.engine.taking import Taking, remembered
from apps.sources.models import DeletionPolicy, SourceItem
from apps.sources.plugins.protocol import Item

State = SourceItem.State
SLICE = 100
WITHOUT_DOCUMENT = (State.TWIN, State.SKIPPED, State.REFUSED, State.FAILED)


class Vanishing:
    def __init__(self, taking: Taking, record: Record) -> None:
        self.taking, self.record = taking, record
        self.items = SourceItem.objects.filter(source=taking.source)

    def settle(self, gone: Sequence[str], *, whole: bool) -> None:
        """`gone`: keys the source says are gone; `whole`: what it did not name is gone as well. Raises: Stop."""
        vanished = set(self._known_among(gone))
        if whole:
            vanished |= set(self._unnamed())
        for part in _slices(sorted(vanished)):
            self._drop_bare(part)
        live = list(self.items.filter(pk__in=vanished, state=State.LIVE).order_by("pk").values_list("pk", flat=True)) if vanished else []
        if not live:
            return
        policy = self.taking.source.deletion_policy
        if policy == DeletionPolicy.APPLY and self._suspicious(len(live)):
            policy = DeletionPolicy.HOLD
        for part in _slices(live):
            self.record.claim.check()
            if policy == DeletionPolicy.APPLY:
                self._apply(part)
            else:
                self._keep(part, State.HELD if policy == DeletionPolicy.HOLD else State.KEPT)

    def _known_among(self, keys: Sequence[str]) -> Iterator[int]:
        for start in range(0, len(keys), SLICE):
            yield from self.items.filter(key__in=keys[start : start + SLICE]).values_list("pk", flat=True)

    def _unnamed(self) -> Iterator[int]:
        rows = self.items.filter(state__in=(State.LIVE, *WITHOUT_DOCUMENT)).order_by("pk").values_list("pk", "key")
        for pk, key in rows.iterator(chunk_size=2000):
            if short(key) not in self.record.named:
                yield pk

    def _suspicious(self, gone: int) -> bool:
        """Whether so much is gone at once that the listing is more likely wrong than the source empty."""
        before = self.items.filter(state=State.LIVE).count() - self.record.counts["created"]
        if gone * 2 <= before:
            return False
        self.record.warn("suspicious_listing", gone=gone, known=max(before, gone))
        return True

    def _drop_bare(self, pks: Sequence[int]) -> None:
        """Items that have no document of their own leave nothing behind."""
        rows = self.items.filter(pk__in=pks, state__in=WITHOUT_DOCUMENT)
        if rows.exists():
            with transaction.atomic():
                self.record.write()
                rows.delete()

    def _keep(self, pks: Sequence[int], state: State) -> None:
        with transaction.atomic():
            count = self.items.filter(pk__in=pks, state=State.LIVE).update(
                state=state, vanished_at=timezone.now(), retry=None, run_ref=self.taking.run_pk
            )
            self.record.write(**({"held": count} if state == State.HELD else {}))

    def _apply(self, pks: Sequence[int]) -> None:
        try:
            self._delete(pks)
        except Conflict:
            for pk in pks:  # one of them is being moved; the others go
                try:
                    self._delete([pk])
                except Conflict as error:
                    self._not_deleted(pk, str(error))

    def _delete(self, pks: Sequence[int]) -> None:
        with transaction.atomic():
            rows = list(self.items.filter(pk__in=pks, state=State.LIVE).select_related("document").order_by("pk"))
            documents = [document for row in rows if (document := self.taking.own(row)) is not None]
            self.taking.delete(documents)
            self.items.filter(pk__in=[row.pk for row in rows]).update(
                state=State.DELETED, vanished_at=timezone.now(), retry=None, run_ref=self.taking.run_pk
            )
            self.record.write(deleted=len(documents), skipped=len(rows) - len(documents))

    def _not_deleted(self, pk: int, why: str) -> None:
        with transaction.atomic():
            row = self.items.get(pk=pk)
            self.record.sample(row.title or row.external_id, "deletion_failed", why)
            self.record.write(failed=1, deletion_failed=1)
            again = Item(row.external_id, row.title, deleted=True)
            self.items.filter(pk=pk).update(retry=remembered(again), reason="deletion_failed", run_ref=self.taking.run_pk)


def _slices(pks: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(pks), SLICE):
        yield pks[start : start + SLICE]
