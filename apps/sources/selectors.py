"""Reading data sources, their runs and what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.jobs.models import LIVE, RunState
from apps.common.policy import authorize
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.sources.models import DataSource, SourceItem, SyncRun
from apps.sources.plugins.protocol import ConnectorMeta, connectors

State = SourceItem.State


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source with what lists show beside it. `retained`: documents of the base that came from it and would stay without it.

    `last`: the latest run; `last_good`: the latest that ended well or in part; `held`: documents that wait for a decision.
    """

    source: DataSource
    retained: int
    held: int
    last: SyncRun | None
    last_good: SyncRun | None

    @property
    def live(self) -> SyncRun | None:
        return self.last if self.last is not None and self.last.is_live else None

    @property
    def last_sync_at(self) -> datetime | None:
        return self.last_good.finished_at if self.last_good is not None else None


def connector_metas(*, actor: Actor) -> list[ConnectorMeta]:
    """Every kind of source there is, those most asked for first."""
    authorize(actor, "source.read")
    return sorted((connector.meta for _name, connector in connectors), key=lambda meta: (meta.priority, meta.type))


def source_get(*, actor: Actor, source_id: Any) -> DataSource:
    """The live source of this id. Raises: NotFound, the same for a foreign id as for one that never was."""
    uid = as_uuid(source_id)
    rows = DataSource.objects.visible_to(actor).select_related("kb", "creator")
    found = rows.filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("data source not found"), code="not_found")
    authorize(actor, "source.read", found)
    return found  # type: ignore[no-any-return]


def source_list(*, actor: Actor, base: KnowledgeBase) -> list[SourceRow]:
    """The sources of a base, newest first, in a constant number of queries."""
    authorize(actor, "source.read", base)
    return _rows(DataSource.objects.visible_to(actor).filter(kb=base).select_related("kb", "creator").order_by("-created_at", "-pk"))


def source_row(*, actor: Actor, source: DataSource) -> SourceRow:
    authorize(actor, "source.read", source)
    return _rows([source])[0]


def source_rows(*, actor: Actor, sources: Sequence[DataSource]) -> list[SourceRow]:
    """These sources, in their order, with what lists show beside them."""
    authorize(actor, "source.read")
    return _rows(sources)


def source_count(*, actor: Actor, base: KnowledgeBase) -> int:
    authorize(actor, "source.read", base)
    return int(DataSource.objects.visible_to(actor).filter(kb=base).count())


def run_list(*, actor: Actor, source: DataSource, limit: int = 10, offset: int = 0) -> list[SyncRun]:
    """Runs of a source, newest first."""
    authorize(actor, "source.read", source)
    rows = SyncRun.objects.visible_to(actor).filter(source=source).select_related("source").order_by("-pk")
    return list(rows[offset : offset + limit])


def run_get(*, actor: Actor, run_id: Any) -> SyncRun:
    """A run of a live source. Raises: NotFound."""
    uid = as_uuid(run_id)
    live = DataSource.objects.visible_to(actor)
    rows = SyncRun.objects.visible_to(actor).filter(uid=uid, source__in=live).select_related("source", "source__kb")
    found = rows.first() if uid else None
    if found is None:
        raise NotFound(_("sync log not found"), code="not_found")
    authorize(actor, "source.read", found.source)
    return found  # type: ignore[no-any-return]


def held_items(*, actor: Actor, source: DataSource) -> Any:
    """Items that are gone at the source and wait for a decision, those gone longest first."""
    authorize(actor, "source.read", source)
    rows = SourceItem.objects.visible_to(actor).filter(source=source, state=State.HELD)
    return rows.select_related("document").order_by("vanished_at", "pk")


def held_items_get(*, actor: Actor, source: DataSource, ids: Sequence[Any], everything: bool = False) -> list[SourceItem]:
    """Held items with these primary keys, or all of them; others are left out."""
    rows = held_items(actor=actor, source=source)
    numbers = [int(each) for each in ids if str(each).isascii() and str(each).isdigit() and len(str(each)) < 19]
    return list(rows if everything else rows.filter(pk__in=numbers))


def origins_of(*, actor: Actor, documents: Iterable[Document]) -> dict[int, SourceItem]:
    """{primary key of a document: the item it follows}, for those of live sources; in one query."""
    authorize(actor, "source.read")
    rows = SourceItem.objects.visible_to(actor).filter(state__in=(State.LIVE, State.HELD, State.KEPT), source__deleted_at__isnull=True)
    rows = rows.filter(document_id__in=[document.pk for document in documents])
    return {row.document_id: row for row in rows.select_related("source__kb").order_by("pk")}


def last_seen(*, actor: Actor, item: SourceItem) -> datetime | None:
    """When the source last had this item: its last good run, or for one that is gone the one before it vanished."""
    authorize(actor, "source.read", item.source)
    good = SyncRun.objects.visible_to(actor).filter(source_id=item.source_id, state=RunState.DONE)
    if item.vanished_at is not None:
        good = good.filter(finished_at__lt=item.vanished_at)
    return good.aggregate(last=Max("finished_at"))["last"] or item.synced_at  # type: ignore[no-any-return]


def _rows(sources: Iterable[DataSource]) -> list[SourceRow]:
    sources = list(sources)
    pks = [source.pk for source in sources]
    in_base = Q(document__deleted_at__isnull=True, document__isnull=False)
    counted = (
        SourceItem.objects.filter(source_id__in=pks, state__in=(State.LIVE, State.HELD, State.KEPT)).order_by().values_list("source_id")
        .annotate(retained=Count("pk", filter=in_base), held=Count("pk", filter=Q(state=State.HELD)))
    )  # fmt: skip
    counts = {pk: (retained, held) for pk, retained, held in counted}
    latest = SyncRun.objects.filter(source_id__in=pks).order_by().values_list("source_id")
    newest = dict(latest.annotate(last=Max("pk")))
    good = dict(latest.filter(state=RunState.DONE).annotate(last=Max("pk")))
    wanted = {*newest.values(), *good.values()}
    runs = {run.pk: run for run in SyncRun.objects.filter(pk__in=wanted).defer("seen", "checkpoint")}
    return [
        SourceRow(source, *counts.get(source.pk, (0, 0)), runs.get(newest.get(source.pk)), runs.get(good.get(source.pk)))
        for source in sources
    ]


def live_sources(*, actor: Actor, base: KnowledgeBase) -> set[int]:
    """Primary keys of the sources of a base that are being looked at, or wait for it."""
    authorize(actor, "source.read", base)
    return set(SyncRun.objects.visible_to(actor).filter(source__kb=base, state__in=LIVE).values_list("source_id", flat=True))
