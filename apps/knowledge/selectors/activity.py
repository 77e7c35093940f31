"""Reading what happened in a base: who, what, with what outcome, and what it changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.common.activity import HIDDEN, SECRET, redacted
from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.models import Activity
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors.ids import as_uuid
from apps.spaces.models import ApiKey


@dataclass(frozen=True, slots=True)
class Change:
    """One field before and after; `redacted` says that something in it was a secret and is not shown."""

    field: str
    before: Any
    after: Any
    redacted: bool


def _rows(actor: Actor, base: KnowledgeBase) -> Any:
    authorize(actor, "base.activity", base)
    return Activity.objects.visible_to(actor).filter(scope_type="knowledge_base", scope_id=base.uid)


def activity_list(
    *,
    actor: Actor,
    base: KnowledgeBase,
    after_id: int | None = None,
    action: str = "",
    outcome: str = "",
    who: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
) -> list[Activity]:
    """What happened in a base, newest first, older than the row `after_id` (contract knowledge 10); `since` and `until` included."""
    rows = _rows(actor, base)
    if after_id:
        rows = rows.filter(pk__lt=after_id)
    if action:
        rows = rows.filter(action=action)
    if outcome:
        rows = rows.filter(outcome=outcome)
    if who:
        uid = as_uuid(who)
        rows = rows.filter(actor_user_id=uid) if uid else rows.filter(actor=who)
    if since:
        rows = rows.filter(created_at__gte=since)
    if until:
        rows = rows.filter(created_at__lte=until)
    return list(rows.order_by("-pk")[:limit])


def activity_get(*, actor: Actor, base: KnowledgeBase, row_id: int) -> Activity:
    """One row of a base's log. Raises: NotFound."""
    found = _rows(actor, base).filter(pk=row_id).first()
    if found is None:
        raise NotFound(_("This entry of the activity is not there."))
    return found  # type: ignore[no-any-return]


def activity_facets(*, actor: Actor, base: KnowledgeBase) -> tuple[list[str], list[str]]:
    """(actions, actors as `Activity.actor` has them) that occur in a base's log. Two queries."""
    rows = _rows(actor, base).order_by()
    return sorted(rows.values_list("action", flat=True).distinct()), sorted(rows.values_list("actor", flat=True).distinct())


def actor_names(*, actor: Actor, who: Iterable[str]) -> dict[str, str]:
    """{actor as the log has it: name of the person or key}; those that are gone are left out. Two queries at most."""
    authorize(actor, "base.list")
    wanted = set(who)
    users = {name: uid for name in wanted if name.startswith("user:") and (uid := as_uuid(name[5:]))}
    keys = {name: int(name[4:]) for name in wanted if name.startswith("key:") and name[4:].isdigit()}
    found: dict[str, str] = {}
    if users:
        by_id: dict[uuid.UUID, str] = dict(User.objects.filter(pk__in=users.values()).values_list("pk", "username"))
        found |= {name: by_id[uid] for name, uid in users.items() if uid in by_id}
    if keys:
        named = dict(ApiKey.objects.visible_to(actor).filter(pk__in=keys.values()).values_list("pk", "name"))
        found |= {name: named[pk] for name, pk in keys.items() if pk in named}
    return found


def changes_of(row: Activity) -> list[Change]:
    """What an act changed, field by field, secrets hidden; empty where the log has none."""
    raw = (row.details or {}).get("changes")
    if not isinstance(raw, dict):
        return []
    return [_change(str(field), value) for field, value in raw.items() if isinstance(value, dict)]


def _change(field: str, value: dict[str, Any]) -> Change:
    before, after = value.get("before"), value.get("after")
    if SECRET.search(field):
        return Change(field, HIDDEN if before else before, HIDDEN if after else after, redacted=True)
    (clean_before, hid_before), (clean_after, hid_after) = redacted(before), redacted(after)
    return Change(field, clean_before, clean_after, bool(value.get("redacted")) or hid_before or hid_after)
