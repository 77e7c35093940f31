"""Routes of search."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.retrieval.api.views import HybridSearchView, KnowledgeSearchView

upstream: list[URLPattern] = [
    path("knowledge-bases/<str:kb_id>/hybrid-search", HybridSearchView.as_view(), name="hybrid-search"),
    path("knowledge-search", KnowledgeSearchView.as_view(), name="knowledge-search"),
]
proxied: list[URLPattern] = [
    path("bases/<str:kb_id>/hybrid-search", HybridSearchView.as_view(), name="hybrid-search"),
    path("knowledge-search", KnowledgeSearchView.as_view(), name="knowledge-search"),
]
