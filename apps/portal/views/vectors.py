"""The vectors of a base: which serve, changing the model by a re-index, stopping one."""

from __future__ import annotations

import uuid

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.errors import Conflict, InvalidInput
from apps.ingestion.selectors import reindex_plan
from apps.ingestion.services import reindex_cancel, reindex_start
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get, has_documents
from apps.knowledge.services import base_settings_update
from apps.llm.models import Model
from apps.llm.selectors import entry_of, model_list
from apps.llm.services import embedding_model_known
from apps.portal.vectors import plan_lines, vectors_context
from apps.portal.views.forms import put_error
from apps.portal.web import DialogView, PageView, done


def _back(base: KnowledgeBase) -> str:
    return reverse("base-settings", args=[base.space_id, base.uid]) + "#vectors"


class BaseVectorsView(PageView):
    """The part of the settings page about vectors, as it is now."""

    actions = {"GET": "base.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self.page("portal/_vectors.html", vectors_context(self.actor, base))


class ModelChoiceForm(forms.Form):
    model = forms.ChoiceField(label=gettext_lazy("Embedding model"), required=False)


class ReindexDialogView(DialogView):
    """Choose a model, see what the change takes, start it. A base without documents just takes the other model."""

    actions = {"GET": "base.reindex", "POST": "base.reindex"}
    template = "portal/_reindex.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        model_id = request.GET.get("model", base.embedding_model_id)
        if not embedding_model_known(model_id):
            model_id = ""
        return self._ask(base, model_id, ModelChoiceForm(initial={"model": model_id}))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        model_id = request.POST.get("model", "")
        try:
            if has_documents(actor=self.actor, base=base):
                reindex_start(actor=self.actor, base=base, model_id=model_id)
                text = _("The re-index has started. The present vectors serve until it is done.")
            else:
                base_settings_update(actor=self.actor, base=base, values={"embeddingModelId": model_id})
                text = _("The embedding model is changed.")
        except (InvalidInput, Conflict) as error:
            form = ModelChoiceForm({"model": model_id})
            form.fields["model"].choices = self._choices()  # type: ignore[attr-defined]
            put_error(form, error, {"embedding_model_id": "model", "embeddingModelId": "model"})
            return self._ask(base, model_id if embedding_model_known(model_id) else "", form, status=422)
        return self.done(text, back=_back(base))

    def _choices(self) -> list[tuple[str, str]]:
        default = entry_of("")
        own = _("The portal's own: %(name)s") % {"name": default.title} if default is not None else _("The portal's own: none")
        return [("", own), *((entry.id, entry.title) for entry in model_list(actor=self.actor, kind=Model.Type.EMBEDDING))]

    def _ask(self, base: KnowledgeBase, model_id: str, form: ModelChoiceForm, status: int = 200) -> HttpResponse:
        form.fields["model"].choices = self._choices()  # type: ignore[attr-defined]
        has = has_documents(actor=self.actor, base=base)
        plan = plan_lines(reindex_plan(actor=self.actor, base=base, model_id=model_id)) if has else []
        context = {"base": base, "form": form, "plan": plan, "space_id": base.space_id, "has_documents": has}
        return self.show(_("Embedding model of “%(name)s”") % {"name": base.name}, context, status=status, back=_back(base))


class ReindexStopView(PageView):
    actions = {"POST": "base.reindex"}

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        try:
            stopped = reindex_cancel(actor=self.actor, base=base)
        except Conflict as error:
            return done(request, str(error), back=_back(base), kind="warning")
        text = _("Stopped. The vectors that served go on serving.") if stopped else _("No re-index is under way.")
        return done(request, text, back=_back(base))
