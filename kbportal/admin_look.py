"""How the admin looks: the portal's colours, and a side bar in groups."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _


def _theme(request: Any) -> str | None:
    """The person's pinned theme; None follows the system, with a switch."""
    wanted = request.COOKIES.get("kb_theme") or getattr(request.user, "theme", "")
    return wanted if wanted in ("light", "dark") else None


def _item(title: Any, icon: str, route: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(route)}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "kbportal",
    "SITE_HEADER": _("Administration"),
    "SITE_URL": "/",
    "SITE_ICON": lambda request: static("dist/mark.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("dist/mark.svg")}],
    "STYLES": [lambda request: static("moderation/admin.css")],
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_HISTORY": False,
    "BORDER_RADIUS": "6px",
    "THEME": _theme,
    "COLORS": {
        "base": {
            "50": "#fbfbfa",
            "100": "#f3f4f3",
            "200": "#e3e6e5",
            "300": "#cbd1cf",
            "400": "#949d9b",
            "500": "#626b69",
            "600": "#48514f",
            "700": "#3d4446",
            "800": "#2c3133",
            "900": "#151718",
            "950": "#101213",
        },
        "primary": {
            "50": "#effaf8",
            "100": "#e2f0ee",
            "200": "#c4e1dd",
            "300": "#9fcbc6",
            "400": "#74cdc3",
            "500": "#4fb5ab",
            "600": "#0c6260",
            "700": "#0a5250",
            "800": "#0b4442",
            "900": "#16312f",
            "950": "#06211f",
        },
        "font": {
            "subtle-light": "#626b69",
            "subtle-dark": "#949d9b",
            "default-light": "#48514f",
            "default-dark": "#b6bdbb",
            "important-light": "#1b2120",
            "important-dark": "#e8ebea",
        },
    },
    "SIDEBAR": {
        "navigation": [
            {"items": [_item(_("Overview"), "monitoring", "admin:index")]},
            {
                "title": _("Work"),
                "separator": True,
                "items": [
                    _item(_("Runs"), "play_circle", "admin:runs"),
                    _item(_("Documents"), "description", "admin:knowledge_document_changelist"),
                    _item(_("Retrieval log"), "manage_search", "admin:retrieval_retrievallog_changelist"),
                ],
            },
            {
                "title": _("What there is"),
                "separator": True,
                "items": [
                    _item(_("Spaces"), "workspaces", "admin:spaces_space_changelist"),
                    _item(_("Knowledge bases"), "library_books", "admin:knowledge_knowledgebase_changelist"),
                    _item(_("FAQ entries"), "quiz", "admin:faq_faqentry_changelist"),
                    _item(_("Data sources"), "sync", "admin:sources_datasource_changelist"),
                    _item(_("Wiki pages"), "article", "admin:wiki_wikipage_changelist"),
                    _item(_("Wiki issues"), "rule", "admin:wiki_wikiissue_changelist"),
                    _item(_("People"), "group", "admin:accounts_user_changelist"),
                    _item(_("Storage"), "hard_drive", "admin:storage"),
                ],
            },
            {
                "title": _("Moderators"),
                "separator": True,
                "items": [_item(_("What moderators did"), "history", "admin:admin_logentry_changelist")],
            },
        ],
    },
}
