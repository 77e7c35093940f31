"""Every address of the portal: pages, three REST prefixes over one set of views, documentation, health, admin."""

from __future__ import annotations

from importlib import import_module

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from apps.knowledge.api.views.images import PresignedFileView, PublicFileView

admin.site.login = secure_admin_login(admin.site.login)  # one door: its limits and its log hold for moderators too

CONTEXTS = ("accounts", "spaces", "llm", "knowledge", "retrieval", "ingestion", "faq", "sources", "wiki", "chat", "evaluation")
_routes = [import_module(f"apps.{context}.api.urls") for context in CONTEXTS]
upstream = [pattern for module in _routes for pattern in module.upstream]
proxied = [pattern for module in _routes for pattern in module.proxied]

urlpatterns = [
    path("api/v1/files/presigned", PresignedFileView.as_view(), name="presigned-file"),
    path("api/v1/", include((upstream, "api"))),
    path("v1/knowledge/", include((proxied, "personal"))),
    path("v1/tenants/<int:tenant_id>/knowledge/", include((proxied, "organization"))),
    path("api/openapi.json", login_not_required(SpectacularAPIView.as_view()), name="openapi"),
    path("api/docs/", login_not_required(SpectacularSwaggerSplitView.as_view(url_name="openapi")), name="api-docs"),
    path("r/<str:token>", PublicFileView.as_view(), name="public-file"),
    path("account/", include("allauth.account.urls")),
    path("admin/", admin.site.urls),
    path("", include("apps.operations.urls")),
    path("", include("apps.portal.urls")),
]

handler400 = "apps.portal.views.errors.bad_request"
handler403 = "apps.portal.views.errors.permission_denied"
handler404 = "apps.portal.views.errors.not_found"
handler500 = "apps.portal.views.errors.server_error"
