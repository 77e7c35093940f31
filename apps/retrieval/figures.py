"""What the retrieval log and the index add up to, for moderators; call these unscoped or inside one space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Count, Q
from django.db.models.functions import TruncDate
from django.utils import timezone

from apps.retrieval.engine import engine
from apps.retrieval.models import RetrievalLog
from apps.retrieval.plugins.protocol import EngineStats

STEPS_MS = (25, 50, 100, 200, 400, 800)
#: The palette asks while one types: half a word is no question. Nor is a greeting, for which a turn looks nothing up.
ASKED_WHOLE = ~Q(door=RetrievalLog.Door.PALETTE) & ~Q(outcome=RetrievalLog.Outcome.SKIP)

TURNS = Q(door=RetrievalLog.Door.ASK)


def index_stats() -> EngineStats:
    """What the running index holds. Raises: Unavailable, TransientError when it cannot be opened."""
    return engine().stats()


@dataclass(frozen=True, slots=True)
class SearchFigures:
    """Counts of searches. `asked`: without the palette's; `hit`, `near`, `miss`, `error` are of those. Units: milliseconds."""

    total: int = 0
    asked: int = 0
    hit: int = 0
    near: int = 0
    miss: int = 0
    error: int = 0
    failed_leg: int = 0
    turns: int = 0
    looked_up: int = 0  # turns for which the bases were searched
    p50_ms: float | None = None
    p95_ms: float | None = None


def search_figures(rows: Any) -> SearchFigures:
    """Figures of a queryset of the retrieval log, in three queries at most."""
    outcomes = {name: Count("pk", filter=ASKED_WHOLE & Q(outcome=name)) for name in RetrievalLog.Outcome.values}
    counts = rows.order_by().aggregate(
        total=Count("pk"),
        asked=Count("pk", filter=ASKED_WHOLE),
        failed=Count("pk", filter=~Q(failed_leg="")),
        timed=Count("pk", filter=~Q(outcome=RetrievalLog.Outcome.ERROR)),
        turns=Count("pk", filter=TURNS),
        looked_up=Count("pk", filter=TURNS & Q(decision="search")),
        **outcomes,
    )
    timed = counts["timed"]
    return SearchFigures(
        total=counts["total"],
        asked=counts["asked"],
        hit=counts["hit"],
        near=counts["near"],
        miss=counts["miss"],
        error=counts["error"],
        failed_leg=counts["failed"],
        turns=counts["turns"],
        looked_up=counts["looked_up"],
        p50_ms=_percentile(rows, timed, 0.5),
        p95_ms=_percentile(rows, timed, 0.95),
    )


def _percentile(rows: Any, count: int, share: float) -> float | None:
    if not count:
        return None
    at = min(count - 1, int(count * share))
    found = rows.exclude(outcome=RetrievalLog.Outcome.ERROR).order_by("took_ms", "pk").values_list("took_ms", flat=True)[at : at + 1]
    return float(found[0])


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    counts: Mapping[str, int] = field(default_factory=dict)  # by outcome, without the palette


def searches_by_day(rows: Any, days: int, now: datetime | None = None) -> list[Day]:
    """The last `days` days, oldest first, days without a search included; one query."""
    return _by_day(rows.filter(ASKED_WHOLE), "outcome", days, now)


def _by_day(rows: Any, name: str, days: int, now: datetime | None) -> list[Day]:
    today = timezone.localdate(now)
    since = timezone.make_aware(datetime.combine(today - timedelta(days=days - 1), datetime.min.time()))
    found: dict[date, dict[str, int]] = {}
    grouped = rows.filter(created_at__gte=since).order_by().annotate(day=TruncDate("created_at"))
    for day, value, count in grouped.values_list("day", name).annotate(count=Count("pk")):
        found.setdefault(day, {})[value] = count
    return [Day(day, found.get(day, {})) for day in (today - timedelta(days=back) for back in range(days - 1, -1, -1))]


def turns_by_day(rows: Any, days: int, now: datetime | None = None) -> list[Day]:
    """As `searches_by_day`, of turns of conversations: counts of `search` and `skip`, the decision whether to look something up."""
    return _by_day(rows.filter(TURNS), "decision", days, now)


def searches_by_time(rows: Any) -> list[tuple[int | None, int]]:
    """[(upper bound in milliseconds or None for the rest, searches)] over STEPS_MS; one query."""
    edges = (0, *STEPS_MS)
    named = {
        f"under_{upper}": Count("pk", filter=Q(took_ms__gte=lower, took_ms__lt=upper))
        for lower, upper in zip(edges, STEPS_MS, strict=False)
    }
    counts = (
        rows.exclude(outcome=RetrievalLog.Outcome.ERROR)
        .order_by()
        .aggregate(**named, rest=Count("pk", filter=Q(took_ms__gte=STEPS_MS[-1])))
    )
    return [*((upper, counts[f"under_{upper}"]) for upper in STEPS_MS), (None, counts["rest"])]
