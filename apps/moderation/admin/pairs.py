"""Entries of FAQ bases: how they stand. Their texts are contents, but for the question, which is their title."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from apps.faq.models import FaqEntry
from apps.moderation.admin.base import BaseFilter, MetadataAdmin, SpaceFilter, base_link, mark, space_link
from apps.moderation.admin.spaces import access_of
from apps.moderation.rows import Fact, when

SHOWN = 120


class EntryStateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("on", _("Enabled")), ("off", _("Disabled")), ("best", _("Recommended")), ("gone", _("Deleted"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        chosen = self.value() or ""
        if chosen == "gone":
            return queryset.filter(document__deleted_at__isnull=False)
        live = queryset.filter(document__deleted_at__isnull=True)
        narrowed = {"on": {"is_enabled": True}, "off": {"is_enabled": False}, "best": {"is_recommended": True}}.get(chosen)
        return live.filter(**(narrowed or {}))


@admin.register(FaqEntry)
class FaqEntryAdmin(MetadataAdmin):
    names = (_("FAQ entry"), _("FAQ entries"))
    list_display = ("question", "space_name", "base_name", "state", "recommended", "similar", "negative", "answers", "passages", "changed")
    list_filter = (EntryStateFilter, SpaceFilter, BaseFilter)
    search_fields = ("standard_question", "space__name", "=number", "=document__uid")
    search_help_text = _("Question, space, or id")
    list_select_related = ("space", "kb", "document")
    ordering = ("-pk",)

    def title_of(self, obj: Any) -> str:
        return str(obj.standard_question[:SHOWN])

    @admin.display(description=_("Question"), ordering="standard_question")
    def question(self, entry: Any) -> str:
        return self.title_of(entry)

    @admin.display(description=_("Space"), ordering="space__name")
    def space_name(self, entry: Any) -> Any:
        return space_link(entry.space)

    @admin.display(description=_("Knowledge base"), ordering="kb__name")
    def base_name(self, entry: Any) -> Any:
        return base_link(entry.kb)

    @admin.display(description=_("State"), ordering="is_enabled")
    def state(self, entry: Any) -> Any:
        return mark(*state_of(entry))

    @admin.display(description=_("Recommended"), ordering="is_recommended", boolean=True)
    def recommended(self, entry: Any) -> bool:
        return bool(entry.is_recommended)

    @admin.display(description=_("Similar questions"))
    def similar(self, entry: Any) -> int:
        return len(entry.similar_questions)

    @admin.display(description=_("Negative questions"))
    def negative(self, entry: Any) -> int:
        return len(entry.negative_questions)

    @admin.display(description=_("Number of answers"))
    def answers(self, entry: Any) -> int:
        return len(entry.answers)

    @admin.display(description=_("Passages"), ordering="document__chunk_count")
    def passages(self, entry: Any) -> str:
        return f"{entry.document.vector_count:,} / {entry.document.chunk_count:,}"

    @admin.display(description=_("Changed"), ordering="updated_at")
    def changed(self, entry: Any) -> str:
        return when(entry.updated_at)

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        document = obj.document
        tone, word = state_of(obj)
        counts = {"passages": document.chunk_count, "vectors": document.vector_count}
        return [
            Fact(_("State"), word, tone=tone),
            Fact(_("Space"), obj.space.name, reverse("admin:spaces_space_change", args=[obj.space_id])),
            Fact(_("Knowledge base"), obj.kb.name, reverse("admin:knowledge_knowledgebase_change", args=[obj.kb_id])),
            Fact(_("Document"), document.uid, reverse("admin:knowledge_document_change", args=[document.pk]), code=True),
            Fact(_("Recommended"), _("yes") if obj.is_recommended else _("no")),
            Fact(_("Similar questions"), len(obj.similar_questions)),
            Fact(_("Negative questions"), len(obj.negative_questions)),
            Fact(_("Number of answers"), len(obj.answers)),
            Fact(_("With several answers, give"), obj.get_answer_strategy_display()),
            Fact(_("Passages"), _("%(passages)d, %(vectors)d with vectors") % counts),
            Fact(_("Version"), obj.version),
            Fact(_("Added"), when(obj.created_at)),
            Fact(_("Changed"), when(obj.updated_at)),
            Fact(_("Id"), obj.seq_id, code=True),
        ]

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        onward = reverse("admin:contents", args=[obj.document_id])
        contents = "" if obj.document.deleted_at else onward
        return {"access": {**access_of(request, obj.space, base=obj.kb.uid, onward=onward), "contents": contents}}


def state_of(entry: Any) -> tuple[str, Any]:
    """(tone, word)"""
    if entry.document.deleted_at:
        return "off", _("Deleted")
    return ("good", _("Enabled")) if entry.is_enabled else ("wait", _("Disabled"))
