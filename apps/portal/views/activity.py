"""What happened in a base, for its admins: filters in the address, older rows by cursor, one act in a drawer."""

from __future__ import annotations

import uuid
from datetime import date, datetime, time
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _

from apps.common.activity import redacted
from apps.common.models import Activity
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import activity_facets, activity_get, activity_list, actor_names, base_get, changes_of
from apps.portal.activity_words import FIELDS, OUTCOMES, action_word, details_of, shown, subject_of
from apps.portal.base_frame import base_frame
from apps.portal.web import DialogView, PageView

PAGE_SIZE = 50
FILTERS = ("action", "outcome", "actor", "from", "to")


class BaseActivityView(PageView):
    actions = {"GET": "base.activity"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        asked = {name: request.GET.get(name, "").strip()[:80] for name in FILTERS}
        after = request.GET.get("after", "")
        rows = activity_list(
            actor=self.actor,
            base=base,
            after_id=int(after[:18]) if after.isascii() and after.isdigit() else None,
            action=asked["action"],
            outcome=asked["outcome"],
            who=asked["actor"],
            since=_moment(asked["from"], time.min),
            until=_moment(asked["to"], time.max),
            limit=PAGE_SIZE + 1,
        )
        actions, actors = activity_facets(actor=self.actor, base=base)
        names = actor_names(actor=self.actor, who={*actors, *(row.actor for row in rows)})
        address = reverse("base-activity", args=[space_id, base.uid])
        kept = {name: value for name, value in asked.items() if value}
        older = {**kept, "after": rows[PAGE_SIZE - 1].pk} if len(rows) > PAGE_SIZE else {}
        context = {
            **base_frame(self.actor, base, "activity"),
            "rows": [_row(row, names) for row in rows[:PAGE_SIZE]],
            "asked": asked,
            "narrowed": bool(kept),
            "address": address,
            "older_href": f"{address}?{urlencode(older)}" if older else "",
            "newest_href": f"{address}?{urlencode(kept)}" if after and kept else address if after else "",
            "action_options": [("", _("Everything")), *((name, action_word(name)) for name in actions)],
            "outcome_options": [("", _("Any outcome")), *((name, word) for name, (word, _state) in OUTCOMES.items())],
            "actor_options": [("", _("Everybody")), *((who, _name(who, names)) for who in actors)],
            "keep_days": settings.ACTIVITY_DAYS,
            "space_id": space_id,
        }
        return self.fragment_or_page("portal/base_activity.html", {"activity": "portal/_activity.html"}, context)


def _moment(text: str, at: time) -> datetime | None:
    """The beginning or end of a day as the person's clock has it; None for anything that is no day."""
    try:
        day: date | None = parse_date(text)
    except ValueError:
        day = None
    return timezone.make_aware(datetime.combine(day, at)) if day else None


def _name(who: str, names: dict[str, str]) -> str:
    kind = who.partition(":")[0]
    if who in names:
        return _("Key “%(name)s”") % {"name": names[who]} if kind == "key" else names[who]
    return {"user": _("Somebody who is gone"), "key": _("A key that is gone")}.get(kind, _("The portal itself"))


def _row(row: Activity, names: dict[str, str]) -> dict[str, Any]:
    word, state = OUTCOMES.get(row.outcome, (row.outcome, "unknown"))
    return {
        "row": row,
        "who": _name(row.actor, names),
        "action": action_word(row.action),
        "subject": subject_of(row),
        "outcome": word,
        "state": state,
    }


class ActivityDetailView(DialogView):
    """One act: who, when, what it was done to, before and after. Secrets are hidden."""

    actions = {"GET": "base.activity"}
    template = "portal/_activity_detail.html"
    kind = "drawer"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID, row_id: int) -> HttpResponse:
        base: KnowledgeBase = base_get(actor=self.actor, kb_id=kb_id)
        row = activity_get(actor=self.actor, base=base, row_id=row_id)
        details, _hid = redacted({name: value for name, value in row.details.items() if name not in ("changes", "title", "titles")})
        changes = [
            {
                "label": FIELDS.get(each.field, each.field),
                "before": shown(each.before),
                "after": shown(each.after),
                "redacted": each.redacted,
            }
            for each in changes_of(row)
        ]
        context = {
            **_row(row, actor_names(actor=self.actor, who=[row.actor])),
            "titles": row.details.get("titles") or [],
            "changes": changes,
            "details": details_of({name: value for name, value in details.items() if name != "changed_fields" or not changes}),
            "space_id": space_id,
        }
        return self.show(action_word(row.action), context, back=reverse("base-activity", args=[space_id, base.uid]))
