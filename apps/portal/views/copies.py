"""Copying a knowledge base, following the copies under way, emptying a base."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.common.errors import Conflict, InvalidInput
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get, base_row, copies_by_pk, copy_get, copy_hindrance, copy_plan, move_targets
from apps.knowledge.services import base_clear, base_copy, base_duplicate, copy_cancel, copy_name
from apps.portal import links
from apps.portal.copies import copies_context, ended_toast
from apps.portal.trash import days_text, kept_text
from apps.portal.views.forms import confirmed, put_error, sent_before
from apps.portal.web import DialogView, PageView, done, go

WAYS = (("contents", gettext_lazy("Settings, tags and documents")), ("settings", gettext_lazy("Settings only")))


class CopyForm(forms.Form):
    way = forms.ChoiceField(label=gettext_lazy("What is copied"), choices=WAYS)
    target = forms.ChoiceField(label=gettext_lazy("Into"), required=False)
    name = forms.CharField(label=gettext_lazy("Name"), required=False, strip=False)


class BaseCopyView(DialogView):
    """Into a new base or onto an existing one; before it starts the dialog says what an existing one gains and loses."""

    actions = {"GET": "base.copy", "POST": "base.copy"}
    template = "portal/_base_copy.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        initial = {"way": request.GET.get("way", "contents"), "target": request.GET.get("target", "")}
        name = request.GET.get("name", "").strip() or copy_name(actor=self.actor, base=base)
        return self._ask(base, CopyForm(initial={**initial, "name": name}), initial["target"], initial["way"])

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = CopyForm(request.POST)
        form.fields["target"].choices = self._targets(base)  # type: ignore[attr-defined]
        if not form.is_valid():
            return self._ask(base, form, "", request.POST.get("way", ""), status=422)
        values = form.cleaned_data
        target_id = values["target"] if values["way"] == "contents" else ""
        if sent_before(request):
            return self.done(_("The copy has started."), back=links.space_url(space_id))
        try:
            if values["way"] == "settings":
                copy = base_duplicate(actor=self.actor, base=base, name=values["name"])
                return go(request, links.base_url(copy))
            target = base_get(actor=self.actor, kb_id=target_id) if target_id else None
            base_copy(actor=self.actor, source=base, target=target, name=values["name"])
        except (InvalidInput, Conflict) as error:
            put_error(form, error, {"target_id": "target"})
            return self._ask(base, form, target_id, values["way"], status=422)
        return self.done(_("The copy has started. It is shown above the list until it is whole."), back=links.space_url(space_id))

    def _targets(self, base: KnowledgeBase) -> list[tuple[str, str]]:
        rows = move_targets(actor=self.actor, base=base)
        return [("", _("A new knowledge base")), *((str(row.base.uid), row.base.name) for row in rows)]

    def _ask(self, base: KnowledgeBase, form: CopyForm, target_id: str, way: str, status: int = 200) -> HttpResponse:
        choices = self._targets(base)
        form.fields["target"].choices = choices  # type: ignore[attr-defined]
        target = base_get(actor=self.actor, kb_id=target_id) if target_id in {value for value, _label in choices if value} else None
        plan = None
        if target is not None and way == "contents" and not copy_hindrance(base, target):
            plan = copy_plan(actor=self.actor, source=base, target=target)
        context = {
            "base": base,
            "form": form,
            "way": way,
            "target": target,
            "plan": plan,
            "counts": base_row(actor=self.actor, base=base).counts,
            "space_id": base.space_id,
        }
        title = _("Copy “%(name)s”") % {"name": base.name}
        return self.show(title, context, status=status, back=links.space_url(base.space_id))


class CopiesView(PageView):
    """What is being copied in the space. `?watched=` names what the page showed; what of it has ended is said in a toast."""

    actions = {"GET": "base.list"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        context = copies_context(self.actor)
        response = self.page("portal/_copies.html", context)
        watched = [int(pk) for pk in request.GET.get("watched", "").split(",")[:50] if pk.isdigit() and len(pk) < 18]
        ended = [run for run in copies_by_pk(actor=self.actor, pks=watched) if not run.is_live]
        if ended:
            response["HX-Trigger"] = json.dumps({"toast": [ended_toast(run) for run in ended], "kb:changed": {}})
        return response


class CopyStopView(PageView):
    actions = {"POST": "base.copy"}

    def post(self, request: HttpRequest, space_id: int, task_id: str) -> HttpResponse:
        run = copy_get(actor=self.actor, task_id=task_id)
        stopped = copy_cancel(actor=self.actor, run=run)
        text = _("The copy is being stopped.") if stopped else _("The copy had ended already.")
        return done(request, text, back=links.space_url(space_id))


class BaseClearView(DialogView):
    """Deletes every document; the base, its settings and its tags stay. Asks for the name."""

    actions = {"GET": "base.clear", "POST": "base.clear"}
    template = "portal/_base_clear.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        return self._ask(base_get(actor=self.actor, kb_id=kb_id))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        typed, error = confirmed(request, base.name)
        if error:
            return self._ask(base, typed=typed, error=error, status=422)
        try:
            count = base_clear(actor=self.actor, base=base)
        except Conflict as conflict:
            return self._ask(base, typed=typed, error=str(conflict), status=422)
        text = ngettext("%(count)s document deleted.", "%(count)s documents deleted.", count) % {"count": f"{count:,}"}
        return self.done(text, back=links.base_url(base), detail=kept_text())

    def _ask(self, base: KnowledgeBase, *, typed: str = "", error: str = "", status: int = 200) -> HttpResponse:
        counts = base_row(actor=self.actor, base=base).counts
        context: dict[str, Any] = {"base": base, "counts": counts, "typed": typed, "error": error, "kept_days": days_text()}
        context["space_id"] = base.space_id
        title = _("Empty “%(name)s”?") % {"name": base.name}
        return self.show(title, context, status=status, back=links.base_url(base))
