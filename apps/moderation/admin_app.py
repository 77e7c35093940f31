"""Django's admin with our site in its place; what it lists is registered by `apps.moderation.admin`, nothing is discovered."""

from __future__ import annotations

from django.contrib.admin.apps import SimpleAdminConfig


class AdminConfig(SimpleAdminConfig):
    default_site = "apps.moderation.site.ModeratorSite"
