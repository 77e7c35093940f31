"""The documents tab of a base, and what a person does with one document."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from apps.common.errors import DomainError
from apps.common.policy import allowed
from apps.knowledge.models import IN_FLIGHT, Document, KnowledgeBase, ParseStatus
from apps.knowledge.reasons import asks_password
from apps.knowledge.selectors import base_get, document_get, documents_batch, folder_tree
from apps.knowledge.services import base_visit, document_cancel, document_reparse, document_update, documents_delete
from apps.portal import links
from apps.portal.base_frame import base_frame
from apps.portal.document_list import list_context, live_url
from apps.portal.document_query import ListQuery
from apps.portal.document_rows import TEXT_TYPES, rows_of, type_of
from apps.portal.trash import days_text, documents_undo, kept_text
from apps.portal.uploading import upload_target
from apps.portal.views.bulk import MOST
from apps.portal.views.forms import put_error
from apps.portal.web import DialogView, PageView, done, go

VIEWS = ("table", "cards")
MAX_PASSWORD = 1024
VIEW_COOKIE = "kb_view"
ENCODINGS = ("utf-8", "gb18030", "big5", "utf-16", "shift_jis", "euc-kr", "windows-1252", "iso-8859-1")


class DocumentsView(PageView):
    """Filters, folder, order and page stand in the address; table or cards is remembered in a cookie."""

    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        if base.type == KnowledgeBase.Type.FAQ:
            return redirect(links.base_url(base))
        view = next((name for name in VIEWS if name == request.GET.get("view", request.COOKIES.get(VIEW_COOKIE))), VIEWS[0])
        if not request.headers.get("HX-Request"):
            base_visit(actor=self.actor, base=base)
        context = {
            **base_frame(self.actor, base, "documents"),
            **list_context(self.actor, base, ListQuery.read(request.GET)),
            **upload_target(base),
            "view": view,
            "may_download": allowed(self.actor, "document.download", base),
            "most_at_once": f"{MOST:,}",
            "may_move": allowed(self.actor, "document.move", base),
            "space_id": space_id,
        }
        context["total_to_take"] = context["total"] if context["total"] <= MOST else 0
        context["view_items"] = _view_items(context["here"], view)
        response = self.page("portal/base_documents.html", context)
        if "view" in request.GET:
            response.set_cookie(VIEW_COOKIE, view, max_age=365 * 86400, samesite="Lax", secure=request.is_secure(), path=f"/s/{space_id}/")
        patch_vary_headers(response, ["Cookie"])
        return response


def _view_items(here: str, view: str) -> list[dict[str, Any]]:
    joint = "&" if "?" in here else "?"
    labels = {"table": (_("Table"), "list"), "cards": (_("Cards"), "cards")}
    return [
        {"label": label, "icon": icon, "href": f"{here}{joint}view={name}", "current": name == view}
        for name, (label, icon) in labels.items()
    ]


class DocumentsLiveView(PageView):
    """News for an open list: the rows in flight as they are now, the figures of the head, and whether the list is out of date."""

    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        view = request.COOKIES.get(VIEW_COOKIE, VIEWS[0])
        ids = [name for name in request.GET.get("ids", "").split(",") if name][:200]
        documents = documents_batch(actor=self.actor, ids=ids, base=base) if ids else []
        rows = rows_of(self.actor, documents, show_folder=bool(request.GET.get("folder")))
        count = folder_tree(actor=self.actor, base=base).total_document_count
        query = ListQuery(folder=None if request.GET.get("folder") else "")
        context = {
            **base_frame(self.actor, base, "documents"),
            "rows": rows,
            "view": view,
            "live_url": live_url(base, rows, query, count),
            "live_ms": 2000 if any(row.in_flight for row in rows) else 10_000,
            "space_id": space_id,
        }
        response = self.page("portal/_documents_live.html", context)
        if str(count) != request.GET.get("count") or len(documents) < len(ids):
            response["HX-Trigger"] = json.dumps({"kb:changed": {}})
        return response


class DocumentPageView(DialogView):
    """Base of everything about one document of the space."""

    def document(self, document_id: uuid.UUID) -> Document:
        return document_get(actor=self.actor, document_id=document_id)

    @staticmethod
    def back(document: Document) -> str:
        return links.base_url(document.kb)


class DocumentMenuView(DocumentPageView):
    """What can be done with a row, filled in when its menu opens."""

    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self.document(document_id)
        status = ParseStatus(document.parse_status)
        in_flight = status in IN_FLIGHT
        context = {
            "document": document,
            "href": links.document_url(document),
            "download_href": links.download_url(self.actor, document),
            "has_original": bool(document.storage_path) or document.type == Document.Type.MANUAL,
            "is_manual": document.type == Document.Type.MANUAL,
            "is_text": type_of(document) in TEXT_TYPES,
            "in_flight": in_flight,
            "asks_password": asks_password(document),
            "is_draft": status == ParseStatus.DRAFT,
            "may_write": allowed(self.actor, "document.update", document),
            "may_download": allowed(self.actor, "document.download", document),
            "space_id": space_id,
            "in_reader": "reader" in request.GET,
        }
        return render(request, "portal/_document_menu.html", context)


class DocumentReparseView(DocumentPageView):
    """POST parses again at once; GET asks for the encoding of a text file."""

    actions = {"GET": "document.reparse", "POST": "document.reparse"}
    template = "portal/_document_encoding.html"

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self.document(document_id)
        context = {"document": document, "encodings": [(name, name.upper()) for name in ENCODINGS], "space_id": space_id}
        return self.show(_("Read with another encoding"), context, back=self.back(document))

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self.document(document_id)
        encoding = request.POST.get("encoding", "")
        config: dict[str, Any] | None = None
        if "encoding" in request.POST:
            kept = dict((document.metadata or {}).get("process_overrides") or {})
            kept.pop("encoding", None)
            config = {**kept, "encoding": encoding} if encoding in ENCODINGS else kept
        document_reparse(actor=self.actor, document=document, process_config=config)
        return done(request, _("“%(title)s” is being parsed again.") % {"title": document.title}, back=self.back(document), kind="info")


class PasswordForm(forms.Form):
    password = forms.CharField(
        label=gettext_lazy("Password"), strip=False, max_length=MAX_PASSWORD, widget=forms.PasswordInput(attrs={"autocomplete": "off"})
    )


@method_decorator(sensitive_post_parameters("password"), name="dispatch")
class DocumentPasswordView(DocumentPageView):
    """The one-off password of a locked PDF. It goes to the service and nowhere else; the form never shows it again."""

    actions = {"GET": "document.reparse", "POST": "document.reparse"}
    template = "portal/_document_password.html"

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        return self._form(self.document(document_id), PasswordForm())

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self.document(document_id)
        form = PasswordForm(request.POST)
        if not form.is_valid():
            return self._form(document, form, status=422)
        try:
            document_reparse(actor=self.actor, document=document, password=form.cleaned_data["password"])
        except DomainError as error:
            put_error(form, error)
            return self._form(document, form, status=422)
        return done(
            request, _("“%(title)s” is being opened and parsed.") % {"title": document.title}, back=self.back(document), kind="info"
        )

    def _form(self, document: Document, form: PasswordForm, status: int = 200) -> HttpResponse:
        was_wrong = document.parse_status == ParseStatus.FAILED and document.reason == "wrong_password"
        context = {"document": document, "form": form, "was_wrong": was_wrong, "space_id": document.space_id}
        return self.show(_("Enter the password"), context, status=status, back=self.back(document))


class DocumentStopView(DocumentPageView):
    actions = {"POST": "document.cancel"}

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_cancel(actor=self.actor, document=self.document(document_id))
        return done(request, _("Stopped “%(title)s”.") % {"title": document.title}, back=self.back(document), kind="info")


class RenameForm(forms.Form):
    title = forms.CharField(label=gettext_lazy("Title"), required=False, strip=False)


class DocumentRenameView(DocumentPageView):
    actions = {"GET": "document.update", "POST": "document.update"}
    template = "portal/_document_rename.html"

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self.document(document_id)
        return self._form(document, RenameForm(initial={"title": document.title}))

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self.document(document_id)
        form = RenameForm(request.POST)
        if not form.is_valid():
            return self._form(document, form, status=422)
        title = form.cleaned_data["title"]
        if not title.strip():
            form.add_error("title", _("Give the document a title."))
            return self._form(document, form, status=422)
        try:
            document_update(actor=self.actor, document=document, title=title)
        except DomainError as error:
            put_error(form, error)
            return self._form(document, form, status=422)
        return self.done(_("Renamed."), back=self.back(document))

    def _form(self, document: Document, form: RenameForm, status: int = 200) -> HttpResponse:
        context = {"document": document, "form": form, "space_id": document.space_id}
        return self.show(_("Rename"), context, status=status, back=self.back(document))


class DocumentDeleteView(DocumentPageView):
    """It says beforehand what goes, and for how long it can come back."""

    actions = {"GET": "document.delete", "POST": "document.delete"}
    template = "portal/_document_delete.html"

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self.document(document_id)
        title = _("Delete “%(title)s”?") % {"title": document.title}
        context = {"document": document, "space_id": space_id, "in_reader": "reader" in request.GET, "kept_days": days_text()}
        return self.show(title, context, back=self.back(document))

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = self.document(document_id)
        documents_delete(actor=self.actor, base=document.kb, documents=[document])
        text = _("“%(title)s” was deleted.") % {"title": document.title}
        if "reader" in request.GET:  # its own page is gone with it
            messages.success(request, f"{text} {kept_text()}".strip())
            return go(request, self.back(document))
        undo = documents_undo(self.actor, document.kb, [document])
        return self.done(text, back=self.back(document), detail=kept_text(), undo=undo, gone=str(document.uid))
