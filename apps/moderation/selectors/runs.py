"""Background work of every kind in one list, newest first, and who is there to do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Min
from django.utils import timezone

from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.jobs.models import LIVE, Run, RunState
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.service import living_workers
from apps.common.models import WorkerBeat
from apps.common.policy import authorize
from apps.spaces.models import Space

PER_PAGE = 50
PAGES_MAX = 200
STATES = (*RunState.values, "waiting")


@dataclass(frozen=True, slots=True)
class RunQuery:
    """What the list is narrowed by. `state` "waiting": queued with nobody serving its queue. `since`: 0, or hours."""

    state: str = ""
    kind: str = ""
    space: int = 0
    reason: str = ""
    hours: int = 0
    page: int = 1

    @classmethod
    def read(cls, query: Any) -> RunQuery:
        state, kind = query.get("state", ""), query.get("kind", "")
        return cls(
            state=state if state in STATES else "",
            kind=kind if kind in kinds() else "",
            space=_number(query.get("space", "")),
            reason="".join(sign for sign in query.get("reason", "")[:32] if sign.isalnum() or sign == "_"),
            hours=min(_number(query.get("hours", "")), 24 * 365),
            page=max(1, min(_number(query.get("page", "")), PAGES_MAX)),
        )

    def href(self, **changes: Any) -> str:
        """This list with something else asked for; the page starts again."""
        asked = replace(self, **{"page": 1, **changes})
        values = {name: getattr(asked, name) for name in ("state", "kind", "space", "reason", "hours")}
        values["page"] = asked.page if asked.page > 1 else ""
        return f"?{urlencode({name: value for name, value in values.items() if value})}"


@dataclass(frozen=True, slots=True)
class RunPage:
    """`pages`: of the first PAGES_MAX at most; `total`: all that fit the filters."""

    rows: list[Run]
    total: int
    page: int
    pages: int


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue with what waits in it. `oldest`: when its oldest waiting row was made."""

    name: str
    kinds: tuple[str, ...]
    queued: int
    running: int
    oldest: datetime | None
    workers: tuple[str, ...]

    @property
    def unserved(self) -> bool:
        return not self.workers


def kinds() -> list[str]:
    return [name for name, _kind in job_kinds]


def run_page(*, actor: Actor, asked: RunQuery) -> RunPage:
    """One page of runs. The number of queries depends on how many kinds of rows there are, never on how many rows."""
    authorize(actor, "run.moderate")
    total = 0
    newest: list[tuple[datetime, str, int]] = []
    upto = asked.page * PER_PAGE
    for model, names in _models().items():
        rows = _narrowed(model, names, asked)
        total += rows.count()
        newest += rows.order_by("-pk").values_list("created_at", "kind", "pk")[:upto]
    newest.sort(key=lambda row: (row[0], row[2]), reverse=True)
    pages = max(1, min(PAGES_MAX, -(-total // PER_PAGE)))
    page = min(asked.page, pages)
    wanted = newest[(page - 1) * PER_PAGE : page * PER_PAGE]
    return RunPage(_loaded(wanted), total, page, pages)


def run_get(*, actor: Actor, kind: str, pk: int) -> Run:
    """One run. Raises: NotFound."""
    authorize(actor, "run.moderate")
    if kind in kinds():
        model: Any = job_kinds.get(kind).model
        run = _with_subject(model).filter(kind=kind, pk=pk).first()
        if run is not None:
            return run  # type: ignore[no-any-return]
    raise NotFound("no such run")


def queues(*, actor: Actor) -> list[Queue]:
    """Every queue with its depth and its workers: those with trouble first, then by name."""
    authorize(actor, "run.moderate")
    counts: dict[str, dict[str, int]] = {}
    oldest: dict[str, datetime] = {}
    for model in _models():
        live = (
            model.objects.filter(state__in=LIVE).order_by().values_list("kind", "state").annotate(rows=Count("pk"), first=Min("created_at"))
        )
        for kind, state, rows, first in live:
            counts.setdefault(kind, {})[state] = rows
            if state == RunState.QUEUED:
                oldest[kind] = first
    workers = living_workers()
    found = []
    for name in sorted({kind.queue for _name, kind in job_kinds}):
        own = tuple(kind for kind, registered in job_kinds if registered.queue == name)
        waiting = [oldest[kind] for kind in own if kind in oldest]
        found.append(
            Queue(
                name,
                own,
                sum(counts.get(kind, {}).get(RunState.QUEUED, 0) for kind in own),
                sum(counts.get(kind, {}).get(RunState.RUNNING, 0) for kind in own),
                min(waiting, default=None),
                tuple(worker.name for worker in workers if name in worker.queues),
            )
        )
    return sorted(found, key=lambda queue: (not (queue.unserved and queue.queued), not queue.unserved, queue.name))


def workers_alive(*, actor: Actor) -> list[WorkerBeat]:
    authorize(actor, "run.moderate")
    return living_workers()


def failures_by_reason(*, actor: Actor, since: datetime) -> list[tuple[str, str, int]]:
    """[(kind, reason, count)] of runs that failed since then, most first."""
    authorize(actor, "run.moderate")
    found: list[tuple[str, str, int]] = []
    for model in _models():
        rows = model.objects.filter(state=RunState.FAILED, finished_at__gte=since).order_by()
        found += rows.values_list("kind", "reason").annotate(count=Count("pk"))
    return sorted(found, key=lambda row: (-row[2], row[0], row[1]))


def _models() -> dict[Any, list[str]]:
    models: dict[Any, list[str]] = {}
    for name, kind in job_kinds:
        models.setdefault(kind.model, []).append(name)
    return models


def _narrowed(model: Any, names: list[str], asked: RunQuery) -> Any:
    rows = model.objects.filter(kind__in=names)
    if asked.kind:
        rows = rows.filter(kind=asked.kind)
    if asked.state == "waiting":
        served = {queue for worker in living_workers() for queue in worker.queues}
        rows = rows.filter(state=RunState.QUEUED, kind__in=[name for name in names if job_kinds.get(name).queue not in served])
    elif asked.state:
        rows = rows.filter(state=asked.state)
    if asked.space:
        rows = rows.filter(space_id=asked.space)
    if asked.reason:
        rows = rows.filter(reason=asked.reason)
    if asked.hours:
        rows = rows.filter(created_at__gte=timezone.now() - timedelta(hours=asked.hours))
    return rows


def _with_subject(model: Any) -> Any:
    """Rows with what they are about; the document, where they are about one."""
    names = {field.name for field in model._meta.get_fields()}
    joins = ["space", *(["document", "document__kb"] if "document" in names else []), *(["source"] if "source" in names else [])]
    return model.objects.select_related(*joins)


def _loaded(wanted: list[tuple[datetime, str, int]]) -> list[Run]:
    found: dict[tuple[str, int], Run] = {}
    for model in _models():
        pks = [pk for _made, kind, pk in wanted if job_kinds.get(kind).model is model]
        if pks:
            found |= {(run.kind, run.pk): run for run in _with_subject(model).filter(pk__in=pks)}
    return [found[kind, pk] for _made, kind, pk in wanted if (kind, pk) in found]


def space_names(ids: Iterator[int] | set[int]) -> dict[int, str]:
    return dict(Space.objects.filter(pk__in=set(ids)).values_list("pk", "name"))


def _number(raw: str) -> int:
    return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 19 else 0
