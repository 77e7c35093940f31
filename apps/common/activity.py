"""Writing the activity log, and forgetting what is older than the operator wants kept."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.common import context
from apps.common.actor import ROLE_NAMES, Actor
from apps.common.models import Activity
from apps.common.scope import unscoped

SECRET = re.compile(r"secret|password|passwd|credential|api_?key|access_?key|private_?key|(^|_)token$", re.IGNORECASE)
HIDDEN = "•••"
LONGEST = 4000  # characters of a text before or after; the whole text is where it was changed
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
    /,
    *,
    outcome: str = Activity.Outcome.SUCCESS,
    target_type: str = "",
    target_id: str = "",
    base: uuid.UUID | None = None,
    space_id: int | None = None,
    **details: Any,
) -> None:
    """Append one row; runs in the caller's transaction so that a change and its record stand or fall together.

    `base` is the uid of the knowledge base concerned (taken from the target's `kb_uid` when not given). `changes` is {field: {"before":
    ..., "after": ...}}; whatever is named like a secret is hidden before it is stored, and long texts are cut.
    """
    if _folded.get():
        return
    scope = base or getattr(target, "kb_uid", None)
    # SECURITY: addresses of invitations hold secrets; those of a base hold ids alone.
    method, path = context.request_line.get() if scope else ("", "")
    shown = {name: value for name, value in details.items() if value is not None}
    if "changes" in shown:
        shown["changes"] = {name: _shown_change(name, value) for name, value in shown["changes"].items()}
    Activity(
        space_id=space_id or actor.space_id or target.space_id,
        actor=actor.who,
        actor_user_id=actor.user_id,
        actor_role=ROLE_NAMES.get(actor.role, "") if actor.role else "",
        action=action,
        scope_id=scope,
        target_type=target_type or (target._meta.model_name if target is not None else ""),
        target_id=target_id or str(getattr(target, "uid", "") or getattr(target, "pk", "") if target is not None else ""),
        outcome=outcome,
        details=redacted(shown)[0],
        request_id=context.request_id.get(),
        request_method=method,
        request_path=path,
    ).save()


def _shown_change(field: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A field before and after as it is stored; `redacted` is there when a secret in it is not."""
    sides, hid = {}, False
    for side in ("before", "after"):
        given = value.get(side)
        if SECRET.search(field) and given not in (None, ""):
            sides[side], hidden = HIDDEN, True
        else:
            sides[side], hidden = redacted(_short(given))
        hid = hid or hidden
    return {**sides, "redacted": True} if hid else sides


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST]}…"
    return value


def redacted(value: Any) -> tuple[Any, bool]:
    """(the value with every secret member hidden, whether there was one)."""
    if isinstance(value, list):
        parts = [redacted(item) for item in value]
        return [part for part, _hid in parts], any(hid for _part, hid in parts)
    if not isinstance(value, dict):
        return value, False
    shown, hid = {}, False
    for name, item in value.items():
        if SECRET.search(str(name)) and item not in (None, "", False, True, HIDDEN) and not _is_change(item):
            shown[name], hid = HIDDEN, True
        else:
            shown[name], inner = redacted(item)
            hid = hid or inner
    return shown, hid


def _is_change(item: Any) -> bool:
    """Whether it is a field's before and after, whose values were hidden one by one."""
    return isinstance(item, dict) and item.get("redacted") is True


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
