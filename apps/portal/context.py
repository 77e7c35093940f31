"""What every page's frame shows: space, spaces, navigation, the person, warnings. Worked out only when a template asks."""

from __future__ import annotations

import shutil
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.service import live_counts, served_queues
from apps.common.policy import allowed
from apps.common.scope import current_scope
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors.figures import bases_visited
from apps.portal.nav import NAV, NavItem
from apps.spaces.models import Space
from apps.spaces.selectors import membership_list, my_invitations

LANGUAGE_NAMES = {"zh-hans": "中文", "en": "English"}


def shell(request: HttpRequest) -> dict[str, Any]:
    """`{"shell": ..., "actor": ...}` for templates/base_app.html; anonymous pages get theme and languages only."""
    return {"actor": getattr(request, "actor", None), "shell": SimpleLazyObject(lambda: _shell(request))}


def _shell(request: HttpRequest) -> dict[str, Any]:
    actor: Actor = getattr(request, "actor", None) or Actor.anonymous()
    values: dict[str, Any] = {
        "theme": request.COOKIES.get("kb_theme", ""),
        "sign_in_url": reverse("account_login"),
        "language_url": reverse("appearance"),
        "languages": [{"code": code, "name": name, "current": code == get_language()} for code, name in LANGUAGE_NAMES.items()],
    }
    if actor.kind == "user":
        values |= _signed_in(request, actor)
    return values


def _signed_in(request: Any, actor: Actor) -> dict[str, Any]:
    space: Space | None = request.space
    waiting = len(my_invitations(actor=actor))
    return {
        "theme": request.COOKIES.get("kb_theme") or request.user.theme,
        "space": {"name": space.name, "kind": space.kind, "url": reverse("home", args=[space.pk])} if space else None,
        "spaces": [
            {"name": m.space.name, "kind": m.space.kind, "url": reverse("home", args=[m.space_id]), "current": m.space_id == actor.space_id}
            for m in membership_list(actor=actor)
        ],
        "spaces_links": [{"label": _("New organization"), "href": reverse("space-new"), "icon": "add"}],
        "nav": [_nav_item(request, item, space) for item in NAV if space and allowed(actor, item.action)],
        "search_url": reverse("quick-search", args=[space.pk]) if space and allowed(actor, "search.run") else "",
        "commands": [_command(item, space) for item in NAV if space and allowed(actor, item.action)],
        "recent_bases": [_recent(request, base) for base in bases_visited(actor=actor)] if space else [],
        "user": {
            "name": request.user.username,
            "email": request.user.email,
            "links": [
                {"label": _("Profile"), "href": reverse("profile"), "icon": "user"},
                {
                    "label": _("Invitations (%(count)d)") % {"count": waiting} if waiting else _("Invitations"),
                    "href": reverse("my-invitations-page"),
                    "icon": "mail",
                },
                *([{"label": _("Administration"), "href": reverse("admin:index"), "icon": "shield"}] if actor.is_moderator else []),
            ],
            "sign_out_url": reverse("account_logout"),
        },
        "worker_warning": worker_warning(),
        "disk_warning": disk_warning(),
    }


def _recent(request: Any, base: KnowledgeBase) -> dict[str, Any]:
    match = request.resolver_match
    here = match.kwargs.get("kb_id") if match else None
    return {"name": base.name, "href": reverse("base-documents", args=[base.space_id, base.uid]), "current": here == base.uid}


def _nav_item(request: Any, item: NavItem, space: Space) -> dict[str, Any]:
    match = request.resolver_match
    return {
        "label": str(item.label),
        "href": reverse(item.route, args=[space.pk]),
        "icon": item.icon,
        "current": bool(match and match.url_name in (item.route, *item.also)),
        "count": None,
        "attention": False,
    }


def _command(item: NavItem, space: Space) -> dict[str, str]:
    return {"label": str(item.label), "href": reverse(item.route, args=[space.pk]), "icon": item.icon}


def worker_warning() -> dict[str, str] | None:
    """Said when work of this space waits in a queue that no living worker serves."""
    served = served_queues()
    if current_scope() is None or all(kind.queue in served for _name, kind in job_kinds):
        return None
    waiting = sum(sum(states.values()) for name, states in live_counts().items() if job_kinds.get(name).queue not in served)
    if not waiting:
        return None
    text = _("No worker is running, so %(count)d tasks wait. They go on by themselves once one is started.") % {"count": waiting}
    return {"text": text, "href": "", "action": ""}


def disk_warning() -> dict[str, str] | None:
    """Said when the disk the portal writes to is nearly full."""
    free = shutil.disk_usage(settings.DATA_DIR).free
    if free >= settings.DISK_WARN_BYTES:
        return None
    gib = f"{free / 1024**3:.1f}"
    if free < settings.DISK_REFUSE_BYTES:
        return {
            "text": _("Only %(gib)s GiB of disk are left: uploads are refused until space is freed.") % {"gib": gib},
            "href": "",
            "action": "",
        }
    return {"text": _("Only %(gib)s GiB of disk are left. Free some space soon.") % {"gib": gib}, "href": "", "action": ""}
