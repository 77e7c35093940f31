"""What spaces and bases take, from rows and from the last measurement. Units: bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, Sum

from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import Document, ParseStatus
from apps.moderation.models import StorageFigure, StorageReport
from apps.spaces.models import Space

PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class Holding:
    """Live documents of a space or base. `derived_bytes` None: not measured yet."""

    documents: int = 0
    failed: int = 0
    passages: int = 0
    vectors: int = 0
    originals_bytes: int = 0
    derived_bytes: int | None = None
    entries: int = 0


def holdings_of_spaces(*, actor: Actor, ids: Iterable[int]) -> dict[int, Holding]:
    """{space: what it holds}, in two queries."""
    return _holdings(actor, "space_id", "space_id", list(ids))


def holdings_of_bases(*, actor: Actor, ids: Iterable[int]) -> dict[int, Holding]:
    """{base: what it holds}, in two queries."""
    return _holdings(actor, "kb_id", "kb_ref", list(ids))


def _holdings(actor: Actor, by: str, figure_by: str, ids: list[int]) -> dict[int, Holding]:
    authorize(actor, "figures.read")
    measured = dict(
        StorageFigure.objects.filter(**{f"{figure_by}__in": ids}).order_by().values_list(figure_by).annotate(total=Sum("derived_bytes"))
    )
    rows = Document.objects.filter(deleted_at__isnull=True, **{f"{by}__in": ids}).order_by().values(by).annotate(**_sums())
    found = {row[by]: row for row in rows}
    return {pk: _holding(found.get(pk, {}), measured.get(pk)) for pk in ids}


def _sums() -> dict[str, Any]:
    return {
        "documents": Count("pk", filter=~Q(type__in=Document.UNLISTED)),
        "entries": Count("pk", filter=Q(type=Document.Type.PAIR)),
        "failed": Count("pk", filter=Q(parse_status=ParseStatus.FAILED)),
        "passages": Sum("chunk_count"),
        "vectors": Sum("vector_count"),
        "originals": Sum("file_size"),
    }


def _holding(row: dict[str, Any], derived: int | None) -> Holding:
    return Holding(
        row.get("documents") or 0,
        row.get("failed") or 0,
        row.get("passages") or 0,
        row.get("vectors") or 0,
        row.get("originals") or 0,
        derived,
        row.get("entries") or 0,
    )


def last_report(*, actor: Actor) -> StorageReport | None:
    """The newest measurement of the whole store, None before the first."""
    authorize(actor, "figures.read")
    return StorageReport.objects.order_by("-pk").first()


def largest_spaces(*, actor: Actor, page: int) -> tuple[list[tuple[Space, Holding]], int, int]:
    """(one page of spaces with what they hold, biggest originals first; the page; how many pages), in five queries."""
    authorize(actor, "figures.read")
    sums = Document.objects.filter(deleted_at__isnull=True).order_by().values("space_id").annotate(bytes=Sum("file_size"))
    total = sums.count()
    pages = max(1, -(-total // PER_PAGE))
    page = max(1, min(page, pages))
    ids = [row["space_id"] for row in sums.order_by("-bytes", "space_id")[(page - 1) * PER_PAGE : page * PER_PAGE]]
    spaces = Space.objects.in_bulk(ids)
    holdings = holdings_of_spaces(actor=actor, ids=ids)
    return [(spaces[pk], holdings[pk]) for pk in ids], page, pages


def totals(*, actor: Actor) -> Holding:
    """Everything live, in one query."""
    authorize(actor, "figures.read")
    return _holding(Document.objects.filter(deleted_at__isnull=True).aggregate(**_sums()), None)
