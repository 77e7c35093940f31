"""The models of a space: those of the deployment, and endpoints that admins add, test and remove."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import allowed
from apps.ingestion.selectors import stale_bases
from apps.llm.failures import failure_of
from apps.llm.models import Model
from apps.llm.selectors import Entry, model_get, model_list
from apps.llm.services import Tested, model_create, model_delete, model_test, model_update, model_users
from apps.portal.forms.models import ModelForm, initial_of
from apps.portal.views.forms import put_error
from apps.portal.web import DialogView, PageView, done


class ModelsPageView(PageView):
    actions = {"GET": "model.list"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        may_write = allowed(self.actor, "model.write")
        context = {
            "rows": [_row(entry, may_write) for entry in model_list(actor=self.actor)],
            "stale": [
                (base.name, reverse("base-settings", args=[space_id, base.uid]) + "#vectors") for base in stale_bases(actor=self.actor)
            ],
            "may_write": may_write,
            "space_id": space_id,
        }
        return self.fragment_or_page("portal/models.html", {"models": "portal/_models.html"}, context)


def _row(entry: Entry, may_write: bool) -> dict[str, Any]:
    row = entry.row
    failure = failure_of(row.test_error) if row is not None and row.test_error else None
    state, word = "completed", _("Answers")
    if failure is not None:
        state, word = "stalled", str(failure.word)
    elif row is not None and row.tested_at is None:
        state, word = "unknown", _("Not tested")
    elif row is None and not entry.dimension:  # the endpoint of the environment
        state, word = "unknown", _("Not used yet")
    return {
        "entry": entry,
        "kind": Model.Type(entry.type).label,
        "where": (row.base_url if may_write else _("An endpoint of this space")) if row is not None else _where(entry),
        "state": state,
        "word": word,
        "failure": failure,
    }


def _where(entry: Entry) -> str:
    return _("On this machine; nothing leaves it") if entry.is_local else _("The endpoint of this portal, set by its operator")


def _own(entry: Entry) -> Model:
    if entry.row is None:
        raise NotFound(_("Model not found."))
    return entry.row


class _FormView(DialogView):
    template = "portal/_model_form.html"

    def form(self, form: ModelForm, *, row: Model | None = None, status: int = 200) -> HttpResponse:
        users = model_users(actor=self.actor, model_id=str(row.uid)) if row is not None else []
        advanced = any(
            form[name].errors
            for name in ("query_prefix", "passage_prefix", "batch_size", "concurrency", "read_timeout_s", "context_window")
        )
        makes_vectors = row is None or row.type == Model.Type.EMBEDDING
        context = {
            "form": form,
            "model": row,
            "makes_vectors": makes_vectors,
            "users": users,
            "open_more": advanced,
            "space_id": self.actor.space_id,
        }
        title = _("Change “%(name)s”") % {"name": row.title} if row is not None else _("New model")
        return self.show(title, context, status=status, back=reverse("models-page", args=[self.actor.space_id]), wide=True)

    def tested(self, row: Model, result: Tested) -> HttpResponse:
        """Saved is saved; whether it answers is said beside it."""
        text, kind, detail = told(row, result)
        return self.done(text, back=reverse("models-page", args=[self.actor.space_id]), kind=kind, detail=detail)


class ModelNewView(_FormView):
    actions = {"GET": "model.write", "POST": "model.write"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        return self.form(ModelForm(initial=initial_of(None)))

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        form = ModelForm(request.POST)
        if not form.is_valid():
            return self.form(form, status=422)
        try:
            row = model_create(actor=self.actor, values=form.values())
        except InvalidInput as error:
            put_error(form, error)
            return self.form(form, status=422)
        return self.tested(row, model_test(actor=self.actor, model=row))


class ModelEditView(_FormView):
    actions = {"GET": "model.write", "POST": "model.write"}

    def get(self, request: HttpRequest, space_id: int, model_id: uuid.UUID) -> HttpResponse:
        row = _own(model_get(actor=self.actor, model_id=str(model_id)))
        return self.form(ModelForm(initial=initial_of(row), fixed=True), row=row)

    def post(self, request: HttpRequest, space_id: int, model_id: uuid.UUID) -> HttpResponse:
        row = _own(model_get(actor=self.actor, model_id=str(model_id)))
        form = ModelForm(request.POST, fixed=True)
        if not form.is_valid():
            return self.form(form, row=row, status=422)
        try:
            row = model_update(actor=self.actor, model=row, values=form.values())
        except InvalidInput as error:
            put_error(form, error)
            return self.form(form, row=row, status=422)
        return self.tested(row, model_test(actor=self.actor, model=row))


class ModelTestView(PageView):
    """A real call; the row shows what came of it."""

    actions = {"POST": "model.write"}

    def post(self, request: HttpRequest, space_id: int, model_id: uuid.UUID) -> HttpResponse:
        row = _own(model_get(actor=self.actor, model_id=str(model_id)))
        text, kind, detail = told(row, model_test(actor=self.actor, model=row))
        return done(request, text, back=reverse("models-page", args=[space_id]), kind=kind, detail=detail)


class ModelDeleteView(DialogView):
    actions = {"GET": "model.write", "POST": "model.write"}
    template = "portal/_model_delete.html"

    def get(self, request: HttpRequest, space_id: int, model_id: uuid.UUID) -> HttpResponse:
        return self._ask(_own(model_get(actor=self.actor, model_id=str(model_id))))

    def post(self, request: HttpRequest, space_id: int, model_id: uuid.UUID) -> HttpResponse:
        row = _own(model_get(actor=self.actor, model_id=str(model_id)))
        try:
            model_delete(actor=self.actor, model=row)
        except InvalidInput as error:
            return self._ask(row, error=str(error), status=422)
        return self.done(_("“%(name)s” was removed.") % {"name": row.title}, back=reverse("models-page", args=[space_id]))

    def _ask(self, row: Model, *, error: str = "", status: int = 200) -> HttpResponse:
        context = {
            "model": row,
            "users": model_users(actor=self.actor, model_id=str(row.uid)),
            "error": error,
            "space_id": self.actor.space_id,
        }
        title = _("Remove “%(name)s”?") % {"name": row.title}
        return self.show(title, context, status=status, back=reverse("models-page", args=[self.actor.space_id]))


def told(row: Model, result: Tested) -> tuple[str, str, str]:
    """(what came of a test, how bad it is, what to do)."""
    if not result.ok:
        words = failure_of(result.code)
        return f"{row.title}{_(': ')}{words.why}", "warning", str(words.next)
    if row.type != Model.Type.EMBEDDING:
        values: dict[str, object] = {"name": row.title, "ms": f"{result.took_ms:,.0f}", "said": result.said}
        if row.type == Model.Type.RERANK:
            return _("%(name)s answers in %(ms)s ms. Scores of a fitting and of another text: %(said)s.") % values, "success", ""
        if not result.said:
            return _("%(name)s answers in %(ms)s ms, but without words.") % values, "warning", ""
        return _("%(name)s answers in %(ms)s ms: “%(said)s”") % values, "success", ""
    values = {"name": row.title, "dimension": result.dimension, "ms": f"{result.took_ms:,.0f}"}
    text = _("%(name)s answers: vectors of %(dimension)d values in %(ms)s ms.") % values
    if not result.changed:
        return text, "success", ""
    return text, "warning", _("It gives other vectors than before: re-index the knowledge bases that use it.")
