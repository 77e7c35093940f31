"""Writing the activity log, and forgetting what is older than the operator wants kept."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.common import context
from apps.common.actor import ROLE_NAMES, Actor
from apps.common.models import Activity
from apps.common.scope import unscoped

_folded: ContextVar[bool] = ContextVar("activity_folded", default=False)


@contextmanager
def folded() -> Iterator[None]:
    """Acts inside the block leave no rows of their own: whoever opens it sums them up in one (a sync of thousands of documents)."""
    token = _folded.set(True)
    try:
        yield
    finally:
        _folded.reset(token)


def audit(
    actor: Actor,
    action: str,
    target: Any = None,
    *,
    outcome: str = Activity.Outcome.SUCCESS,
    target_type: str = "",
    target_id: str = "",
    base: uuid.UUID | None = None,
    space_id: int | None = None,
    **details: Any,
) -> None:
    """Append one row; runs in the caller's transaction so that a change and its record stand or fall together.

    `base` is the uid of the knowledge base concerned (taken from the target's `kb_uid` when not given). Secrets never go into `details`.
    """
    if _folded.get():
        return
    Activity(
        space_id=space_id or actor.space_id or target.space_id,
        actor=actor.who,
        actor_user_id=actor.user_id,
        actor_role=ROLE_NAMES.get(actor.role, "") if actor.role else "",
        action=action,
        scope_id=base or getattr(target, "kb_uid", None),
        target_type=target_type or (target._meta.model_name if target is not None else ""),
        target_id=target_id or str(getattr(target, "uid", "") or getattr(target, "pk", "") if target is not None else ""),
        outcome=outcome,
        details={k: v for k, v in details.items() if v is not None},
        request_id=context.request_id.get(),
    ).save()


TRIM_SLICE = 5000


def trim(days: int) -> int:
    """How many rows older than that went; 0 days keep all of them. The only way a row of the log ever goes."""
    if days <= 0:
        return 0
    gone, before = 0, timezone.now() - timedelta(days=days)
    with unscoped("old activity of every space is forgotten"):
        while ids := list(Activity.objects.filter(created_at__lt=before).order_by("pk").values_list("pk", flat=True)[:TRIM_SLICE]):
            gone += Activity.objects.filter(pk__in=ids).delete()[0]
    return gone
