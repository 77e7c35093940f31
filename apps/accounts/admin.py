"""People, for site moderators: who is there, who is let in, who moderates. Nothing of what they wrote."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from unfold.admin import ModelAdmin

from apps.accounts.models import User


@admin.register(User)
class UserAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("email", "username", "is_active", "is_staff", "language", "last_login", "created_at")
    list_filter = ("is_active", "is_staff", "language")
    search_fields = ("email", "username")
    ordering = ("-created_at",)
    fields = ("email", "username", "is_active", "is_staff", "is_superuser", "language", "theme", "last_login", "created_at")
    readonly_fields = ("email", "username", "language", "theme", "last_login", "created_at")

    def has_add_permission(self, request: Any) -> bool:
        return False  # accounts are made by signing up, with their personal space

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False  # disable instead: what somebody wrote keeps its author

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        """Nobody takes the site from themselves by mistake."""
        return super().has_change_permission(request, obj) and (obj is None or obj.pk != request.user.pk)
