"""Routes of processing."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.ingestion.api.reindex import ReindexView
from apps.ingestion.api.views import ChunkerPreviewView, SpansView, StagesView, VersionDiffView

upstream: list[URLPattern] = [
    path("knowledge-bases/<str:kb_id>/reindex", ReindexView.as_view(), name="base-reindex"),
    path("knowledge/<str:document_id>/stages", StagesView.as_view(), name="document-stages"),
    path("knowledge/<str:document_id>/spans", SpansView.as_view(), name="document-spans"),
    path("knowledge/<str:document_id>/versions/<int:number>/diff", VersionDiffView.as_view(), name="document-version-diff"),
    path("chunker/preview", ChunkerPreviewView.as_view(), name="chunker-preview"),
]
proxied: list[URLPattern] = [
    path("bases/<str:kb_id>/reindex", ReindexView.as_view(), name="base-reindex"),
    path("documents/<str:document_id>/stages", StagesView.as_view(), name="document-stages"),
    path("documents/<str:document_id>/spans", SpansView.as_view(), name="document-spans"),
    path("documents/<str:document_id>/versions/<int:number>/diff", VersionDiffView.as_view(), name="document-version-diff"),
    path("chunker/preview", ChunkerPreviewView.as_view(), name="chunker-preview"),
]
