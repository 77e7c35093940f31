"""Lists and pages over one model that show metadata and change nothing by themselves: acts do, through services."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from apps.moderation.doing import buttons
from apps.moderation.rows import Fact
from apps.moderation.views.frame import page


class FigureChangeList(ChangeList):
    """A page of rows, with figures put beside them in a fixed number of queries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        shown: Any = self.model_admin
        shown.beside(request, self.result_list)


class MetadataAdmin(ModelAdmin):  # type: ignore[misc]
    """`facts` and `sections` make the page of one row; `noun` names its acts (apps/moderation/acts.py)."""

    noun: ClassVar[str] = ""
    names: ClassVar[tuple[Any, Any]]  # what one and several are called here
    list_per_page = 50
    list_max_show_all = 50
    list_fullwidth = True
    list_filter_submit = False
    detail_template: ClassVar[str] = "moderation/detail.html"

    def __init__(self, model: Any, admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.opts.verbose_name, self.opts.verbose_name_plural = self.names

    def title_of(self, obj: Any) -> str:
        """The headline of the page of one row."""
        return str(obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return FigureChangeList

    def beside(self, request: HttpRequest, rows: list[Any]) -> None:
        """Put figures on the rows of one page."""

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        """What the page of one row says."""
        return []

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Further context of the page of one row."""
        return {}

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one row; there is no form to post."""
        obj = self.get_object(request, unquote(object_id)) if object_id else None
        if obj is None or request.method not in ("GET", "HEAD"):
            raise Http404
        context = {
            "facts": self.facts(request, obj),
            "buttons": buttons(request, self.noun, obj) if self.noun else [],
            "back": reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"),
            "back_label": capfirst(self.opts.verbose_name_plural),
            **self.sections(request, obj),
        }
        return page(request, self.detail_template, self.title_of(obj), context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        raise Http404  # "What moderators did" has it for everything


class NumberFilter(SimpleListFilter):
    """A filter by an id that links carry (`?space=7`); it offers what is chosen and the way back, never a list of everything."""

    field: ClassVar[str] = ""

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        raw = request.GET.get(self.parameter_name, "")
        return [(raw, f"#{raw}")] if self._number(raw) else []

    def has_output(self) -> bool:
        return bool(self.lookup_choices)

    def queryset(self, request: Any, queryset: Any) -> Any:
        number = self._number(self.value() or "")
        return queryset.filter(**{self.field: number}) if number else queryset

    @staticmethod
    def _number(raw: str) -> int:
        return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 19 else 0


class ChoiceFilter(SimpleListFilter):
    """By a field with choices, under a name of its own."""

    choices_of: ClassVar[Any] = ()

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.choices_of)

    def queryset(self, request: Any, queryset: Any) -> Any:
        known = [value for value, _word in self.choices_of]
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() in known else queryset


class SpaceFilter(NumberFilter):
    title = _("space")
    parameter_name = "space"
    field = "space_id"


class BaseFilter(NumberFilter):
    title = _("knowledge base")
    parameter_name = "base"
    field = "kb_id"


def mark(tone: str, word: Any) -> SafeString:
    """A state: a mark and its word, never colour alone."""
    return format_html('<span class="kb-state kb-state--{}"><span class="kb-state__dot" aria-hidden="true"></span>{}</span>', tone, word)


def link(href: str, text: Any) -> SafeString:
    return format_html('<a class="kb-link" href="{}">{}</a>', href, text)


def space_link(space: Any) -> SafeString:
    return link(reverse("admin:spaces_space_change", args=[space.pk]), space.name)


def base_link(base: Any) -> SafeString:
    return link(reverse("admin:knowledge_knowledgebase_change", args=[base.pk]), base.name)
