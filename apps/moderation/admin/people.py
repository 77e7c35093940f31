"""People: who is there, who is let in, who moderates, when they were last seen."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Max
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import AccessToken, User
from apps.knowledge.models import BaseVisit
from apps.moderation.admin.base import MetadataAdmin, mark
from apps.moderation.rows import Fact, when
from apps.spaces.models import ApiKey, Membership


class YesNoFilter(admin.SimpleListFilter):
    """By a truth of the row, in words of its own."""

    field = ""
    words: tuple[Any, Any] = ("", "")  # yes, no

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("1", self.words[0]), ("0", self.words[1])]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(**{self.field: self.value() == "1"}) if self.value() in ("0", "1") else queryset


class ActiveFilter(YesNoFilter):
    title = _("state")
    parameter_name = field = "is_active"
    words = (_("Active"), _("Deactivated"))


class StaffFilter(YesNoFilter):
    title = _("moderator")
    parameter_name = field = "is_staff"
    words = (_("Moderators"), _("Everybody else"))


@admin.register(User)
class UserAdmin(MetadataAdmin):
    noun = "user"
    names = (_("person"), _("people"))
    list_display = ("address", "name", "state", "moderates", "spaces", "last_seen", "created")
    list_filter = (ActiveFilter, StaffFilter)
    search_fields = ("email", "username")
    search_help_text = _("E-mail address or name")
    ordering = ("-created_at",)

    def beside(self, request: HttpRequest, rows: list[Any]) -> None:
        pks = [user.pk for user in rows]
        live = Membership.objects.filter(user__in=pks, space__deleted_at__isnull=True).order_by()
        counts = dict(live.values_list("user_id").annotate(count=Count("pk")))
        seen = seen_last(rows)
        for user in rows:
            user.space_count = counts.get(user.pk, 0)
            user.seen_at = seen.get(user.pk)

    @admin.display(description=_("E-mail address"), ordering="email")
    def address(self, user: Any) -> str:
        return str(user.email)

    @admin.display(description=_("Name"), ordering="username")
    def name(self, user: Any) -> str:
        return str(user.username)

    @admin.display(description=_("State"), ordering="is_active")
    def state(self, user: Any) -> Any:
        return state_of(user)

    @admin.display(description=_("Moderator"), ordering="is_staff")
    def moderates(self, user: Any) -> Any:
        return mark("good", _("Moderator")) if user.is_staff else "—"

    @admin.display(description=_("Spaces"))
    def spaces(self, user: Any) -> int:
        return int(user.space_count)

    @admin.display(description=_("Last seen"))
    def last_seen(self, user: Any) -> str:
        return when(user.seen_at)

    @admin.display(description=_("Joined"), ordering="created_at")
    def created(self, user: Any) -> str:
        return when(user.created_at)

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        confirmed = EmailAddress.objects.filter(user=obj, email=obj.email, verified=True).exists()
        tokens = AccessToken.objects.filter(user=obj, revoked_at__isnull=True).count()
        keys = ApiKey.objects.filter(created_by=obj, revoked_at__isnull=True).count()
        return [
            Fact(_("State"), _("Active") if obj.is_active else _("Deactivated"), tone="good" if obj.is_active else "off"),
            Fact(_("Moderator"), _("yes") if obj.is_staff else _("no")),
            Fact(_("E-mail address"), obj.email),
            Fact(_("Address confirmed"), _("yes") if confirmed else _("no")),
            Fact(_("Name"), obj.username),
            Fact(_("Language"), dict(settings.LANGUAGES).get(obj.language, "—")),
            Fact(_("Last seen"), when(seen_last([obj]).get(obj.pk))),
            Fact(_("Last sign-in"), when(obj.last_login)),
            Fact(_("Live tokens"), tokens),
            Fact(_("API keys they made"), keys),
            Fact(_("Joined"), when(obj.created_at)),
            Fact(_("Id"), obj.pk, code=True),
        ]

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        rows = (
            Membership.objects.filter(user=obj)
            .select_related("space")
            .annotate(people=Count("space__memberships"))
            .order_by("space__name", "pk")
        )
        others = set(
            Membership.objects.filter(space__memberships__user=obj, role=Membership.Role.ADMIN, user__is_active=True)
            .exclude(user=obj)
            .values_list("space_id", flat=True)
        )
        return {
            "tables": [
                {
                    "title": _("Spaces"),
                    "head": [_("Space"), _("Kind"), _("Role"), _("Members"), _("Joined")],
                    "rows": [
                        [
                            {"text": row.space.name, "href": reverse("admin:spaces_space_change", args=[row.space_id])},
                            {"text": _("deleted") if row.space.deleted_at else row.space.get_kind_display()},
                            {"text": _only_admin(row, others)},
                            {"text": row.people},  # type: ignore[attr-defined]
                            {"text": when(row.joined_at)},
                        ]
                        for row in rows
                    ],
                    "empty": _("In no space."),
                }
            ]
        }


def _only_admin(row: Membership, others: set[int]) -> Any:
    alone = row.role == Membership.Role.ADMIN and row.space_id not in others and not row.space.is_personal
    return _("Admin, the only one") if alone else row.get_role_display()


def state_of(user: Any) -> Any:
    return mark("good", _("Active")) if user.is_active else mark("off", _("Deactivated"))


def seen_last(users: list[Any]) -> dict[Any, datetime]:
    """{person: the latest of sign-in, a token given out, a base opened}, in two queries."""
    pks = [user.pk for user in users]
    found = {user.pk: user.last_login for user in users if user.last_login}
    for rows, field in ((AccessToken.objects, "created_at"), (BaseVisit.objects, "visited_at")):
        for pk, moment in rows.filter(user__in=pks).order_by().values_list("user_id").annotate(last=Max(field)):
            found[pk] = max(found.get(pk, moment), moment)
    return found
