"""Routes of this context: `upstream` under /api/v1/, `proxied` under both knowledge families."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.accounts.api import views

upstream: list[URLPattern] = [
    path("auth/refresh", views.RefreshView.as_view(), name="auth-refresh"),
    path("auth/logout", views.LogoutView.as_view(), name="auth-logout"),
    path("auth/change-password", views.ChangePasswordView.as_view(), name="auth-change-password"),
    path("auth/config", views.ConfigView.as_view(), name="auth-config"),
    path("auth/auto-setup", views.AutoSetupView.as_view(), name="auth-auto-setup"),
    path("auth/oidc/config", views.OidcConfigView.as_view(), name="auth-oidc-config"),
]
proxied: list[URLPattern] = []
