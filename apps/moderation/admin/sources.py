"""Data sources of every space: how they stand, how their last run went."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from apps.moderation.admin.base import BaseFilter, ChoiceFilter, MetadataAdmin, SpaceFilter, base_link, mark, space_link
from apps.moderation.admin.spaces import GoneFilter
from apps.moderation.rows import Fact, when
from apps.moderation.site import moderator
from apps.moderation.words import TONES
from apps.sources.models import DataSource
from apps.sources.reasons import words_of
from apps.sources.selectors import run_list, source_rows

LOOKS = {"active": "good", "paused": "off", "error": "bad"}
OUTCOMES: dict[str, tuple[str, Any]] = {
    "running": ("live", _("Running")),
    "success": ("good", _("Done")),
    "partial": ("warn", _("In part")),
    "failed": ("bad", _("Failed")),
    "canceled": ("off", _("Stopped")),
}
RUNS = 20


class StatusFilter(ChoiceFilter):
    title = _("state")
    parameter_name = "status"
    choices_of = DataSource.Status.choices


@admin.register(DataSource)
class DataSourceAdmin(MetadataAdmin):
    noun = "source"
    names = (_("data source"), _("data sources"))
    list_display = ("title", "type", "space_name", "base_name", "documents", "last_run", "next_run", "state")
    list_filter = (StatusFilter, GoneFilter, SpaceFilter, BaseFilter)
    search_fields = ("name", "type", "space__name", "=uid")
    search_help_text = _("Name, type, space, or id")
    list_select_related = ("space", "kb")
    ordering = ("-pk",)

    def beside(self, request: HttpRequest, rows: list[Any]) -> None:
        found = source_rows(actor=moderator(request), sources=rows)
        for source, row in zip(rows, found, strict=True):
            source.row = row

    @admin.display(description=_("Name"), ordering="name")
    def title(self, source: Any) -> str:
        return str(source.name)

    @admin.display(description=_("Space"), ordering="space__name")
    def space_name(self, source: Any) -> Any:
        return space_link(source.space)

    @admin.display(description=_("Knowledge base"), ordering="kb__name")
    def base_name(self, source: Any) -> Any:
        return base_link(source.kb)

    @admin.display(description=_("Documents"))
    def documents(self, source: Any) -> int:
        return int(source.row.retained)

    @admin.display(description=_("Last run"))
    def last_run(self, source: Any) -> Any:
        last = source.row.last
        return mark(*OUTCOMES[last.outcome]) if last is not None else "—"

    @admin.display(description=_("Next run"), ordering="next_run_at")
    def next_run(self, source: Any) -> str:
        return when(source.next_run_at)

    @admin.display(description=_("State"), ordering="status")
    def state(self, source: Any) -> Any:
        if source.deleted_at:
            return mark("off", _("Deleted"))
        return mark(LOOKS[source.status], source.get_status_display())

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        row = source_rows(actor=moderator(request), sources=[obj])[0]
        fault = words_of(obj.error_code) if obj.error_code else None
        return [
            Fact(_("State"), _("Deleted") if obj.deleted_at else obj.get_status_display(), tone=LOOKS[obj.status]),
            Fact(_("Space"), obj.space.name, reverse("admin:spaces_space_change", args=[obj.space_id])),
            Fact(_("Knowledge base"), obj.kb.name, reverse("admin:knowledge_knowledgebase_change", args=[obj.kb_id])),
            Fact(_("Type"), obj.type, code=True),
            Fact(_("Credentials"), _("stored, encrypted") if obj.sealed else _("none")),
            Fact(_("Documents"), row.retained),
            Fact(_("Waiting for a decision"), row.held),
            Fact(_("Why it fails"), f"{fault.title}. {fault.next}" if fault else "—", tone="bad" if fault else ""),
            Fact(_("Error"), obj.error_message or "—", code=bool(obj.error_message)),
            Fact(_("Schedule"), f"{obj.schedule} {obj.time_zone}".strip() or _("by hand"), code=bool(obj.schedule)),
            Fact(_("Next run"), when(obj.next_run_at)),
            Fact(_("Made"), when(obj.created_at)),
            Fact(_("Id"), obj.uid, code=True),
        ]

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        runs = run_list(actor=moderator(request, obj.space_id), source=obj, limit=RUNS)
        return {
            "tables": [
                {
                    "title": _("Runs"),
                    "head": [_("Started"), _("State"), _("New"), _("Changed"), _("Deleted"), _("Failed"), _("Reason")],
                    "rows": [
                        [
                            {"text": when(run.created_at), "href": reverse("admin:run", args=[run.kind, run.pk])},
                            {"text": OUTCOMES[run.outcome][1], "tone": OUTCOMES[run.outcome][0] or TONES.get(run.state, "")},
                            *({"text": count} for count in (run.created, run.updated + run.renamed, run.deleted, run.failed)),
                            {"text": str(words_of(run.reason).title) if run.reason else "—"},
                        ]
                        for run in runs
                    ],
                    "empty": _("Nothing has run yet."),
                }
            ]
        }
