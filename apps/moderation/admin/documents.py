"""Documents: state, reason, sizes and what was done with them; contents only for those who may."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from apps.common.errors import DomainError
from apps.ingestion.models import IngestionRun, Span
from apps.knowledge.models import Document, ParseStatus
from apps.knowledge.reasons import REASONS, reason_for, reason_of
from apps.moderation.acts import ACTS
from apps.moderation.admin.base import BaseFilter, ChoiceFilter, MetadataAdmin, SpaceFilter, base_link, mark, space_link
from apps.moderation.admin.spaces import access_of
from apps.moderation.doing import perform
from apps.moderation.rows import Fact, run_reason, run_row, seconds, when
from apps.moderation.selectors.runs import queues
from apps.moderation.site import moderator
from apps.moderation.words import TONES, size_text

STAGES: dict[str, Any] = {
    "knowledge_processing": _("Whole run"),
    "docreader": _("Read the file"),
    "chunking": _("Cut into passages"),
    "embedding": _("Make vectors"),
    "multimodal": _("Read pictures (OCR)"),
    "postprocess": _("Finish"),
}
SPAN_WORDS: dict[str, Any] = {
    "done": _("done"),
    "running": _("running"),
    "failed": _("failed"),
    "skipped": _("not needed"),
    "cancelled": _("not reached"),
    "pending": _("waiting"),
}
SPAN_TONES = {"done": "good", "running": "live", "failed": "bad", "cancelled": "off", "skipped": "off", "pending": "wait"}


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [*ParseStatus.choices, ("gone", _("Deleted"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        chosen = self.value() or ""
        if chosen == "gone":
            return queryset.filter(deleted_at__isnull=False)
        rows = queryset.filter(deleted_at__isnull=True)
        return rows.filter(parse_status=chosen) if chosen in ParseStatus.values else rows


class ReasonFilter(admin.SimpleListFilter):
    title = _("reason")
    parameter_name = "reason"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [(code, reason.word) for code, reason in REASONS.items()]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(reason=self.value()) if self.value() in REASONS else queryset


class OriginFilter(ChoiceFilter):
    title = _("origin")
    parameter_name = "type"
    choices_of = (
        ("file", _("an uploaded file")),
        ("url", _("a web page")),
        ("file_url", _("a file from an address")),
        ("manual", _("written here")),
        ("pair", _("a question pair")),
        ("page", _("a page of a wiki")),
    )


@admin.register(Document)
class DocumentAdmin(MetadataAdmin):
    noun = "document"
    names = (_("document"), _("documents"))
    list_display = ("name", "space_name", "base_name", "state", "why", "kind", "size", "passages", "vectors", "changed")
    list_filter = (StateFilter, ReasonFilter, OriginFilter, SpaceFilter, BaseFilter)
    search_fields = ("title", "file_name", "=uid")
    search_help_text = _("Title, file name, or id")
    list_select_related = ("space", "kb")
    ordering = ("-pk",)
    actions = ("read_again", "stop")

    @admin.display(description=_("Title"), ordering="title")
    def name(self, document: Any) -> str:
        return str(document.title)

    @admin.display(description=_("Space"))
    def space_name(self, document: Any) -> Any:
        return space_link(document.space)

    @admin.display(description=_("Knowledge base"))
    def base_name(self, document: Any) -> Any:
        return base_link(document.kb)

    @admin.display(description=_("State"), ordering="parse_status")
    def state(self, document: Any) -> Any:
        return state_mark(document)

    @admin.display(description=_("Reason"), ordering="reason")
    def why(self, document: Any) -> str:
        return str(reason_of(document.reason).word) if document.reason else "—"

    @admin.display(description=_("Kind"), ordering="file_type")
    def kind(self, document: Any) -> str:
        return kind_of(document)

    @admin.display(description=_("File size"), ordering="file_size")
    def size(self, document: Any) -> str:
        return size_text(document.file_size)

    @admin.display(description=_("Passages"), ordering="chunk_count")
    def passages(self, document: Any) -> int:
        return int(document.chunk_count)

    @admin.display(description=_("Vectors"), ordering="vector_count")
    def vectors(self, document: Any) -> int:
        return int(document.vector_count)

    @admin.display(description=_("Changed"), ordering="updated_at")
    def changed(self, document: Any) -> str:
        return when(document.updated_at)

    @admin.action(description=_("Read again"))
    def read_again(self, request: HttpRequest, queryset: Any) -> None:
        _each(request, queryset, "reparse")

    @admin.action(description=_("Stop"))
    def stop(self, request: HttpRequest, queryset: Any) -> None:
        _each(request, queryset, "cancel")

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        counts = ", ".join(f"{count} {name}" for name, count in (obj.counts or {}).items())
        return [
            Fact(
                _("State"),
                _("Deleted on %(day)s") % {"day": when(obj.deleted_at)} if obj.deleted_at else obj.get_parse_status_display(),
                tone="off" if obj.deleted_at else TONES.get(obj.parse_status, ""),
            ),
            *(_why(obj) if obj.reason else []),
            *([Fact(_("Error"), obj.error_message, code=True)] if obj.error_message else []),
            Fact(_("Space"), obj.space.name, reverse("admin:spaces_space_change", args=[obj.space_id])),
            Fact(_("Knowledge base"), obj.kb.name, reverse("admin:knowledge_knowledgebase_change", args=[obj.kb_id])),
            Fact(_("Kind"), kind_of(obj)),
            Fact(_("File size"), size_text(obj.file_size)),
            Fact(_("Length"), counts or "—"),
            Fact(_("Passages"), _("%(passages)d, %(vectors)d with vectors") % {"passages": obj.chunk_count, "vectors": obj.vector_count}),
            Fact(_("Found by searches"), _("yes") if obj.is_answerable else _("no")),
            Fact(_("Came by"), obj.channel),
            Fact(pgettext_lazy("run", "Attempt"), obj.attempt),
            Fact(_("Added"), when(obj.created_at)),
            Fact(_("Finished"), when(obj.processed_at)),
            Fact(_("Id"), obj.uid, code=True),
        ]

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        onward = reverse("admin:contents", args=[obj.pk])
        return {
            "access": {**access_of(request, obj.space, base=obj.kb.uid, onward=onward), "contents": "" if obj.deleted_at else onward},
            "tables": [runs_table(request, obj), spans_table(obj)],
        }


def _each(request: HttpRequest, documents: Any, code: str) -> None:
    """One act on every chosen document, with a report of what could not be done."""
    act = ACTS["document"][code]
    done, faults = 0, []
    for document in documents.select_related("kb", "space"):
        refused = act.refuse(request, document)
        try:
            if not refused:
                perform(request, "document", act, document)
                done += 1
        except DomainError as error:
            refused = str(error)
        if refused:
            faults.append(f"{document.title}: {refused}")
    if done:
        messages.success(request, f"{act.label}: " + ngettext("%(count)d document.", "%(count)d documents.", done) % {"count": done})
    for fault in faults[:10]:
        messages.warning(request, fault)
    if len(faults) > 10:
        messages.warning(request, _("and %(count)d more could not be done.") % {"count": len(faults) - 10})


def state_mark(document: Any) -> Any:
    if document.deleted_at:
        return mark("off", _("Deleted"))
    return mark(TONES.get(document.parse_status, ""), document.get_parse_status_display())


def _why(document: Any) -> list[Fact]:
    reason = reason_for(document)
    said = _("%(title)s. %(why)s") % {"title": reason.title, "why": reason.why}
    return [Fact(_("Reason"), said), Fact(_("What to do"), reason.next)]


def kind_of(document: Any) -> str:
    return document.file_type or {"url": _("web page"), "manual": _("written here")}.get(document.type, document.type)


def runs_table(request: HttpRequest, document: Any) -> dict[str, Any]:
    served = {queue.name for queue in queues(actor=moderator(request)) if queue.workers}
    found = IngestionRun.objects.filter(document=document).select_related("space").order_by("-pk")[:20]
    rows = []
    for run in found:
        run.document = document
        drawn = run_row(run, served)
        rows.append(
            [
                {"text": drawn.kind, "href": drawn.href},
                {"text": drawn.state, "tone": drawn.tone},
                {"text": run_reason(run.reason) or "—"},
                {"text": run.document_attempt},
                {"text": when(run.created_at)},
                {"text": drawn.took or drawn.progress or "—"},
            ]
        )
    head = [_("Run"), _("State"), _("Reason"), pgettext_lazy("run", "Attempt"), _("Made"), _("Took")]
    return {"title": _("Runs"), "head": head, "rows": rows, "empty": _("Nothing has been done with it.")}


def spans_table(document: Any) -> dict[str, Any]:
    spans = Span.objects.filter(document=document, attempt=document.attempt).order_by("started_at", "pk")
    return {
        "title": _("Stages of the last attempt"),
        "head": [_("Stage"), _("State"), _("Reason"), _("Started"), _("Took")],
        "rows": [
            [
                {"text": STAGES.get(span.name, span.name)},
                {"text": SPAN_WORDS.get(span.status, span.status), "tone": SPAN_TONES.get(span.status, "")},
                {"text": span.error_code or "—"},
                {"text": when(span.started_at)},
                {"text": seconds(span.started_at, span.finished_at) or "—"},
            ]
            for span in spans
        ],
        "empty": _("No stage was recorded."),
    }
