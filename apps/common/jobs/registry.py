"""Kinds of background work: which model holds the rows, which queue rings for them, who does the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apps.common.registry import Registry

if TYPE_CHECKING:
    from apps.common.jobs.claims import Claim
    from apps.common.jobs.models import Run


@dataclass(frozen=True, slots=True)
class JobKind:
    """`work(claim)` does one row; it looks at `claim.check()` between slices.

    `concurrency`: rows of this kind one worker process works on at a time. `on_end(run)`: told after the row ended without `work`
    having ended it (cancelled while queued, taken over too often), in the transaction that ended it.
    `retry(actor, run)` and `cancel(actor, run)`: how a failed row is tried again and a live one is stopped, where the row alone does not
    say it (its document has a state too); None: the row itself. They raise a DomainError that says why when it cannot be done.
    """

    name: str
    model: type[Run]
    queue: str
    work: Callable[[Claim], None]
    concurrency: Callable[[], int]
    on_end: Callable[[Any], None]
    max_attempts: int = 6
    max_takeovers: int = 4
    retry: Callable[[Any, Any], None] | None = None
    cancel: Callable[[Any, Any], None] | None = None


job_kinds: Registry[JobKind] = Registry("job kind")
