"""Pages of the admin that are no list of one model."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path

from apps.moderation.views.acts import act_view
from apps.moderation.views.contents import contents_view, grant_view
from apps.moderation.views.runs import run_view, runs_view
from apps.moderation.views.storage import storage_view


def pages(site: Any) -> list[URLPattern]:
    return [
        path("runs/", site.admin_view(runs_view), name="runs"),
        path("runs/<slug:kind>/<int:pk>/", site.admin_view(run_view), name="run"),
        path("storage/", site.admin_view(storage_view), name="storage"),
        path("do/<slug:noun>/<slug:key>/<slug:code>/", site.admin_view(act_view), name="act"),
        path("open/<int:space_id>/", site.admin_view(grant_view), name="grant"),
        path("contents/<int:document_id>/", site.admin_view(contents_view), name="contents"),
    ]
