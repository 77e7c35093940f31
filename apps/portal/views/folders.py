"""Renaming and moving folders. A folder is where documents say they lie; an empty one does not exist."""

from __future__ import annotations

import uuid

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.common.errors import DomainError
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import DocumentFilters, base_get, document_list, folder_paths
from apps.knowledge.services import folder_rename
from apps.portal import links
from apps.portal.views.forms import put_error
from apps.portal.web import DialogView, go


class FolderForm(forms.Form):
    source = forms.CharField(widget=forms.HiddenInput, required=False)
    target = forms.CharField(label=gettext_lazy("Path"), required=False)


class FolderRenameView(DialogView):
    """The new path may name another place: then the folder moves with everything below it."""

    actions = {"GET": "folder.update", "POST": "folder.update"}
    template = "portal/_folder_rename.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        source = request.GET.get("folder", "")
        return self._form(base, source, FolderForm(initial={"source": source, "target": source}))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = FolderForm(request.POST)
        if not form.is_valid():
            return self._form(base, str(form.cleaned_data.get("source", "")), form, status=422)
        source = form.cleaned_data["source"]
        try:
            folder_rename(actor=self.actor, base=base, source=source, target=form.cleaned_data["target"])
        except DomainError as error:
            put_error(form, error, {"to": "target", "from": "target"})
            return self._form(base, source, form, status=422)
        return go(request, links.base_url(base, folder=form.cleaned_data["target"]))

    def _form(self, base: KnowledgeBase, source: str, form: FolderForm, status: int = 200) -> HttpResponse:
        inside = DocumentFilters(folder_path=source, folder_recursive=True)
        count = document_list(actor=self.actor, base=base, filters=inside).count()
        context = {
            "base": base,
            "form": form,
            "folders": folder_paths(actor=self.actor, base=base),
            "count_text": ngettext("%(count)d document moves along.", "%(count)d documents move along.", count) % {"count": count},
            "space_id": base.space_id,
        }
        return self.show(_("Rename or move the folder"), context, status=status, back=links.base_url(base))
