"""What is to be done about one item that the source names: a look at what is known of it, at most one fetch, at most one change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.common.errors import Conflict, DomainError, TransientError
from apps.sources.engine.record import Record
from apps.sources.engine.taking import Named, Taking, digest_of, file_name_of, is_final, remembered
from apps.sources.models import ConflictStrategy, SourceItem
from apps.sources.plugins.protocol import Content, Item, SourceError

State = SourceItem.State
BASE_GONE = "base_deleted"


class Deciding:
    """One per run. `fetch(item)` is the connector's. `full`: no fingerprint is believed; `restoring`: what was deleted here comes back.

    `again`: twins are looked at a second time, which counts nothing that did not change.
    """

    def __init__(
        self, taking: Taking, record: Record, fetch: Callable[[Item], Content | None], *, full: bool, restoring: bool
    ) -> None:  # fmt: skip
        self.taking, self.record, self.fetch, self.full, self.restoring = taking, record, fetch, full, restoring
        self.again = False
        self.skip_edits = taking.source.conflict_strategy == ConflictStrategy.SKIP
        self.twins: list[Item] = []  # looked at again in the end: what they are like may have changed or gone by then
        self.stumbles = 0  # failures in a row that pass by themselves

    def one(self, item: Item, known: SourceItem | None) -> None:
        """Raises: SourceError when the source must be left alone for a while; Stop; TransientError."""
        if known is not None and known.run_ref == self.taking.run_pk and known.state != State.TWIN:
            return  # done by this very run, before it was interrupted
        try:
            self._one(item, known)
        except SourceError as error:
            self._source_failed(item, known, error)
        except TransientError:
            raise
        except DomainError as error:
            if error.code == BASE_GONE:
                raise
            self._refused(item, known, error)

    def _one(self, item: Item, known: SourceItem | None) -> None:
        if known is None or known.state == State.FAILED:
            return self._fetch(item, known)
        if known.state == State.TWIN:
            return self._twin(item, known)
        if known.state in (State.SKIPPED, State.REFUSED):
            return self._unchanged() if self._same(item, known) else self._fetch(item, known)
        if known.state == State.DELETED:
            return self._returned(item, known)
        return self._known(item, known)

    # -- what is known already

    def _same(self, item: Item, known: SourceItem) -> bool:
        fingerprint = Named.of(item).fingerprint
        return not self.full and bool(fingerprint) and fingerprint == known.fingerprint and known.retry is None

    def _known(self, item: Item, known: SourceItem) -> None:
        """LIVE, or gone and named again (HELD, KEPT), or deleted here (REMOVED)."""
        document = self.taking.own(known)
        if document is None and self.restoring:
            document = self._again(item, known)
            if document is None:
                return self._fetch(item, known, fresh=True)
        if document is None:
            return self._removed(item, known)
        if known.state != State.LIVE:
            with transaction.atomic():
                self.record.write()
                SourceItem.objects.filter(pk=known.pk).update(state=State.LIVE, vanished_at=None)
            known.state, known.vanished_at = State.LIVE, None
        if not self._same(item, known):
            return self._fetch(item, known)
        if self._named_alike(item, known):
            return self._unchanged()
        with transaction.atomic():
            renamed = self.taking.follow(document, known, item)
            self.record.write(renamed=int(renamed))
            self.taking.put(known, item)
        return None

    def _named_alike(self, item: Item, known: SourceItem) -> bool:
        named = Named.of(item)
        return named.folder == known.folder and named.title in ("", known.title) and named.url in ("", known.url)

    def _removed(self, item: Item, known: SourceItem) -> None:
        """Deleted here, or moved to another base: it stays gone. Only a full run brings it back."""
        if known.state == State.REMOVED:
            return self._unchanged()
        with transaction.atomic():
            self.record.write(skipped=1)
            self.taking.put(known, item, state=State.REMOVED, reason="removed_here", fingerprint=known.fingerprint)
        return None

    def _again(self, item: Item, known: SourceItem) -> Any:
        with transaction.atomic():
            document = self.taking.back(known)
            if document is not None:
                self.record.write(created=1)
                self.taking.put(known, item, state=State.LIVE, document=document, run_ref=0)
        return document

    def _returned(self, item: Item, known: SourceItem) -> None:
        """It was deleted here because it was gone at the source; now it is named again."""
        if self._again(item, known) is None:
            return self._fetch(item, known, fresh=True)
        known.refresh_from_db()
        return self._known(item, known)

    def _twin(self, item: Item, known: SourceItem) -> None:
        twin = known.twin
        alike = twin is not None and twin.deleted_at is None and twin.content_sha256 == known.content_sha256
        if self.again:
            return None if alike else self._fetch(item, known)
        if known.run_ref == self.taking.run_pk or (alike and self._same(item, known)):
            self.twins.append(item)
            if known.run_ref != self.taking.run_pk:
                self._unchanged()
            return None
        return self._fetch(item, known)

    def _unchanged(self) -> None:
        self.record.unchanged += 1
        self.stumbles = 0

    # -- what has to be fetched

    def _fetch(self, item: Item, known: SourceItem | None, *, fresh: bool = False) -> None:
        content = self.fetch(item)
        self.stumbles = 0
        if content is None:
            return self._nothing(item, known)
        try:
            digest = digest_of(content.path)
            document = self.taking.own(known) if known is not None and not fresh else None
            if known is not None and known.state == State.TWIN:
                document = document or self.taking.back(known)  # what it said before it became like another one
            if known is None or document is None:
                self._create(item, known, content, digest)
            elif digest[0] == known.content_sha256 and not self._astray(document, digest[0]):
                self._same_content(item, known, document, content)
            else:
                self._renew(item, known, document, content, digest)
        finally:
            with contextlib.suppress(OSError):
                content.path.unlink(missing_ok=True)
        return None

    def _astray(self, document: Any, sha256: str) -> bool:
        """A full run puts right what was changed here, unless that is to be kept."""
        return self.full and not self.skip_edits and bool(document.content_sha256 != sha256)

    def _nothing(self, item: Item, known: SourceItem | None) -> None:
        """Nothing to take over. A document that is there already stays as it is."""
        state = State.LIVE if known is not None and self.taking.own(known) is not None else State.SKIPPED
        fingerprint = Named.of(item).fingerprint
        if known is not None and (known.state, known.fingerprint, known.reason) == (state, fingerprint, "nothing"):
            return self._unchanged()
        with transaction.atomic():
            self.record.write(skipped=1)
            self.taking.put(known, item, state=state, fingerprint=fingerprint, reason="nothing")
        return None

    def _create(self, item: Item, known: SourceItem | None, content: Content, digest: tuple[str, str]) -> None:
        document, own = self.taking.create(item, content, digest)
        values = self._taken(item, content, digest)
        if own:
            with transaction.atomic():
                self.record.write(created=1)
                self.taking.put(known, item, state=State.LIVE, document=document, twin=None, **values)
        else:
            self._become_twin(item, known, document, values)

    def _become_twin(self, item: Item, known: SourceItem | None, document: Any, values: dict[str, Any]) -> None:
        self.twins.append(item)
        if known is not None and known.state == State.TWIN and known.twin_id == document.pk and known.retry is None:
            same = {name: value for name, value in values.items() if name != "synced_at"}
            if all(getattr(known, name) == value for name, value in same.items()):
                return self._unchanged()
        with transaction.atomic():
            self.record.write(skipped=1)
            self.taking.put(known, item, state=State.TWIN, twin=document, **values)
        return None

    def _same_content(self, item: Item, known: SourceItem, document: Any, content: Content) -> None:
        """Other fingerprint, same bytes: perhaps another name, never another version."""
        fingerprint, file_name = Named.of(item).fingerprint, file_name_of(content)
        if fingerprint == known.fingerprint and known.retry is None and file_name == known.file_name and self._named_alike(item, known):
            return self._unchanged()
        with transaction.atomic():
            renamed = self.taking.follow(document, known, item, file_name)
            self.record.write(renamed=int(renamed))
            self.taking.put(known, item, fingerprint=fingerprint, file_name=file_name)
            if not renamed:
                self.record.unchanged += 1
        return None

    def _renew(self, item: Item, known: SourceItem, document: Any, content: Content, digest: tuple[str, str]) -> None:
        values = self._taken(item, content, digest)
        was_twin = known.state == State.TWIN
        if self.skip_edits and not was_twin and document.content_sha256 != digest[0] and self.taking.changed_here(document, known):
            # The document keeps differing from what is remembered, so it goes on counting as changed here.
            with transaction.atomic():
                self.record.write(skipped=1)
                self.taking.put(known, item, reason="kept_local", **{**values, "synced_at": known.synced_at})
            return
        renewed = document if document.content_sha256 == digest[0] else self.taking.renew(document, content)
        with transaction.atomic():
            if renewed.pk == document.pk:
                self.taking.follow(document, known, item, file_name_of(content))
                self.record.write(updated=1)
                self.taking.put(known, item, state=State.LIVE, twin=None, **values)
                return
            # Another document has these bytes by now; what this one said is out of date.
            self.taking.delete([document])
            self._become_twin(item, known, renewed, values)

    def _taken(self, item: Item, content: Content, digest: tuple[str, str]) -> dict[str, Any]:
        return {
            "fingerprint": Named.of(item).fingerprint,
            "content_sha256": digest[0],
            "file_name": file_name_of(content),
            "synced_at": timezone.now(),
        }

    # -- what went wrong

    def _source_failed(self, item: Item, known: SourceItem | None, error: SourceError) -> None:
        self.stumbles += error.passing
        if error.code == "rate_limited" or error.retry_after_s or self.stumbles >= 5:
            raise error
        self._failed(item, known, error.code, error.detail, error.params)

    def _refused(self, item: Item, known: SourceItem | None, error: DomainError) -> None:
        """Refused on the way in. What another try would only repeat is remembered and not tried again until the item changes."""
        if not is_final(error) or isinstance(error, Conflict):
            return self._failed(item, known, error.code, str(error), {})
        there = known is not None and self.taking.own(known) is not None
        with transaction.atomic():
            self.record.sample(item.title or item.external_id, error.code, str(error))
            self.record.write(failed=1)
            state = State.LIVE if there else State.REFUSED
            self.taking.put(known, item, state=state, fingerprint=Named.of(item).fingerprint, reason=error.code[:32])
        return None

    def _failed(self, item: Item, known: SourceItem | None, code: str, message: str, params: Any) -> None:
        """Not this time; the next run tries it again, also when no delta names it any more."""
        with transaction.atomic():
            self.record.sample(item.title or item.external_id, code, message, params)
            self.record.write(failed=1)
            state = known.state if known is not None else State.FAILED
            fingerprint = known.fingerprint if known is not None else ""
            vanished_at = known.vanished_at if known is not None else None
            kept = {"title": known.title, "folder": known.folder, "url": known.url} if known is not None else {}
            self.taking.put(
                known, item, state=state, fingerprint=fingerprint, reason=code[:32], retry=remembered(item), vanished_at=vanished_at, **kept
            )  # fmt: skip
