"""Setting a data source up in four steps, and changing it later by the same pages.

The source exists, paused and marked as a draft, from the moment it answered to its credentials: that is what its parts can be listed by,
and why no secret ever travels through a page again.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.errors import DomainError, InvalidInput, NotFound
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get
from apps.portal.base_frame import base_frame
from apps.portal.forms.sources import ConnectionForm, ScheduleForm, schedule_initial
from apps.portal.sources import icon_of, meta_of, setup_steps, sources_url
from apps.portal.views.forms import put_error, sent_before
from apps.portal.web import PageView
from apps.sources.models import DataSource
from apps.sources.plugins.protocol import ConnectorMeta
from apps.sources.selectors import connector_metas, source_get
from apps.sources.services import (
    credentials_check,
    credentials_set,
    source_ancestors,
    source_create,
    source_resources,
    source_update,
    sync_start,
)

FIELDS = {"sync_schedule": "cron", "sync_log_retention_days": "log_retention_days"}


class _StepView(PageView):
    step = 0
    template = ""

    def show(self, base: KnowledgeBase, source: DataSource | None, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        whole = {
            **base_frame(self.actor, base, "sources"),
            "steps": setup_steps(base, source, self.step),
            "source": source,
            "step_template": self.template,
            "back": sources_url(base),
            "space_id": base.space_id,
            **context,
        }
        return self.page("portal/source_setup.html", whole, status=status)


class SourceNewView(_StepView):
    """Step 1: which kind."""

    actions = {"GET": "source.write"}
    step = 1
    template = "portal/_source_kinds.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        kinds = [{"meta": meta, "icon": icon_of(meta)} for meta in connector_metas(actor=self.actor)]
        return self.show(base, None, {"kinds": kinds})


class SourceConnectView(_StepView):
    """Step 2 of a new source: name, credentials, settings. It is stored once it answers."""

    actions = {"GET": "source.write", "POST": "source.write"}
    step = 2
    template = "portal/_source_connection.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID, kind: str) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self._ask(base, ConnectionForm(meta=_meta(kind)))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID, kind: str) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = ConnectionForm(request.POST, meta=_meta(kind))
        if not form.is_valid():
            return self._ask(base, form, status=422)
        if sent_before(request):
            return redirect(sources_url(base))
        values = {
            "type": kind,
            "name": form.cleaned_data["name"],
            "credentials": form.credentials(),
            "settings": form.values_in("settings"),
            "status": DataSource.Status.PAUSED,
            "is_draft": True,
        }
        try:
            source = source_create(actor=self.actor, base=base, values=values)
        except InvalidInput as error:
            put_error(form, error)
            return self._ask(base, form, status=422)
        return _go_on(source)

    def _ask(self, base: KnowledgeBase, form: ConnectionForm, *, status: int = 200) -> HttpResponse:
        action = reverse("source-connect", args=[base.space_id, base.uid, form.meta.type])
        test = reverse("source-try", args=[base.space_id, base.uid, form.meta.type])
        return self.show(base, None, _connection(form, action, test), status=status)


class SourceTryView(PageView):
    """Whether a source answers to what is typed; nothing is stored and the form stays as it is."""

    actions = {"POST": "source.write"}

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID, kind: str) -> HttpResponse:
        base_get(actor=self.actor, kb_id=kb_id)
        form = ConnectionForm(request.POST, meta=_meta(kind))
        context: dict[str, Any] = {"ok": False, "text": _("Check what was typed.")}
        if form.is_valid():
            try:
                credentials_check(
                    actor=self.actor, kind=kind, credentials=form.credentials(), settings=form.values_in("settings")
                )  # fmt: skip
                context = {"ok": True, "text": _("The source answers.")}
            except InvalidInput as error:
                context["text"] = str(error)
        return self.page("portal/_source_test.html", context)


class SourceConnectionView(_StepView):
    """Step 2 of a source that exists: other settings, other credentials."""

    actions = {"GET": "source.write", "POST": "source.write"}
    step = 2
    template = "portal/_source_connection.html"

    def get(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        return self._ask(source, ConnectionForm(meta=_meta(source.type), source=source))

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        form = ConnectionForm(request.POST, meta=_meta(source.type), source=source)
        if not form.is_valid():
            return self._ask(source, form, status=422)
        try:
            if form.asks_for_others():
                source = credentials_set(actor=self.actor, source=source, credentials=form.credentials())
            values = {"name": form.cleaned_data["name"], "settings": form.values_in("settings")}
            source = source_update(actor=self.actor, source=source, values=values)
        except InvalidInput as error:
            put_error(form, error)
            return self._ask(source, form, status=422)
        if source.is_draft:
            return _go_on(source)
        messages.success(request, _("Saved."))
        return redirect(sources_url(source.kb))

    def _ask(self, source: DataSource, form: ConnectionForm, *, status: int = 200) -> HttpResponse:
        action = reverse("source-connection", args=[source.space_id, source.uid])
        return self.show(source.kb, source, _connection(form, action, ""), status=status)


def _connection(form: ConnectionForm, action: str, test: str) -> dict[str, Any]:
    names = {where: [each.name for each in form.meta.inputs if each.where == where] for where in ("credentials", "settings")}
    return {
        "form": form,
        "meta": form.meta,
        "kind_icon": icon_of(form.meta),
        "action": action,
        "test_url": test,
        "credential_fields": [form[name] for name in names["credentials"]],
        "setting_fields": [form[name] for name in names["settings"]],
        "required": {each.name for each in form.meta.inputs if each.required},
    }


class SourceScopeView(_StepView):
    """Step 3: everything, or only chosen parts."""

    actions = {"GET": "source.write", "POST": "source.write"}
    step = 3
    template = "portal/_source_scope.html"

    def get(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        opened = {each[:512] for each in request.GET.getlist("open")[:50]}
        nodes, fault = [], ""
        try:
            opened |= set(
                source_ancestors(actor=self.actor, source=source, resource_ids=source.resource_ids) if source.resource_ids else ()
            )
            nodes = self._level(source, "", opened, set(source.resource_ids), 0)
        except DomainError as error:
            fault = str(error)
        shown = set(_ids(nodes))
        lost = [each for each in source.resource_ids if each not in shown]
        return self.show(source.kb, source, {"nodes": nodes, "lost": lost, "fault": fault, "chosen": bool(source.resource_ids)})

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        wanted = request.POST.getlist("resource_ids") if request.POST.get("which") == "chosen" else []
        source = source_update(actor=self.actor, source=source, values={"resource_ids": wanted})
        if source.is_draft:
            return redirect("source-schedule", space_id, source.uid)
        messages.success(request, _("Saved."))
        return redirect(sources_url(source.kb))

    def _level(self, source: DataSource, parent: str, opened: set[str], chosen: set[str], depth: int) -> list[dict[str, Any]]:
        found = source_resources(actor=self.actor, source=source, parent_id=parent)
        nodes = [_node(source, each, chosen) for each in found]
        for node in nodes:
            if node["load"] and node["id"] in opened and depth < 8:
                node["children"] = self._level(source, node["id"], opened - {node["id"]}, chosen, depth + 1)
        return nodes


class SourceResourcesView(PageView):
    """One level of the tree of parts."""

    actions = {"GET": "source.write"}

    def get(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        try:
            found = source_resources(actor=self.actor, source=source, parent_id=request.GET.get("parent", "")[:512])
        except DomainError as error:
            return self.page("portal/_source_parts.html", {"nodes": [], "fault": str(error)})
        chosen = set(source.resource_ids)
        return self.page("portal/_source_parts.html", {"nodes": [_node(source, each, chosen) for each in found], "is_level": True})


def _node(source: DataSource, each: Any, chosen: set[str]) -> dict[str, Any]:
    return {
        "id": each.external_id,
        "label": each.name or each.external_id,
        "kind": each.type,
        "note": each.description,
        "checked": each.external_id in chosen,
        "load": reverse("source-resources-page", args=[source.space_id, source.uid]) if each.has_children else "",
        "children": [],
    }


def _ids(nodes: list[dict[str, Any]]) -> list[str]:
    return [found for node in nodes for found in (node["id"], *_ids(node["children"]))]


class SourceScheduleView(_StepView):
    """Step 4: when, and what is protected. A new source goes into service with it."""

    actions = {"GET": "source.write", "POST": "source.write"}
    step = 4
    template = "portal/_source_schedule.html"

    def get(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        return self._ask(source, ScheduleForm(initial=schedule_initial(source)))

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        form = ScheduleForm(request.POST)
        if not form.is_valid():
            return self._ask(source, form, status=422)
        values = form.values()
        if source.is_draft:
            values |= {"status": DataSource.Status.ACTIVE, "is_draft": False}
        try:
            source = source_update(actor=self.actor, source=source, values=values)
        except InvalidInput as error:
            put_error(form, error, FIELDS)
            return self._ask(source, form, status=422)
        if request.POST.get("then") == "sync":
            sync_start(actor=self.actor, source=source)
        messages.success(request, _("“%(name)s” is set up.") % {"name": source.name})
        return redirect(sources_url(source.kb))

    def _ask(self, source: DataSource, form: ScheduleForm, *, status: int = 200) -> HttpResponse:
        return self.show(source.kb, source, {"form": form}, status=status)


def _meta(kind: str) -> ConnectorMeta:
    meta = meta_of(kind)
    if meta is None:
        raise NotFound(_("There is no such kind of source."))
    return meta


def _go_on(source: DataSource) -> HttpResponse:
    """After the connection: choose parts where there are any, else straight to the schedule."""
    meta = meta_of(source.type)
    name = "source-scope" if meta is not None and meta.has_resources else "source-schedule"
    return redirect(name, source.space_id, source.uid)
