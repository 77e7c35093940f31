"""The side bar, top to bottom; the first three entries stand in a phone's bottom bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


@dataclass(frozen=True, slots=True)
class NavItem:
    """`route` takes the space's id; shown to who may do `action`; `also`: further routes during which it is the current one."""

    label: Any
    route: str
    icon: str
    action: str
    also: tuple[str, ...] = ()


#: Pages that stand below the list of knowledge bases.
BASE_ROUTES = (
    "base-create",
    "base-documents",
    "base-settings",
    "base-activity",
    "base-activity-detail",
    "base-reindex",
    "base-delete",
    "base-copy",
    "base-clear",
    "base-tags",
    "base-test",
    "document-new",
    "document-edit",
    "document-import",
    "document-reader",
    "document-versions",
    "document-version-diff",
)

NAV: list[NavItem] = [
    NavItem(pgettext_lazy("navigation", "Ask"), "ask", "ask", "chat.read", ("ask-session",)),
    NavItem(pgettext_lazy("navigation", "Knowledge"), "home", "base", "base.list", BASE_ROUTES),
    NavItem(_("Members"), "members-page", "people", "member.list", ("invitations-page",)),
    NavItem(_("API keys"), "keys-page", "key", "key.list"),
    NavItem(_("Models"), "models-page", "ai", "model.list", ("model-new", "model-edit", "model-delete")),
    NavItem(
        pgettext_lazy("navigation", "Evaluation"),
        "evaluation",
        "target",
        "evaluation.manage",
        ("evaluation-set", "evaluation-set-new", "evaluation-set-delete", "evaluation-run", "evaluation-run-new", "evaluation-compare"),
    ),
    NavItem(_("Trash"), "trash", "trash", "trash.read", ("base-trash",)),
    NavItem(_("Settings"), "space-settings", "settings", "space.update"),
]
