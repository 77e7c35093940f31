"""Pages of every wiki and what is wrong with them: metadata alone, never their text."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from apps.moderation.admin.base import BaseFilter, ChoiceFilter, MetadataAdmin, SpaceFilter, base_link, mark, space_link
from apps.moderation.rows import Fact, when
from apps.wiki.models import PageClaim, PageLink, PageRevision, PageSource, PageType, WikiIssue, WikiPage

STATES = {"current": "good", "source_changed": "warn", "source_withdrawn": "bad"}
LOOKS = {"open": "warn", "resolved": "good", "ignored": "off"}


class StateFilter(ChoiceFilter):
    title = _("state")
    parameter_name = "state"
    choices_of = WikiPage.State.choices


class TypeFilter(ChoiceFilter):
    title = _("type")
    parameter_name = "page_type"
    choices_of = PageType.choices


class ModeFilter(ChoiceFilter):
    title = _("how it was made")
    parameter_name = "made_by"
    choices_of = WikiPage.Mode.choices


@admin.register(WikiPage)
class WikiPageAdmin(MetadataAdmin):
    names = (_("wiki page"), _("wiki pages"))
    list_display = ("name", "slug", "kind", "space_name", "base_name", "made", "version", "changed", "look")
    list_filter = (StateFilter, TypeFilter, ModeFilter, SpaceFilter, BaseFilter)
    search_fields = ("title", "slug", "=uid")
    search_help_text = _("Title, address, or id")
    list_select_related = ("space", "kb", "document")
    ordering = ("-pk",)

    @admin.display(description=_("Title"), ordering="title")
    def name(self, page: Any) -> str:
        return str(page.title)

    @admin.display(description=_("Type"), ordering="page_type")
    def kind(self, page: Any) -> str:
        return str(page.get_page_type_display() or _("Written by hand"))

    @admin.display(description=_("Space"), ordering="space__name")
    def space_name(self, page: Any) -> Any:
        return space_link(page.space)

    @admin.display(description=_("Knowledge base"), ordering="kb__name")
    def base_name(self, page: Any) -> Any:
        return base_link(page.kb)

    @admin.display(description=_("Made"), ordering="made_by")
    def made(self, page: Any) -> str:
        return str(page.get_made_by_display())

    @admin.display(description=_("Changed"), ordering="edited_at")
    def changed(self, page: Any) -> str:
        return when(page.edited_at)

    @admin.display(description=_("State"), ordering="state")
    def look(self, page: Any) -> Any:
        return mark("off", _("Deleted")) if page.document.deleted_at else mark(STATES[page.state], page.get_state_display())

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        return [
            Fact(_("State"), _("Deleted") if obj.document.deleted_at else obj.get_state_display(), tone=STATES[obj.state]),
            Fact(_("Space"), obj.space.name, reverse("admin:spaces_space_change", args=[obj.space_id])),
            Fact(_("Knowledge base"), obj.kb.name, reverse("admin:knowledge_knowledgebase_change", args=[obj.kb_id])),
            Fact(pgettext_lazy("of a wiki page", "Address"), obj.slug, code=True),
            Fact(_("Type"), self.kind(obj)),
            Fact(_("Status"), obj.get_status_display()),
            Fact(_("How it was made"), obj.get_made_by_display()),
            Fact(_("Version"), obj.version),
            Fact(_("Earlier versions kept"), PageRevision.objects.filter(page=obj).count()),
            Fact(_("Links from it"), PageLink.objects.filter(page=obj).count()),
            Fact(_("Links to it"), PageLink.objects.filter(target=obj).count()),
            Fact(_("Documents it rests on"), PageSource.objects.filter(page=obj).count()),
            Fact(_("Claims"), PageClaim.objects.filter(page=obj).count()),
            Fact(_("Changed"), when(obj.edited_at)),
            Fact(_("Id"), obj.uid, code=True),
        ]


class IssueStatusFilter(ChoiceFilter):
    title = _("status")
    parameter_name = "status"
    choices_of = WikiIssue.Status.choices


class IssueKindFilter(ChoiceFilter):
    title = _("kind")
    parameter_name = "kind"
    choices_of = WikiIssue.Kind.choices


@admin.register(WikiIssue)
class WikiIssueAdmin(MetadataAdmin):
    names = (_("wiki issue"), _("wiki issues"))
    list_display = ("name", "page_title", "space_name", "base_name", "raised", "made", "look")
    list_filter = (IssueStatusFilter, IssueKindFilter, SpaceFilter, BaseFilter)
    search_fields = ("page__title", "page__slug", "=uid")
    search_help_text = _("Title or address of the page, or id")
    list_select_related = ("space", "kb", "page")
    ordering = ("-pk",)

    @admin.display(description=_("Kind"), ordering="kind")
    def name(self, issue: Any) -> str:
        return str(issue.get_kind_display())

    @admin.display(description=_("Page"), ordering="page__title")
    def page_title(self, issue: Any) -> str:
        return str(issue.page.title)

    @admin.display(description=_("Space"), ordering="space__name")
    def space_name(self, issue: Any) -> Any:
        return space_link(issue.space)

    @admin.display(description=_("Knowledge base"), ordering="kb__name")
    def base_name(self, issue: Any) -> Any:
        return base_link(issue.kb)

    @admin.display(description=_("Raised by"), ordering="raised_by")
    def raised(self, issue: Any) -> str:
        return str(issue.reporter or issue.get_raised_by_display())

    @admin.display(description=_("Raised"), ordering="created_at")
    def made(self, issue: Any) -> str:
        return when(issue.created_at)

    @admin.display(description=_("Status"), ordering="status")
    def look(self, issue: Any) -> Any:
        return mark(LOOKS[issue.status], issue.get_status_display())

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        return [
            Fact(_("Status"), obj.get_status_display(), tone=LOOKS[obj.status]),
            Fact(_("Kind"), obj.get_kind_display()),
            Fact(_("Page"), obj.page.title, reverse("admin:wiki_wikipage_change", args=[obj.page_id])),
            Fact(_("Space"), obj.space.name, reverse("admin:spaces_space_change", args=[obj.space_id])),
            Fact(_("Knowledge base"), obj.kb.name, reverse("admin:knowledge_knowledgebase_change", args=[obj.kb_id])),
            Fact(_("Raised by"), obj.reporter or obj.get_raised_by_display()),
            Fact(_("Raised"), when(obj.created_at)),
            Fact(_("Settled"), when(obj.closed_at) if obj.closed_at else "—"),
            Fact(_("Id"), obj.uid, code=True),
        ]
