"""Folders as in a file manager. A folder is where documents say they lie: an empty one exists in the page alone, until one does."""

from __future__ import annotations

import json
import uuid

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.common.errors import DomainError
from apps.common.text import folder_path
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get, folder_count, folder_paths, folder_tree
from apps.knowledge.services import folder_drop, folder_rename
from apps.portal import links
from apps.portal.document_query import ListQuery
from apps.portal.folder_tree import level_nodes
from apps.portal.views.forms import put_error
from apps.portal.web import DialogView, PageView, go, is_htmx


class FolderForm(forms.Form):
    source = forms.CharField(widget=forms.HiddenInput, required=False)
    target = forms.CharField(label=gettext_lazy("Path"), required=False)


class NewFolderForm(forms.Form):
    parent = forms.CharField(widget=forms.HiddenInput, required=False)
    name = forms.CharField(label=gettext_lazy("Name"), required=False)


class FolderLevelView(PageView):
    """The folders below one, when its branch of the tree opens."""

    actions = {"GET": "folder.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        start = request.GET.get("start", "0")
        first = int(start[:9]) if start.isascii() and start.isdigit() else 0
        tree = folder_tree(actor=self.actor, base=base)
        path = folder_path(request.GET.get("path", ""))
        nodes = level_nodes(base, ListQuery.read(request.GET), links.base_url(base), tree, path, first)
        return render(request, "components/tree_nodes.html", {"nodes": nodes})


class FolderNewView(DialogView):
    """Opens the new folder. The browser keeps it in sight until a document lies there; nothing is stored."""

    actions = {"GET": "folder.update", "POST": "folder.update"}
    template = "portal/_folder_new.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        parent = folder_path(request.GET.get("folder", ""))
        return self._form(base_get(actor=self.actor, kb_id=kb_id), NewFolderForm(initial={"parent": parent}), parent)

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = NewFolderForm(request.POST)
        if not form.is_valid():
            return self._form(base, form, "", status=422)
        parent, name = folder_path(form.cleaned_data["parent"]), form.cleaned_data["name"].strip()
        wanted = [part for part in f"{parent}/{name}".replace("\\", "/").split("/") if part.strip(" .")]
        path = folder_path("/".join(wanted))
        if not folder_path(name):
            form.add_error("name", _("Give the folder a name."))
        elif path.count("/") + 1 < len(wanted):
            form.add_error("name", _("At most 16 folders can lie inside each other."))
        elif folder_count(actor=self.actor, base=base, path=path):
            form.add_error("name", _("There is a folder of this name here already."))
        if form.errors:
            return self._form(base, form, parent, status=422)
        response = go(request, links.base_url(base, folder=path))
        if is_htmx(request):
            response["HX-Trigger"] = json.dumps({"kb:folder-made": {"path": path}})
        return response

    def _form(self, base: KnowledgeBase, form: NewFolderForm, parent: str, status: int = 200) -> HttpResponse:
        context = {"base": base, "form": form, "parent": parent.replace("/", " / "), "space_id": base.space_id}
        return self.show(_("New folder"), context, status=status, back=links.base_url(base))


class FolderRenameView(DialogView):
    """The new path may name another place: then the folder moves with everything below it. A folder that is there already takes it
    in only when that was said and agreed to (`merge`)."""

    actions = {"GET": "folder.update", "POST": "folder.update"}
    template = "portal/_folder_rename.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        source = folder_path(request.GET.get("folder", ""))
        return self._form(base, source, FolderForm(initial={"source": source, "target": source}))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = FolderForm(request.POST)
        if not form.is_valid():
            return self._form(base, folder_path(request.POST.get("source", "")), form, status=422)
        source, target = folder_path(form.cleaned_data["source"]), folder_path(form.cleaned_data["target"])
        elsewhere = bool(source and target) and source != target and not target.startswith(f"{source}/")
        if elsewhere and request.POST.get("merge") != "1" and (inside := folder_count(actor=self.actor, base=base, path=target)):
            return self._form(base, source, form, status=422, merges=inside, target=target)
        try:
            folder_rename(actor=self.actor, base=base, source=form.cleaned_data["source"], target=form.cleaned_data["target"])
        except DomainError as error:
            put_error(form, error, {"to": "target", "from": "target"})
            return self._form(base, source, form, status=422)
        response = go(request, links.base_url(base, folder=target))
        if is_htmx(request):
            # Not "target": htmx takes that word of an event for the selector of the element to send it to.
            response["HX-Trigger"] = json.dumps({"kb:folder-moved": {"from": source, "to": target}})
        return response

    def _form(
        self, base: KnowledgeBase, source: str, form: FolderForm, status: int = 200, merges: int = 0, target: str = ""
    ) -> HttpResponse:
        count = folder_count(actor=self.actor, base=base, path=source) if source else 0
        context = {
            "base": base,
            "form": form,
            "folders": folder_paths(actor=self.actor, base=base),
            "count_text": ngettext("%(count)d document moves along.", "%(count)d documents move along.", count) % {"count": count},
            "merges": merges,
            "target": target.replace("/", " / "),
            "space_id": base.space_id,
        }
        title = _("The folder exists already") if merges else _("Rename or move the folder")
        return self.show(title, context, status=status, back=links.base_url(base))


class FolderDeleteView(DialogView):
    """Refused while documents lie in it; an empty folder is only a memory of the browser, which forgets it."""

    actions = {"GET": "folder.update", "POST": "folder.update"}
    template = "portal/_folder_delete.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        return self._ask(base_get(actor=self.actor, kb_id=kb_id), folder_path(request.GET.get("folder", "")))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        path = folder_path(request.POST.get("folder", ""))
        try:
            folder_drop(actor=self.actor, base=base, path=path)
        except DomainError as error:
            return self._ask(base, path, error=str(error), status=422)
        above = path.rpartition("/")[0]
        response = go(request, links.base_url(base, folder=above) if above else links.base_url(base))
        if is_htmx(request):
            response["HX-Trigger"] = json.dumps({"kb:folder-gone": {"path": path}})
        return response

    def _ask(self, base: KnowledgeBase, path: str, *, error: str = "", status: int = 200) -> HttpResponse:
        count = folder_count(actor=self.actor, base=base, path=path) if path else 0
        context = {"base": base, "folder": path, "count": count, "error": error, "space_id": base.space_id}
        context["inside_href"] = links.base_url(base, folder=path)
        title = _("Delete the folder “%(name)s”?") % {"name": path.rpartition("/")[2]}
        return self.show(title, context, status=status, back=links.base_url(base))
