"""The retrieval log. What was asked belongs to the space: a moderator who is not in it sees everything but the words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.contrib.filters.admin import RangeDateFilter

from apps.accounts.models import User
from apps.common.scope import unscoped
from apps.knowledge.models import Chunk, Document, KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.moderation.admin.base import ChoiceFilter, MetadataAdmin, SpaceFilter, link, mark, space_link
from apps.moderation.admin.spaces import access_of
from apps.moderation.charts import DECISIONS, bars_of_days, bars_of_times
from apps.moderation.rows import Fact, when
from apps.moderation.selectors.contents import Readable, readable_spaces
from apps.moderation.services import content_opened
from apps.moderation.site import moderator
from apps.moderation.words import REASONS, TONES
from apps.retrieval.models import RetrievalLog
from apps.retrieval.selectors import search_figures, searches_by_day, searches_by_time, turns_by_day
from apps.spaces.models import ApiKey

SLOW_MS = (100, 300, 1000)
CHART_DAYS = 14
EXPORTED_AT_ONCE = 500
LEGS: dict[str, Any] = {"text": _("words"), "vector": _("meaning")}


class KbFilter(admin.SimpleListFilter):
    """By a base's id, among searches that named it."""

    title = _("knowledge base")
    parameter_name = "base"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        uid = as_uuid(request.GET.get("base", ""))
        base = KnowledgeBase.objects.filter(uid=uid).first() if uid else None
        return [(str(uid), base.name if base else str(uid))] if uid else []

    def has_output(self) -> bool:
        return bool(self.lookup_choices)

    def queryset(self, request: Any, queryset: Any) -> Any:
        uid = as_uuid(self.value() or "")
        if uid is None:
            return queryset
        return queryset.annotate(bases_text=Cast("kb_uids", TextField())).filter(bases_text__contains=str(uid))


class SlowFilter(admin.SimpleListFilter):
    title = _("time taken")
    parameter_name = "slow"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [(str(ms), _("%(ms)d ms and more") % {"ms": ms}) for ms in SLOW_MS]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(took_ms__gte=int(self.value() or 0)) if self.value() in [str(ms) for ms in SLOW_MS] else queryset


class LegFilter(admin.SimpleListFilter):
    title = _("legs")
    parameter_name = "leg"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("failed", _("one could not answer"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.exclude(failed_leg="") if self.value() == "failed" else queryset


class OutcomeFilter(ChoiceFilter):
    title = _("result")
    parameter_name = "outcome"
    choices_of = RetrievalLog.Outcome.choices


class DoorFilter(ChoiceFilter):
    title = _("door")
    parameter_name = "door"
    choices_of = RetrievalLog.Door.choices


class DateFilter(RangeDateFilter):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = _("date")

    def queryset(self, request: Any, queryset: Any) -> Any:
        """Both days included, in the portal's time zone; what is no day is left alone."""
        for name, step, rule in (("created_at_from", 0, "created_at__gte"), ("created_at_to", 1, "created_at__lt")):
            try:
                day = date.fromisoformat(request.GET.get(name, ""))
            except ValueError:
                continue
            queryset = queryset.filter(**{rule: timezone.make_aware(datetime.combine(day + timedelta(days=step), datetime.min.time()))})
        return queryset


@admin.register(RetrievalLog)
class RetrievalLogAdmin(MetadataAdmin):
    names = (_("search"), _("searches"))
    list_display = ("time", "space_name", "door_word", "result", "question", "found", "milliseconds", "leg", "who")
    list_filter = (OutcomeFilter, DoorFilter, SlowFilter, LegFilter, ("created_at", DateFilter), SpaceFilter, KbFilter)
    list_filter_submit = True
    search_fields = ("=request_id",)
    search_help_text = _("Request id")
    list_select_related = ("space",)
    list_before_template = "moderation/_search_figures.html"
    change_list_template = "moderation/searches.html"
    ordering = ("-pk",)

    def beside(self, request: HttpRequest, rows: list[Any]) -> None:
        readable = readable_spaces(actor=moderator(request))
        people = dict(User.objects.filter(pk__in={row.actor_user_id for row in rows if row.actor_user_id}).values_list("pk", "email"))
        keys = dict(ApiKey.objects.filter(pk__in={row.key_id for row in rows if row.key_id}).values_list("pk", "name"))
        for row in rows:
            row.shown = question_of(row, readable)
            row.name = people.get(row.actor_user_id) or keys.get(row.key_id) or row.actor

    @admin.display(description=_("Time"), ordering="pk")
    def time(self, row: Any) -> Any:
        return when(row.created_at)

    @admin.display(description=_("Space"))
    def space_name(self, row: Any) -> Any:
        return space_link(row.space)

    @admin.display(description=_("Door"), ordering="door")
    def door_word(self, row: Any) -> str:
        return str(row.get_door_display())

    @admin.display(description=_("Result"), ordering="outcome")
    def result(self, row: Any) -> Any:
        return mark(TONES[row.outcome], row.get_outcome_display())

    @admin.display(description=_("Question"))
    def question(self, row: Any) -> Any:
        return row.shown

    @admin.display(description=_("Hits"), ordering="hits_count")
    def found(self, row: Any) -> int:
        return int(row.hits_count)

    @admin.display(description=_("ms"), ordering="took_ms")
    def milliseconds(self, row: Any) -> str:
        return f"{row.took_ms:.0f}"

    @admin.display(description=_("Failed leg"))
    def leg(self, row: Any) -> Any:
        return mark("warn", LEGS.get(row.failed_leg, row.failed_leg)) if row.failed_leg else "—"

    @admin.display(description=_("Who"))
    def who(self, row: Any) -> Any:
        if row.actor_user_id and row.name != row.actor:
            return link(reverse("admin:accounts_user_change", args=[row.actor_user_id]), row.name)
        return row.name

    def title_of(self, obj: Any) -> str:
        return str(_("Search %(id)d") % {"id": obj.pk})

    def get_urls(self) -> list[URLPattern]:
        export = path("export.jsonl", self.admin_site.admin_view(self.export_view), name="retrieval_log_export")
        return [export, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        answer = super().changelist_view(request, extra_context)
        listed = getattr(answer, "context_data", None) or {}
        if "cl" in listed:
            recent = listed["cl"].queryset.filter(created_at__gte=timezone.now() - timedelta(days=CHART_DAYS))
            listed |= {
                "figures": search_figures(recent),
                "days": bars_of_days(searches_by_day(listed["cl"].queryset, CHART_DAYS)),
                "turns": bars_of_days(turns_by_day(listed["cl"].queryset, CHART_DAYS), DECISIONS),
                "times": bars_of_times(searches_by_time(recent)),
                "chart_days": CHART_DAYS,
                "export": f"{reverse('admin:retrieval_log_export')}?{request.GET.urlencode()}",
            }
        return answer

    def export_view(self, request: HttpRequest) -> StreamingHttpResponse:
        """The filtered list as JSON lines, newest first, streamed. Questions only of spaces whose contents the moderator may read."""
        found = self.get_changelist_instance(request).queryset.order_by("-pk")
        readable = readable_spaces(actor=moderator(request))
        answer = StreamingHttpResponse(_lines(found, readable), content_type="application/x-ndjson; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="retrieval-log.jsonl"'
        answer["X-Accel-Buffering"] = "no"
        for space_id, grant in readable.granted.items():
            if space_id not in readable.own and found.filter(space_id=space_id).exists():
                content_opened(actor=moderator(request, space_id), space_id=space_id, what="retrieval_log", target_id="export", grant=grant)
        return answer

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        readable = readable_spaces(actor=moderator(request))
        self._note_opening(request, obj, readable)
        self.beside(request, [obj])
        parts = obj.legs.get("ms", {})
        known = {str(uid): name for uid, name in KnowledgeBase.objects.filter(uid__in=obj.kb_uids).values_list("uid", "name")}
        asked = ", ".join(known.get(uid, str(_("a deleted knowledge base"))) for uid in obj.kb_uids)
        person = reverse("admin:accounts_user_change", args=[obj.actor_user_id]) if obj.name != obj.actor and obj.actor_user_id else ""
        return [
            Fact(_("Result"), obj.get_outcome_display(), tone=TONES[obj.outcome]),
            Fact(_("Question"), obj.shown),
            Fact(_("Space"), obj.space.name, reverse("admin:spaces_space_change", args=[obj.space_id])),
            Fact(_("Asked in"), asked or _("every base they could read")),
            Fact(_("Bases searched"), obj.bases),
            Fact(_("Door"), obj.get_door_display()),
            Fact(_("Who"), obj.name, person),
            Fact(_("Mode"), obj.mode, code=True),
            Fact(_("Options"), json.dumps(obj.options, ensure_ascii=False) if obj.options else "—", code=bool(obj.options)),
            *[_leg_fact(name, leg) for name, leg in obj.legs.items() if name != "ms"],
            Fact(
                _("Time taken"),
                _("%(all)s ms: %(embed)s reading the question, %(engine)s in the index")
                % {"all": round(obj.took_ms), "embed": round(parts.get("embed", 0)), "engine": round(parts.get("engine", 0))},
            ),
            Fact(_("Error"), obj.error or "—", code=bool(obj.error)),
            Fact(_("Request id"), obj.request_id or "—", code=True),
            Fact(_("Time"), when(obj.created_at)),
        ]

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        here = reverse("admin:retrieval_retrievallog_change", args=[obj.pk])
        base = obj.kb_uids[0] if len(obj.kb_uids) == 1 else ""
        title = ngettext("%(count)d hit", "%(count)d hits", obj.hits_count) % {"count": obj.hits_count}
        return {"access": access_of(request, obj.space, base=base, onward=here), "tables": [hits_table(obj, title)]}

    def _note_opening(self, request: HttpRequest, obj: Any, readable: Readable) -> None:
        grant = readable.granted.get(obj.space_id)
        if grant is None or obj.space_id in readable.own or not obj.query_text:
            return
        base = as_uuid(obj.kb_uids[0]) if len(obj.kb_uids) == 1 else None
        content_opened(
            actor=moderator(request, obj.space_id),
            space_id=obj.space_id,
            what="retrieval_log",
            target_id=str(obj.pk),
            grant=grant,
            base=base,
        )


def question_of(row: RetrievalLog, readable: Readable) -> str:
    """The words that were asked, or how many characters are hidden."""
    if not row.query_text:
        return str(_("no longer kept")) if row.query_chars else "—"
    if row.space_id in readable:
        return row.query_text
    return ngettext("%(count)d character, hidden", "%(count)d characters, hidden", row.query_chars) % {"count": row.query_chars}


def _leg_fact(name: str, leg: dict[str, Any]) -> Fact:
    said = {"ok": _("answered"), "failed": _("failed"), "unavailable": _("not available")}.get(leg["status"], leg["status"])
    value = f"{said} · {leg['hits']}" if "hits" in leg else f"{said}: {leg['reason']}" if leg.get("reason") else said
    label = _("Leg by words") if name == "text" else _("Leg by meaning")
    return Fact(label, value, tone="good" if leg["status"] == "ok" else "warn")


def hits_table(row: RetrievalLog, title: str) -> dict[str, Any]:
    """What was found, with what has become of it since; titles are metadata, passages stay closed."""
    documents = {str(d.uid): d for d in Document.objects.filter(uid__in=[hit["document"] for hit in row.hits])}
    passages = set(map(str, Chunk.objects.filter(uid__in=[hit["chunk"] for hit in row.hits]).values_list("uid", flat=True)))
    rows = []
    for rank, hit in enumerate(row.hits, 1):
        document = documents.get(hit["document"])
        if document is not None and document.deleted_at is not None:
            document = None
        title_cell = (
            {"text": _("a deleted document")}
            if document is None
            else {"text": document.title, "href": reverse("admin:knowledge_document_change", args=[document.pk])}
        )
        fate = _("deleted") if document is None else _("there") if hit["chunk"] in passages else _("made anew since")
        ranks = " / ".join(str(hit[leg] or "—") for leg in ("text_rank", "vector_rank"))
        rows.append(
            [
                {"text": rank},
                title_cell,
                {"text": REASONS.get(hit["reason"], hit["reason"])},
                {"text": f"{hit['score']:.3f}"},
                {"text": ranks},
                {"text": fate},
            ]
        )
    more = _("The first %(count)d are kept.") % {"count": len(row.hits)} if row.hits_count > len(row.hits) else ""
    head = [_("Rank"), _("Document"), _("Found by"), _("Score"), _("Words / meaning"), _("Passage")]
    return {"title": title, "head": head, "rows": rows, "more": more, "empty": _("Nothing was found.")}


def _lines(found: Any, readable: Readable) -> Iterator[str]:
    """Each piece is read while the filter is lifted; between pieces nothing is held open."""
    last: int | None = None
    while True:
        with unscoped("export of the retrieval log"):
            rows = list((found if last is None else found.filter(pk__lt=last))[:EXPORTED_AT_ONCE])
        if not rows:
            return
        yield "".join(json.dumps(_exported(row, readable), ensure_ascii=False) + "\n" for row in rows)
        last = rows[-1].pk


def _exported(row: RetrievalLog, readable: Readable) -> dict[str, Any]:
    return {
        "id": row.pk,
        "time": row.created_at.isoformat(),
        "space_id": row.space_id,
        "door": row.door,
        "actor": row.actor,
        "request_id": row.request_id,
        "query": row.query_text if row.space_id in readable else None,
        "query_chars": row.query_chars,
        "knowledge_base_ids": row.kb_uids,
        "bases": row.bases,
        "mode": row.mode,
        "options": row.options,
        "outcome": row.outcome,
        "hits": row.hits,
        "hits_count": row.hits_count,
        "legs": row.legs,
        "failed_leg": row.failed_leg,
        "error": row.error,
        "took_ms": row.took_ms,
        "decision": row.decision,
        "rule": row.rule,
        "explicit_refs": row.explicit_refs,
        "budget_chars": row.budget_chars,
        "injected_chars": row.injected_chars,
    }
