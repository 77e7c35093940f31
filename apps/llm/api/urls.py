"""Routes of models: `upstream` under /api/v1/, `proxied` under both knowledge families."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.llm.api import views

upstream: list[URLPattern] = [
    path("models", views.ModelListView.as_view(), name="models"),
    path("models/providers", views.ProviderListView.as_view(), name="model-providers"),
    path("models/<str:model_id>", views.ModelView.as_view(), name="model"),
    path("models/<str:model_id>/credentials", views.CredentialsView.as_view(), name="model-credentials"),
    path("models/<str:model_id>/credentials/<str:field>", views.CredentialView.as_view(), name="model-credential"),
    path("models/<str:model_id>/debug", views.DebugView.as_view(), name="model-debug"),
    path("initialization/embedding/test", views.EmbeddingTestView.as_view(), name="embedding-test"),
    path("initialization/remote/check", views.ChatCheckView.as_view(), name="chat-check"),
    path("initialization/rerank/check", views.RerankCheckView.as_view(), name="rerank-check"),
]

#: The contract's catalogue by role (content 12); managing models has the upstream routes.
proxied: list[URLPattern] = [path("models", views.CatalogueView.as_view(), name="models")]
