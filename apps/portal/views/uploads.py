"""What comes into a base besides dropped files: addresses and Markdown written here; and how far uploads are."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.errors import Conflict, DomainError, InvalidInput
from apps.knowledge.models import Document, KnowledgeBase, ParseStatus
from apps.knowledge.selectors import base_get, document_get, documents_batch, folder_paths
from apps.knowledge.services import Arrival, document_import_url, document_rewrite, document_write
from apps.portal import links
from apps.portal.base_frame import base_frame
from apps.portal.document_rows import Row, rows_of
from apps.portal.views.forms import put_error, sent_before
from apps.portal.web import DialogView, PageView, go

MAX_CONTENT = 200_000


class UploadStatesView(PageView):
    """`?ids=a,b`: what became of files that were sent, for the upload tray: {id: {state, text, href}}."""

    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        ids = [name for name in request.GET.get("ids", "").split(",") if name][:200]
        documents = documents_batch(actor=self.actor, ids=ids, base=base) if ids else []
        return JsonResponse({str(row.document.uid): _state_of(row) for row in rows_of(self.actor, documents)})


def _state_of(row: Row) -> dict[str, str]:
    status = row.document.parse_status
    final = "failed" if status == ParseStatus.FAILED else "" if row.reading else "done"
    parts = {"failed": [row.note], "done": [row.word], "": [row.stage or row.word, row.done_text]}[final]
    text = " · ".join(part for part in parts if part)
    return {"state": final, "text": text, "href": row.href}


class AddressForm(forms.Form):
    url = forms.CharField(label=gettext_lazy("Address"), required=False)
    title = forms.CharField(label=gettext_lazy("Title"), required=False)
    folder = forms.CharField(label=gettext_lazy("Folder"), required=False)


class UrlImportView(DialogView):
    actions = {"GET": "document.create", "POST": "document.create"}
    template = "portal/_url_import.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self._form(base, AddressForm(initial={"folder": request.GET.get("folder", "")}))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = AddressForm(request.POST)
        if not form.is_valid():
            return self._form(base, form, status=422)
        values = form.cleaned_data
        if not values["url"]:
            form.add_error("url", _("Enter the address of a page or a file."))
            return self._form(base, form, status=422)
        arrival = Arrival(folder_path=values["folder"])
        try:
            stored = document_import_url(actor=self.actor, base=base, url=values["url"], title=values["title"], arrival=arrival)
        except DomainError as error:
            put_error(form, error, {"folder_path": "folder", "fileName": "url", "file_type": "url"})
            return self._form(base, form, status=422)
        if stored.duplicate:
            form.add_error("url", _("This address is in the knowledge base already."))
            return self._form(base, form, existing=stored.document, status=422)
        return self.done(_("The address is being fetched."), back=links.base_url(base), kind="info")

    def _form(self, base: KnowledgeBase, form: AddressForm, *, existing: Document | None = None, status: int = 200) -> HttpResponse:
        context = {
            "base": base,
            "form": form,
            "existing_href": links.document_url(existing) if existing else "",
            "folders": folder_paths(actor=self.actor, base=base),
            "space_id": base.space_id,
        }
        return self.show(_("Import from an address"), context, status=status, back=links.base_url(base))


class WrittenForm(forms.Form):
    title = forms.CharField(label=gettext_lazy("Title"), required=False, strip=False)
    folder = forms.CharField(label=gettext_lazy("Folder"), required=False)
    content = forms.CharField(label=gettext_lazy("Text"), widget=forms.Textarea, required=False, strip=False)
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)


class WrittenPage(PageView):
    """The page where Markdown is written, for new documents and for those that exist."""

    def _page(
        self,
        base: KnowledgeBase,
        form: WrittenForm,
        *,
        document: Document | None = None,
        conflict: Conflict | None = None,
        status: int = 200,
    ) -> HttpResponse:
        frame = base_frame(self.actor, base, "documents")
        title = document.title if document else _("New document")
        context = {
            **frame,
            "crumbs": [*frame["crumbs"][:-1], {"label": base.name, "href": links.base_url(base)}, {"label": title}],
            "page_title": title,
            "form": form,
            "document": document,
            "is_published": document is not None and document.parse_status != ParseStatus.DRAFT,
            "conflict": conflict.details if conflict else None,
            "folders": folder_paths(actor=self.actor, base=base),
            "max_content": MAX_CONTENT,
            "space_id": base.space_id,
        }
        return self.page("portal/document_written.html", context, status=status)

    @staticmethod
    def _status(request: HttpRequest) -> str:
        return "publish" if request.POST.get("status") == "publish" else "draft"


class DocumentNewView(WrittenPage):
    actions = {"GET": "document.create", "POST": "document.create"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self._page(base, WrittenForm(initial={"folder": request.GET.get("folder", "")}))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        form = WrittenForm(request.POST)
        if not form.is_valid():
            return self._page(base, form, status=422)
        values = form.cleaned_data
        if not values["title"].strip():
            form.add_error("title", _("Give the document a title."))
            return self._page(base, form, status=422)
        if sent_before(request):
            return go(request, links.base_url(base))
        arrival = Arrival(folder_path=values["folder"])
        try:
            document_write(
                actor=self.actor, base=base, content=values["content"], arrival=arrival, title=values["title"], status=self._status(request)
            )
        except DomainError as error:
            put_error(form, error, {"folder_path": "folder"})
            return self._page(base, form, status=422)
        return go(request, links.base_url(base, **({"folder": values["folder"]} if values["folder"] else {})))


class DocumentEditView(WrittenPage):
    """Saving names the version it is based on; when somebody was faster both texts are shown."""

    actions = {"GET": "document.update", "POST": "document.update"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self._written(document_id)
        kept: dict[str, Any] = document.metadata or {}
        form = WrittenForm(initial={"title": document.title, "content": kept.get("content", ""), "version": kept.get("version", 1)})
        return self._page(document.kb, form, document=document)

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self._written(document_id)
        form = WrittenForm(request.POST)
        if not form.is_valid():
            return self._page(document.kb, form, document=document, status=422)
        values = form.cleaned_data
        try:
            document_rewrite(
                actor=self.actor,
                document=document,
                content=values["content"],
                title=values["title"],
                status=self._status(request),
                expected_version=values.get("version"),
            )
        except Conflict as conflict:
            return self._page(document.kb, form, document=document, conflict=conflict, status=409)
        except DomainError as error:
            put_error(form, error)
            return self._page(document.kb, form, document=document, status=422)
        return go(request, links.base_url(document.kb))

    def _written(self, document_id: uuid.UUID) -> Document:
        document = document_get(actor=self.actor, document_id=document_id)
        if document.type != Document.Type.MANUAL:
            raise InvalidInput(_("Only Markdown documents written here can be edited. Upload a new file instead."), code="not_manual")
        return document
