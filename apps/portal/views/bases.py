"""Settings of a base: name, how documents are split, how they are found; with a preview of the splitting."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.policy import allowed
from apps.faq.selectors import index_mode, question_mode
from apps.ingestion.selectors import CHUNKING_DEFAULTS, chunk_preview
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get
from apps.knowledge.services import base_settings_update, base_update
from apps.llm.models import Model
from apps.llm.selectors import model_list
from apps.portal import samples
from apps.portal.base_frame import base_frame
from apps.portal.vectors import vectors_context
from apps.portal.views.forms import put_error
from apps.portal.web import PageView

STRATEGIES = (
    ("auto", gettext_lazy("Automatic: by headings when there are enough of them")),
    ("heading", gettext_lazy("By headings")),
    ("heuristic", gettext_lazy("By numbered sections and layout")),
    ("recursive", gettext_lazy("By separators and size only")),
)
INDEX_MODES = (
    ("question_answer", gettext_lazy("Their questions and their answers")),
    ("question_only", gettext_lazy("Their questions alone")),
)
QUESTION_MODES = (
    ("combined", gettext_lazy("Together: one passage an entry, quick and small")),
    ("separate", gettext_lazy("Each by itself: finer where an entry has many questions")),
)
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
    "text": "sample",
}


class ChunkingForm(forms.Form):
    strategy = forms.ChoiceField(label=gettext_lazy("Way of splitting"), choices=STRATEGIES)
    chunk_size = forms.IntegerField(
        label=gettext_lazy("Size"), min_value=0, max_value=100_000, required=False, help_text=gettext_lazy("Characters of a passage.")
    )
    chunk_overlap = forms.IntegerField(
        label=gettext_lazy("Overlap"),
        min_value=0,
        max_value=100_000,
        required=False,
        help_text=gettext_lazy("Characters that the next passage repeats."),
    )
    separators = forms.CharField(
        label=gettext_lazy("Separators"),
        widget=forms.Textarea,
        required=False,
        strip=False,
        help_text=gettext_lazy("One per line, strongest first; \\n stands for a line break."),
    )
    token_limit = forms.IntegerField(
        label=gettext_lazy("Token limit"),
        min_value=0,
        max_value=1_000_000,
        required=False,
        help_text=gettext_lazy("No passage gets more tokens than this. 0: only characters count."),
    )
    enable_parent_child = forms.BooleanField(label=gettext_lazy("Find small passages, show the larger one around them"), required=False)
    parent_chunk_size = forms.IntegerField(label=gettext_lazy("Size of the larger"), min_value=0, max_value=100_000, required=False)
    child_chunk_size = forms.IntegerField(label=gettext_lazy("Size of the small"), min_value=0, max_value=100_000, required=False)

    def config(self, kept: dict[str, Any] | None = None) -> dict[str, Any]:
        """The contract's `chunking_config`; members this form does not show stay as they are."""
        values = self.cleaned_data
        sizes = ("chunk_size", "chunk_overlap", "token_limit", "parent_chunk_size", "child_chunk_size")
        return {
            **(kept or {}),
            **{name: values.get(name) or 0 for name in sizes},
            "strategy": values["strategy"],
            "separators": [unescape(line) for line in values["separators"].replace("\r", "").split("\n") if line],
            "enable_parent_child": values["enable_parent_child"],
        }


class SettingsForm(ChunkingForm):
    index_mode = forms.ChoiceField(label=gettext_lazy("Entries are found by"), choices=INDEX_MODES, required=False)
    question_index_mode = forms.ChoiceField(label=gettext_lazy("Questions of an entry"), choices=QUESTION_MODES, required=False)
    name = forms.CharField(label=gettext_lazy("Name"), required=False, strip=False)
    description = forms.CharField(label=gettext_lazy("Description"), widget=forms.Textarea, required=False, strip=False)
    words = forms.BooleanField(label=gettext_lazy("Words"), required=False)
    vectors = forms.BooleanField(label=gettext_lazy("Meaning (vectors)"), required=False)
    summary_model = forms.ChoiceField(label=gettext_lazy("Language model"), required=False)
    questions = forms.BooleanField(label=gettext_lazy("Write questions that each passage answers"), required=False)
    question_count = forms.IntegerField(
        label=gettext_lazy("Questions a passage"), min_value=1, max_value=10, required=False, help_text=gettext_lazy("1 to 10.")
    )
    question_instructions = forms.CharField(
        label=gettext_lazy("What to mind when writing them"), widget=forms.Textarea, required=False, strip=False
    )

    def __init__(self, *args: Any, models: list[tuple[str, str]], is_faq: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["strategy"].required = not is_faq  # entries are not split
        self.fields["summary_model"].choices = models  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if values.get("questions") and not values.get("summary_model") and "summary_model" not in self.errors:
            self.add_error("summary_model", _("Questions need a language model. Choose one, or switch the questions off."))
        return values

    def enrichment(self) -> dict[str, Any]:
        """What `base_settings_update` takes."""
        values = self.cleaned_data
        questions = {
            "enabled": values["questions"],
            "question_count": values.get("question_count") or 3,
            "custom_instructions": values["question_instructions"],
        }
        return {"llmModelId": values["summary_model"], "options": {"question_generation_config": questions}}


def chat_choices(actor: Actor, base: KnowledgeBase) -> list[tuple[str, str]]:
    """The chat models of the space, and the one chosen already even when the catalogue has it no more."""
    found = [("", _("None")), *((entry.id, entry.title) for entry in model_list(actor=actor, kind=Model.Type.CHAT))]
    kept = base.summary_model_id
    return found if any(model_id == kept for model_id, _title in found) else [*found, (kept, _("A model that is gone"))]


class PreviewForm(ChunkingForm):
    sample = forms.CharField(required=False, strip=False)


def escape(separator: str) -> str:
    return separator.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def unescape(line: str) -> str:
    return line.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")


def initial_of(base: KnowledgeBase) -> dict[str, Any]:
    """The form's values; sizes that say "the default" show the default."""
    config, strategy = base.chunking_config or {}, base.indexing_strategy or {}
    sized = bool(config.get("chunk_size"))
    known = {name for name, _label in STRATEGIES}
    way = config.get("strategy") or ("recursive" if config.get("strategy") == "" else "auto")
    questions = base.options.get("question_generation_config") or {}
    return {
        "index_mode": index_mode(base),
        "question_index_mode": question_mode(base),
        "summary_model": base.summary_model_id,
        "questions": bool(questions.get("enabled")),
        "question_count": questions.get("question_count", 3),
        "question_instructions": questions.get("custom_instructions", ""),
        "name": base.name,
        "description": base.description,
        "strategy": way if way in known else "recursive",
        "chunk_size": config.get("chunk_size") or CHUNKING_DEFAULTS.chunk_size,
        "chunk_overlap": config.get("chunk_overlap", 0) if sized else config.get("chunk_overlap") or CHUNKING_DEFAULTS.chunk_overlap,
        "separators": "\n".join(escape(each) for each in config.get("separators") or CHUNKING_DEFAULTS.separators),
        "token_limit": config.get("token_limit") or 0,
        "enable_parent_child": bool(config.get("enable_parent_child")),
        "parent_chunk_size": config.get("parent_chunk_size") or CHUNKING_DEFAULTS.parent_chunk_size,
        "child_chunk_size": config.get("child_chunk_size") or CHUNKING_DEFAULTS.child_chunk_size,
        "words": strategy.get("keyword_enabled", True),
        "vectors": strategy.get("vector_enabled", True),
    }


class BaseSettingsView(PageView):
    """Admins change; everybody else reads the same page and is told why."""

    actions = {"GET": "base.read", "POST": "base.update"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self._page(base, SettingsForm(initial=initial_of(base), models=chat_choices(self.actor, base)))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        is_faq = base.type == KnowledgeBase.Type.FAQ
        form = SettingsForm(request.POST, models=chat_choices(self.actor, base), is_faq=is_faq)
        if not form.is_valid():
            return self._page(base, form, status=422)
        values = form.cleaned_data
        flags = {**(base.indexing_strategy or {}), "keyword_enabled": values["words"], "vector_enabled": values["vectors"]}
        if is_faq:
            return self._save_faq(base, form, flags)
        config = {"chunking_config": form.config(base.chunking_config), "indexing_strategy": flags}
        try:
            base_update(actor=self.actor, base=base, name=values["name"], description=values["description"], config=config)
        except DomainError as error:
            put_error(form, error, NAMES)
            return self._page(base, form, status=422)
        try:
            base_settings_update(actor=self.actor, base=base, values=form.enrichment())
        except DomainError as error:
            put_error(form, error, NAMES)
            form.add_error(None, _("Saved in part: name, ways of finding and splitting are saved, models and questions are not."))
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
