"""Pages and health checks."""

from __future__ import annotations

from django.urls import path

from apps.portal import base_urls
from apps.portal.views import health, styleguide

urlpatterns = [
    *base_urls.urlpatterns,
    path("styleguide", styleguide.styleguide, name="styleguide"),
    path("health", health.health, name="health"),
    path("healthz/live", health.live, name="health-live"),
    path("healthz/ready", health.ready, name="health-ready"),
]
