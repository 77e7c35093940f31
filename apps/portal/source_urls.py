"""Pages of data sources: `/s/<space>/bases/<id>/sources`, `/s/<space>/sources/<id>/...`."""

from __future__ import annotations

from django.urls import path

from apps.portal.views import source_setup as setup
from apps.portal.views import sources as v

_BASE = "s/<int:space_id>/bases/<uuid:kb_id>/sources"
_SOURCE = "s/<int:space_id>/sources/<uuid:source_id>/"

urlpatterns = [
    path(_BASE, v.SourcesView.as_view(), name="base-sources"),
    path(_BASE + "/new", setup.SourceNewView.as_view(), name="source-new"),
    path(_BASE + "/new/<slug:kind>", setup.SourceConnectView.as_view(), name="source-connect"),
    path(_BASE + "/new/<slug:kind>/try", setup.SourceTryView.as_view(), name="source-try"),
    path(_SOURCE + "connection", setup.SourceConnectionView.as_view(), name="source-connection"),
    path(_SOURCE + "scope", setup.SourceScopeView.as_view(), name="source-scope"),
    path(_SOURCE + "scope/parts", setup.SourceResourcesView.as_view(), name="source-resources-page"),
    path(_SOURCE + "schedule", setup.SourceScheduleView.as_view(), name="source-schedule"),
    path(_SOURCE + "sync", v.SourceSyncView.as_view(), name="source-sync"),
    path(_SOURCE + "stop", v.SourceStopView.as_view(), name="source-stop"),
    path(_SOURCE + "pause", v.SourcePauseView.as_view(), name="source-pause"),
    path(_SOURCE + "resume", v.SourceResumeView.as_view(), name="source-resume"),
    path(_SOURCE + "check", v.SourceCheckView.as_view(), name="source-check"),
    path(_SOURCE + "history", v.SourceHistoryView.as_view(), name="source-history"),
    path(_SOURCE + "held", v.SourceHeldView.as_view(), name="source-held"),
    path(_SOURCE + "delete", v.SourceDeleteView.as_view(), name="source-delete"),
]
