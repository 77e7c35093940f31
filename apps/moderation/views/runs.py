"""Runs of every kind: the list with queues and workers above it, one run, and acts on several."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.errors import DomainError
from apps.common.jobs.registry import job_kinds
from apps.moderation.acts import ACTS
from apps.moderation.doing import buttons, perform, target_of
from apps.moderation.rows import run_facts, run_row
from apps.moderation.selectors.runs import PER_PAGE, RunQuery, kinds, queues, run_get, run_page, workers_alive
from apps.moderation.site import moderator
from apps.moderation.views.frame import page
from apps.moderation.words import KINDS, STATES


def runs_view(request: HttpRequest) -> HttpResponse:
    """GET: the list. POST: try again or stop the chosen ones, with a report of each."""
    if request.method == "POST":
        return _several(request)
    actor = moderator(request)
    asked = RunQuery.read(request.GET)
    found = run_page(actor=actor, asked=asked)
    depths = queues(actor=actor)
    served = {queue.name for queue in depths if queue.workers}
    first = (found.page - 1) * PER_PAGE
    context = {
        "asked": asked,
        "rows": [run_row(run, served) for run in found.rows],
        "queues": depths,
        "workers": workers_alive(actor=actor),
        "total": found.total,
        "state_chips": [(name, word, asked.href(state=name), asked.state == name) for name, word in [("", _("All")), *STATES.items()]],
        "kind_chips": [
            (name, word, asked.href(kind=name), asked.kind == name)
            for name, word in [("", _("All")), *((name, KINDS.get(name, name)) for name in kinds())]
        ],
        "others": [
            (label, asked.href(**{name: empty}))
            for name, label, empty in (
                ("space", _("Space %(id)d") % {"id": asked.space}, 0),
                ("reason", asked.reason, ""),
                ("hours", _("Made in the last %(hours)d hours") % {"hours": asked.hours}, 0),
            )
            if getattr(asked, name)
        ],
        "first": first + 1 if found.rows else 0,
        "last": first + len(found.rows),
        "previous": asked.href(page=found.page - 1) if found.page > 1 else "",
        "next": asked.href(page=found.page + 1) if found.page < found.pages else "",
        "here": asked.href(page=found.page),
    }
    return page(request, "moderation/runs.html", _("Runs"), context)


def _several(request: HttpRequest) -> HttpResponse:
    act = ACTS["run"].get(request.POST.get("act", ""))
    keys = request.POST.getlist("run")[:PER_PAGE]
    if act is None or not keys:
        messages.warning(request, _("Choose at least one run."))
        return HttpResponseRedirect(_back(request))
    done, faults = 0, []
    for key in keys:
        try:
            perform(request, "run", act, target_of(request, "run", key))
            done += 1
        except Http404:
            faults.append(_("%(run)s is gone.") % {"run": key})
        except DomainError as error:
            faults.append(f"{key}: {error}")
    if done:
        messages.success(request, f"{act.label}: " + ngettext("%(count)d run.", "%(count)d runs.", done) % {"count": done})
    for fault in faults[:10]:
        messages.warning(request, fault)
    if len(faults) > 10:
        messages.warning(request, _("and %(count)d more could not be done.") % {"count": len(faults) - 10})
    return HttpResponseRedirect(_back(request))


def _back(request: HttpRequest) -> str:
    """The list as it was asked for; only our own words come back out of the address."""
    return reverse("admin:runs") + RunQuery.read(request.GET).href(page=RunQuery.read(request.GET).page)


def run_view(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    """One run: every fact its row holds, and what can be done."""
    try:
        run: Any = run_get(actor=moderator(request), kind=kind, pk=pk)
    except DomainError:
        raise Http404 from None
    served = {queue.name for queue in queues(actor=moderator(request)) if queue.workers}
    row = run_row(run, served)
    context = {
        "row": row,
        "facts": run_facts(run, row),
        "buttons": buttons(request, "run", run),
        "queue": job_kinds.get(run.kind).queue,
        "back": reverse("admin:runs"),
        "back_label": _("Runs"),
    }
    return page(request, "moderation/detail.html", f"{KINDS.get(run.kind, run.kind)} {run.pk}", context)
