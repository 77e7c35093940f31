"""What moderators did, as the admin wrote it down."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from apps.moderation.acts import ACTS
from apps.moderation.admin.base import MetadataAdmin
from apps.moderation.rows import Fact, when


@admin.register(LogEntry)
class TrailAdmin(MetadataAdmin):
    names = (_("act of a moderator"), _("acts of moderators"))
    list_display = ("time", "who", "what", "target")
    search_fields = ("object_repr", "user__email")
    search_help_text = _("Name of what it was done to, or the moderator's address")
    list_select_related = ("user",)
    ordering = ("-pk",)

    @admin.display(description=_("Time"), ordering="pk")
    def time(self, entry: Any) -> str:
        return when(entry.action_time)

    @admin.display(description=_("Moderator"))
    def who(self, entry: Any) -> str:
        return str(entry.user.email)

    @admin.display(description=_("What"))
    def what(self, entry: Any) -> Any:
        return act_word(entry)

    @admin.display(description=_("Done to"))
    def target(self, entry: Any) -> str:
        return str(entry.object_repr)

    def title_of(self, obj: Any) -> str:
        return f"{act_word(obj)}: {obj.object_repr}"

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        return [
            Fact(_("Time"), when(obj.action_time)),
            Fact(_("Moderator"), obj.user.email),
            Fact(_("What"), act_word(obj)),
            Fact(_("Done to"), obj.object_repr),
            Fact(_("Id"), obj.object_id, code=True),
        ]


def act_word(entry: Any) -> Any:
    """The act's label; its record is written as "noun: code"."""
    noun, _colon, code = str(entry.change_message).partition(": ")
    act = ACTS.get(noun, {}).get(code)
    return act.label if act else entry.change_message
