"""Spaces, for site moderators: what exists and how many people are in it. No contents."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from apps.spaces.models import Space


@admin.register(Space)
class SpaceAdmin(ModelAdmin):  # type: ignore[misc]
    list_display = ("id", "name", "kind", "owner", "people", "created_at", "deleted_at")
    list_filter = ("kind", ("deleted_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "owner__email", "owner__username")
    list_select_related = ("owner",)
    ordering = ("-pk",)
    fields = readonly_fields = ("name", "description", "kind", "owner", "created_at", "updated_at", "deleted_at")

    def get_queryset(self, request: Any) -> QuerySet[Space]:
        return super().get_queryset(request).annotate(people=Count("memberships"))

    @admin.display(description=_("Members"), ordering="people")
    def people(self, space: Any) -> int:
        return int(space.people)

    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False
