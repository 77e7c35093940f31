"""Forms of the wiki."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from apps.portal.wiki.frame import TYPE_WORDS
from apps.wiki.models import WikiPage
from apps.wiki.selectors import MANUAL
from apps.wiki.services import PageChange

MAX_CONTENT = 1_000_000


class PageForm(forms.Form):
    """A page as it is written. Other names stand one a line; `version` is the one the writing began with."""

    title = forms.CharField(label=_("Title"), required=False, strip=False)
    slug = forms.CharField(label=pgettext_lazy("of a wiki page", "Address"), required=False)
    folder = forms.CharField(label=_("Folder"), required=False)
    page_type = forms.CharField(label=_("Type"), required=False)
    status = forms.CharField(label=_("Status"), required=False)
    aliases = forms.CharField(label=_("Other names"), widget=forms.Textarea, required=False)
    summary = forms.CharField(label=_("Summary"), widget=forms.Textarea, required=False)
    content = forms.CharField(label=_("Text"), widget=forms.Textarea, required=False, strip=False)
    note = forms.CharField(label=_("What you changed"), required=False)
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(line for line in self.cleaned_data["aliases"].splitlines() if line.strip())

    @property
    def kind(self) -> str:
        raw = self.cleaned_data["page_type"]
        return "" if raw == MANUAL else str(raw)

    def change(self) -> PageChange:
        values = self.cleaned_data
        return PageChange(
            title=values["title"],
            content=values["content"],
            summary=values["summary"],
            page_type=self.kind,
            status=values["status"] or WikiPage.Status.PUBLISHED,
            aliases=self.names,
        )


def type_options() -> list[dict[str, Any]]:
    return [{"value": kind or MANUAL, "label": label} for kind, label in TYPE_WORDS.items()]


def status_options() -> list[dict[str, Any]]:
    return [{"value": status.value, "label": status.label} for status in WikiPage.Status]
