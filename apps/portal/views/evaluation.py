"""Evaluations: question sets, runs of them against a base, results by question, and what changed between two runs."""

from __future__ import annotations

import uuid
from pathlib import PurePosixPath
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.chat.services.once import BUILT_IN
from apps.common.errors import DomainError, InvalidInput
from apps.evaluation import selectors, services
from apps.knowledge.selectors import base_get, base_list
from apps.llm.services.chat import chat_models
from apps.portal.evaluations import WORDS, answered_by, figure_rows, number, result_row, run_row, short_heads
from apps.portal.web import DialogView, PageView, go

PER_PAGE = 50
RUNS_SHOWN = 50
SETS_SHOWN = 100
FAULTS_SHOWN = 20


def _home(space_id: int) -> str:
    return reverse("evaluation", args=[space_id])


def _crumbs(space_id: int, label: str) -> list[dict[str, str]]:
    return [{"label": _("Evaluation"), "href": _home(space_id)}, {"label": label}]


class EvaluationView(PageView):
    actions = {"GET": "evaluation.manage"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        runs = list(selectors.run_list(actor=self.actor)[:RUNS_SHOWN])
        context = {
            "space_id": space_id,
            "sets": list(selectors.set_list(actor=self.actor)[:SETS_SHOWN]),
            "rows": [run_row(self.actor, run) for run in runs],
            "heads": short_heads(),
            "is_live": any(run.is_live for run in runs),
        }
        return self.fragment_or_page("portal/evaluation.html", {"evaluation": "portal/_evaluation.html"}, context)


class SetNewView(DialogView):
    """A set from a file, or drawn from a base."""

    actions = {"GET": "evaluation.manage", "POST": "evaluation.manage"}
    template = "portal/_evaluation_set_new.html"

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        return self.form(space_id)

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        try:
            made = self._made()
        except DomainError as error:
            return self.form(space_id, error=error, status=422)
        return go(request, reverse("evaluation-set", args=[space_id, made.uid]))

    def _made(self) -> Any:
        upload: Any = self.request.FILES.get("file")
        name, kb_id = self.request.POST.get("name", "").strip(), self.request.POST.get("base", "")
        if upload is not None:
            questions = services.questions_read(upload.name or "", upload.read(services.MAX_BYTES + 1))
            stem = PurePosixPath(upload.name or "").stem
            return services.set_create(actor=self.actor, name=name or stem, questions=questions, file_name=upload.name or "")
        if not kb_id:
            raise InvalidInput(_("Choose a file, or a knowledge base to draw questions from."), field="file")
        base = base_get(actor=self.actor, kb_id=kb_id)
        return services.set_draw(actor=self.actor, base=base, name=name or base.name)

    def form(self, space_id: int, *, error: DomainError | None = None, status: int = 200) -> HttpResponse:
        faults = (error.details.get("rows") or []) if error is not None else []
        context = {
            "space_id": space_id,
            "error": str(error) if error is not None and not faults else "",
            "faults": faults[:FAULTS_SHOWN],
            "more_faults": max(0, len(faults) - FAULTS_SHOWN),
            "name": self.request.POST.get("name", ""),
            "chosen": self.request.POST.get("base", ""),
            "bases": [("", _("none: from the file")), *((str(row.base.uid), row.base.name) for row in base_list(actor=self.actor))],
        }
        return self.show(_("New question set"), context, status=status, wide=True, back=_home(space_id))


class SetView(PageView):
    actions = {"GET": "evaluation.manage"}

    def get(self, request: HttpRequest, space_id: int, set_id: uuid.UUID) -> HttpResponse:
        found = selectors.set_get(actor=self.actor, set_id=set_id)
        page = Paginator(selectors.question_list(actor=self.actor, question_set=found), PER_PAGE).get_page(request.GET.get("page", "1"))
        runs = list(selectors.run_list(actor=self.actor, question_set=found)[:RUNS_SHOWN])
        context = {
            "space_id": space_id,
            "set": found,
            "page": page,
            "rows": [run_row(self.actor, run) for run in runs],
            "heads": short_heads(),
            "crumbs": _crumbs(space_id, found.name),
        }
        return self.page("portal/evaluation_set.html", context)


class SetDeleteView(DialogView):
    actions = {"GET": "evaluation.manage", "POST": "evaluation.manage"}
    template = "portal/_evaluation_delete.html"

    def get(self, request: HttpRequest, space_id: int, set_id: uuid.UUID) -> HttpResponse:
        found = selectors.set_get(actor=self.actor, set_id=set_id)
        return self.ask(found)

    def post(self, request: HttpRequest, space_id: int, set_id: uuid.UUID) -> HttpResponse:
        found = selectors.set_get(actor=self.actor, set_id=set_id)
        try:
            services.set_delete(actor=self.actor, question_set=found)
        except DomainError as error:
            return self.ask(found, error=str(error), status=409)
        return go(request, _home(space_id))

    def ask(self, found: Any, *, error: str = "", status: int = 200) -> HttpResponse:
        runs = selectors.run_list(actor=self.actor, question_set=found).count()
        text = ngettext("%(count)d question goes", "%(count)d questions go", found.size) % {"count": found.size}
        text += ", " + ngettext("with %(count)d run and its results.", "with %(count)d runs and their results.", runs) % {"count": runs}
        context = {"text": text, "error": error, "action": self.request.path, "label": _("Delete the set")}
        title = _("Delete “%(name)s”?") % {"name": found.name}
        return self.show(title, context, status=status, back=reverse("evaluation-set", args=[found.space_id, found.uid]))


class RunNewView(DialogView):
    actions = {"GET": "evaluation.manage", "POST": "evaluation.manage"}
    template = "portal/_evaluation_run_new.html"

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        return self.form(space_id)

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        sent = request.POST
        try:
            if not sent.get("set") or not sent.get("base"):
                raise InvalidInput(_("Choose a question set and a knowledge base."), field="set")
            run = services.run_start(
                actor=self.actor,
                question_set=selectors.set_get(actor=self.actor, set_id=sent.get("set")),
                base=base_get(actor=self.actor, kb_id=sent.get("base")),
                model_id=sent.get("model", ""),
                note=sent.get("note", ""),
            )
        except DomainError as error:
            return self.form(space_id, error=str(error), status=422)
        return go(request, reverse("evaluation-run", args=[space_id, run.uid]))

    def form(self, space_id: int, *, error: str = "", status: int = 200) -> HttpResponse:
        given = self.request.POST or self.request.GET
        context = {
            "space_id": space_id,
            "error": error,
            "given": {name: given.get(name, "") for name in ("set", "base", "note")},
            "model": given.get("model", BUILT_IN),
            "sets": [(str(row.uid), f"{row.name} ({row.size})") for row in selectors.set_list(actor=self.actor)[:SETS_SHOWN]],
            "bases": [(str(row.base.uid), row.base.name) for row in base_list(actor=self.actor)],
            "models": [
                (BUILT_IN, _("the built-in answerer: sentences from the sources")),
                *((str(row.uid), row.title) for row in chat_models()),
                ("", _("nobody: measure the search alone")),
            ],
        }
        return self.show(_("New run"), context, status=status, back=_home(space_id))


class RunView(PageView):
    """Figures and progress of a run, and its results by question."""

    actions = {"GET": "evaluation.manage"}

    def get(self, request: HttpRequest, space_id: int, run_id: uuid.UUID) -> HttpResponse:
        run = selectors.run_get(actor=self.actor, run_id=run_id)
        only_bad = request.GET.get("only") == "bad"
        here = reverse("evaluation-run", args=[space_id, run.uid])
        rows = selectors.result_list(actor=self.actor, run=run, only_bad=only_bad)
        page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page", "1"))
        context = {
            "space_id": space_id,
            "here": here,
            "query": "?only=bad" if only_bad else "?only=",
            **run_row(self.actor, run),
            "figures": figure_rows(selectors.run_means_now(actor=self.actor, run=run)),
            "views": [
                {"label": _("All questions"), "href": here, "current": not only_bad},
                {"label": _("What went wrong"), "href": f"{here}?only=bad", "current": only_bad},
            ],
            "heads": short_heads(),
            "results": [result_row(result, space_id) for result in page],
            "page": page,
            "others": [
                (
                    str(other.uid),
                    f"{other.created_at:%m-%d %H:%M} · {other.kb_name} · {answered_by(other)}" + (f" · {other.note}" if other.note else ""),
                )
                for other in selectors.comparable_runs(actor=self.actor, run=run)
            ],
            "crumbs": _crumbs(space_id, run.question_set.name),
        }
        return self.fragment_or_page("portal/evaluation_run.html", {"evaluation-run": "portal/_evaluation_run.html"}, context)


class RunStopView(PageView):
    actions = {"POST": "evaluation.manage"}

    def post(self, request: HttpRequest, space_id: int, run_id: uuid.UUID) -> HttpResponse:
        run = selectors.run_get(actor=self.actor, run_id=run_id)
        services.run_cancel(actor=self.actor, run=run)
        return go(request, reverse("evaluation-run", args=[space_id, run.uid]))


class RunDeleteView(DialogView):
    actions = {"GET": "evaluation.manage", "POST": "evaluation.manage"}
    template = "portal/_evaluation_delete.html"

    def get(self, request: HttpRequest, space_id: int, run_id: uuid.UUID) -> HttpResponse:
        return self.ask(selectors.run_get(actor=self.actor, run_id=run_id))

    def post(self, request: HttpRequest, space_id: int, run_id: uuid.UUID) -> HttpResponse:
        run = selectors.run_get(actor=self.actor, run_id=run_id)
        try:
            services.run_delete(actor=self.actor, run=run)
        except DomainError as error:
            return self.ask(run, error=str(error), status=409)
        return go(request, _home(space_id))

    def ask(self, run: Any, *, error: str = "", status: int = 200) -> HttpResponse:
        context = {
            "text": _("Its results go. The question set and the knowledge base stay."),
            "error": error,
            "action": self.request.path,
            "label": _("Delete the run"),
        }
        return self.show(_("Delete this run?"), context, status=status, back=reverse("evaluation-run", args=[run.space_id, run.uid]))


class CompareView(PageView):
    """What changed between an earlier run of the same set and this one."""

    actions = {"GET": "evaluation.manage"}

    def get(self, request: HttpRequest, space_id: int, run_id: uuid.UUID) -> HttpResponse:
        after = selectors.run_get(actor=self.actor, run_id=run_id)
        before = selectors.run_get(actor=self.actor, run_id=request.GET.get("with", ""))
        found = selectors.compare(actor=self.actor, before=before, after=after)
        context = {
            "space_id": space_id,
            "before": run_row(self.actor, before),
            "after": run_row(self.actor, after),
            "asked": found.asked,
            "figures": [
                {
                    "name": WORDS[name][0],
                    "before": number(was),
                    "after": number(now),
                    "change": f"{now - was:+.3f}",
                    "tone": "better" if now > was else "worse" if now < was else "same",
                }
                for name, (was, now) in found.figures.items()
            ],
            "parts": [
                {"title": _("Went worse"), "rows": [_changed(row) for row in found.worse]},
                {"title": _("Went better"), "rows": [_changed(row) for row in found.better]},
            ],
            "crumbs": _crumbs(space_id, _("Comparison")),
        }
        return self.page("portal/evaluation_compare.html", context)


def _changed(row: selectors.Difference) -> dict[str, Any]:
    return {
        "number": row.after.index + 1,
        "question": row.after.question.text,
        "figure": WORDS[row.figure][0],
        "before": number(row.before.metrics.get(row.figure)),
        "after": number(row.after.metrics.get(row.figure)),
        "answers": (row.before.answer, row.after.answer) if row.before.answer or row.after.answer else (),
        "found": ([hit["title"] for hit in row.before.found[:3]], [hit["title"] for hit in row.after.found[:3]]),
    }
