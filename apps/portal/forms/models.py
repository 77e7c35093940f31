"""Forms of models."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.llm.models import Model


class ModelForm(forms.Form):
    """Limits are checked by the service; the form only carries what was typed. An empty key keeps the stored one."""

    type = forms.ChoiceField(
        label=_("What it does"),
        required=False,
        choices=[
            (Model.Type.EMBEDDING, _("Embedding: finds by meaning")),
            (Model.Type.CHAT, _("Chat: writes answers and summaries")),
            (Model.Type.RERANK, _("Rerank: puts the best passages first")),
            (Model.Type.VISION, _("Vision: reads pictures")),
        ],
    )
    name = forms.CharField(label=_("Model"), required=False, help_text=_("As its server spells it, such as BAAI/bge-m3."))
    base_url = forms.CharField(label=_("Address"), required=False, help_text=_("Of the OpenAI-compatible API; it usually ends in /v1."))
    api_key = forms.CharField(label=_("API key"), required=False, widget=forms.PasswordInput)
    clear_key = forms.BooleanField(label=_("Remove the stored key"), required=False)
    display_name = forms.CharField(label=_("Name in the portal"), required=False, help_text=_("Empty: the name of the model."))
    query_prefix = forms.CharField(
        label=_("Before questions"), required=False, strip=False, help_text=_("Some models want it, such as “query: ” for E5.")
    )
    passage_prefix = forms.CharField(label=_("Before passages"), required=False, strip=False, help_text=_("Such as “passage: ” for E5."))
    batch_size = forms.IntegerField(label=_("Texts per call"), required=False)
    concurrency = forms.IntegerField(label=_("Calls at a time"), required=False)
    read_timeout_s = forms.FloatField(label=_("Seconds for an answer"), required=False)
    context_window = forms.IntegerField(
        label=_("Context window (tokens)"),
        required=False,
        help_text=_("What a chat model reads at once. 0: not known, then little is sent."),
    )
    connect_timeout_s = forms.FloatField(label=_("Seconds to connect"), required=False)

    def __init__(self, *args: Any, fixed: bool = False, **kwargs: Any) -> None:
        """`fixed`: a model that exists keeps its type."""
        super().__init__(*args, **kwargs)
        if fixed:
            del self.fields["type"]

    def values(self) -> dict[str, Any]:
        """What the services take."""
        data = {name: value for name, value in self.cleaned_data.items() if value is not None}
        key, clear = data.pop("api_key", ""), data.pop("clear_key", False)
        if key or clear:
            data["api_key"] = "" if clear and not key else key
        return data


SHOWN = tuple(name for name in ModelForm.base_fields if name not in ("api_key", "clear_key"))


def initial_of(row: Model | None) -> dict[str, Any]:
    """The values of a model, or those a new one begins with."""
    row = row or Model()
    return {name: getattr(row, name) for name in SHOWN}
