"""Tags of the pages: what the reader may do, and times as people say them.

{% load portal %}
{% allowed "base.update" base as may_edit %}{% if may_edit %} ... {% endif %}
{% when document.updated_at %}
"""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any

from django import template
from django.template.context import Context
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _

from apps.common.policy import allowed as policy_allowed

register = template.Library()

SKEW_S = 3600
HUES = ("blue", "orange", "green", "purple", "pink", "slate")


@register.simple_tag
def form_once() -> str:
    """A hidden number that tells one drawn form from another, for forms that make something new (`sent_before`)."""
    return format_html('<input type="hidden" name="form_once" value="{}">', secrets.token_urlsafe(16))


@register.simple_tag(takes_context=True)
def allowed(context: Context, action: str, target: Any = None) -> bool:
    """Whether the person reading the page may do `action` (to `target`)."""
    actor = context.get("actor") or context["request"].actor
    return policy_allowed(actor, action, target)


def when_text(moment: datetime, now: datetime | None = None) -> str:
    """A moment as people say it: "just now", "5 min ago", the time today, "yesterday", day and month this year, else the date."""
    here, today = timezone.localtime(moment), timezone.localtime(now)
    seconds = (today - here).total_seconds()
    if -SKEW_S < seconds < 60:  # another machine's clock may be ahead: what it wrote did not happen in the future
        return _("just now")
    if 0 <= seconds < 3600:
        return _("%(count)d min ago") % {"count": int(seconds // 60)}
    days = (today.date() - here.date()).days
    if days == 0:
        return formats.date_format(here, "H:i")
    if days == 1:
        return _("yesterday")
    if here.year == today.year:
        return formats.date_format(here, "MONTH_DAY_FORMAT")
    return formats.date_format(here, "Y-m-d")


@register.simple_tag
def when(moment: datetime | None) -> str:
    """A `<time>` element: short to read, exact to point at. Empty for None."""
    if moment is None:
        return format_html("{}", "")
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', local.isoformat(timespec="seconds"), f"{local:%Y-%m-%d %H:%M:%S}", when_text(moment)
    )


@register.simple_tag
def attributes(**values: Any) -> dict[str, Any]:
    """A mapping for the `attrs` of a component: `{% attributes list="folders" autofocus=True as more %}`."""
    return {name.replace("_", "-"): value for name, value in values.items()}


@register.filter
def known_hue(color: str) -> str:
    """One of the six hues; "" for a colour that is none of them, which leaves the choice to the component."""
    return color if color in HUES else ""


@register.filter
def span_text(seconds: float | None) -> str:
    """A length of time in its largest sensible unit: "8 s", "3 min", "2 h 5 min"."""
    if seconds is None or seconds < 0:
        return ""
    whole = int(seconds)
    if whole < 60:
        return _("%(count)d s") % {"count": whole}
    if whole < 3600:
        return _("%(count)d min") % {"count": whole // 60}
    return _("%(hours)d h %(minutes)d min") % {"hours": whole // 3600, "minutes": whole % 3600 // 60}
