"""REST addresses of data sources; the proxied families keep the upstream ones (contract content 2 leaves them open)."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.sources.api import views as v

upstream: list[URLPattern] = [
    path("datasource", v.SourcesView.as_view(), name="sources"),
    path("datasource/types", v.TypesView.as_view(), name="source-types"),
    path("datasource/validate-credentials", v.CheckView.as_view(), name="source-check-credentials"),
    path("datasource/logs/<str:log_id>", v.LogView.as_view(), name="source-log"),
    path("datasource/<str:source_id>", v.SourceDetailView.as_view(), name="source"),
    path("datasource/<str:source_id>/credentials", v.SourceCredentialsView.as_view(), name="source-credentials"),
    path("datasource/<str:source_id>/credentials/<str:field>", v.SourceCredentialView.as_view(), name="source-credential"),
    path("datasource/<str:source_id>/validate", v.SourceCheckView.as_view(), name="source-check"),
    path("datasource/<str:source_id>/resources", v.ResourcesView.as_view(), name="source-resources"),
    path("datasource/<str:source_id>/resource-ancestors", v.AncestorsView.as_view(), name="source-ancestors"),
    path("datasource/<str:source_id>/sync", v.SyncView.as_view(), name="source-sync"),
    path("datasource/<str:source_id>/pause", v.PauseView.as_view(), name="source-pause"),
    path("datasource/<str:source_id>/resume", v.ResumeView.as_view(), name="source-resume"),
    path("datasource/<str:source_id>/logs", v.LogsView.as_view(), name="source-logs"),
    path("datasource/<str:source_id>/held", v.HeldView.as_view(), name="source-held"),
]
proxied: list[URLPattern] = list(upstream)
