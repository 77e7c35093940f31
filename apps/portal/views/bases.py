"""Settings of a base: name, how documents are split, how they are found; with a preview of the splitting."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.policy import allowed
from apps.ingestion.selectors import chunk_preview
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get
from apps.knowledge.services import base_settings_update, base_update
from apps.portal import samples
from apps.portal.base_frame import base_frame
from apps.portal.forms.base_settings import ChunkingForm, PreviewForm, SettingsForm, settings_form
from apps.portal.vectors import vectors_context
from apps.portal.views.forms import put_error
from apps.portal.web import PageView

SHOWN = 60
#: Names the splitter and the service give their fields -> names in this form.
NAMES = {
    "chunking_config": "chunk_size",
    "chunking_config.chunk_overlap": "chunk_overlap",
    "chunking_config.child_chunk_size": "child_chunk_size",
    "chunking_config.strategy": "strategy",
    "indexing_strategy": "words",
    "llmModelId": "summary_model",
    "question_generation_config.custom_instructions": "question_instructions",
    "vlm_config.custom_instructions": "picture_instructions",
    "vlm_config.model_id": "vision_model",
    "text": "sample",
}


class BaseSettingsView(PageView):
    """Admins change; everybody else reads the same page and is told why."""

    actions = {"GET": "base.read", "POST": "base.update"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self._page(base, settings_form(self.actor, base))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = settings_form(self.actor, base, request.POST)
        if not form.is_valid():
            return self._page(base, form, status=422)
        values = form.cleaned_data
        flags = {**(base.indexing_strategy or {}), "keyword_enabled": values["words"], "vector_enabled": values["vectors"]}
        if base.type == KnowledgeBase.Type.FAQ:
            return self._save_faq(base, form, flags)
        flags["wiki_enabled"] = values["wiki"]
        splitting = form.config(base.chunking_config)
        splitting["parser_engine_rules"] = form.rules(splitting.get("parser_engine_rules") or [])
        config = {"chunking_config": splitting, "indexing_strategy": flags}
        try:
            base_update(actor=self.actor, base=base, name=values["name"], description=values["description"], config=config)
        except DomainError as error:
            put_error(form, error, NAMES)
            return self._page(base, form, status=422)
        try:
            base_settings_update(actor=self.actor, base=base, values=form.enrichment(base))
        except DomainError as error:
            put_error(form, error, NAMES)
            form.add_error(
                None,
                _("Saved in part: name, ways of finding and splitting are saved, models, pictures, tags, questions and weights are not."),
            )
            return self._page(base_get(actor=self.actor, kb_id=kb_id), form, status=422)
        messages.success(request, _("Settings saved. Documents that are here already keep their passages until they are parsed again."))
        return redirect(reverse("base-settings", args=[space_id, base.uid]))

    def _save_faq(self, base: KnowledgeBase, form: SettingsForm, flags: dict[str, Any]) -> HttpResponse:
        """An FAQ base has neither splitting nor enrichment; what its entries are found by instead."""
        values = form.cleaned_data
        modes = {name: values[name] for name in ("index_mode", "question_index_mode") if values.get(name)}
        config = {"chunking_config": base.chunking_config, "indexing_strategy": flags, "faq_config": modes}
        try:
            base_update(actor=self.actor, base=base, name=values["name"], description=values["description"], config=config)
        except DomainError as error:
            put_error(form, error, NAMES)
            return self._page(base, form, status=422)
        messages.success(self.request, _("Settings saved."))
        return redirect(reverse("base-settings", args=[base.space_id, base.uid]))

    def _page(self, base: KnowledgeBase, form: SettingsForm, status: int = 200) -> HttpResponse:
        may_edit = allowed(self.actor, "base.update", base)
        if not may_edit:
            for field in form.fields.values():
                field.disabled = True
        frame = base_frame(self.actor, base, "settings")
        sample = samples.sample_text(get_language() or "")
        context = {
            **frame,
            "crumbs": [*frame["crumbs"], {"label": _("Settings")}],
            "form": form,
            "may_edit": may_edit,
            "may_delete": allowed(self.actor, "base.delete", base),
            "sample": sample,
            "is_faq": base.type == KnowledgeBase.Type.FAQ,
            "space_id": base.space_id,
            **vectors_context(self.actor, base),
            **_preview_context(self.actor, form if may_edit and form.is_bound else None, base, sample),
        }
        return self.page("portal/base_settings.html", context, status=status)


class ChunkPreviewView(PageView):
    """How the settings in the form, saved or not, would split the text beside them."""

    actions = {"POST": "chunk.preview"}

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = PreviewForm(request.POST)
        return self.page("portal/_chunk_preview.html", _preview_context(self.actor, form, base, request.POST.get("sample", "")))


def _preview_context(actor: Actor, form: ChunkingForm | None, base: KnowledgeBase, text: str) -> dict[str, Any]:
    """Context of `portal/_chunk_preview.html`; an invalid form shows what is wrong instead of passages."""
    if form is not None and not form.is_valid():
        label, faults = next(iter(form.errors.items()))
        name = form.fields[label].label if label in form.fields else ""
        return {"preview_error": f"{name}: {faults[0]}" if name else faults[0]}
    config = form.config() if form is not None else dict(base.chunking_config or {})
    try:
        result = chunk_preview(actor=actor, text=text, config=config)
    except DomainError as error:
        return {"preview_error": _preview_fault(error)}
    return {"preview": result, "preview_chunks": result["chunks"][:SHOWN], "preview_more": max(0, result["stats"]["count"] - SHOWN)}


def _preview_fault(error: DomainError) -> str:
    """The splitter speaks to programs; here is what it means for a person."""
    if error.field == "text":
        return _("The sample is longer than 65,536 characters.") if "limit" in error.details else _("Write or paste a text to split.")
    if error.field == "chunk_overlap":
        return _("The overlap must be smaller than the passage size.")
    if error.code == "timeout":
        return _("Splitting this took too long. Use a shorter sample.")
    return _("These settings cannot be used: %(error)s") % {"error": error}
