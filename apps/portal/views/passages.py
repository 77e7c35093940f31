"""Editing passages inside the reader: text, on and off, earlier versions; a conflict shows both texts and the ways out."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from apps.common.errors import Conflict, DomainError
from apps.common.policy import allowed
from apps.common.web.views import PageView
from apps.knowledge.models import Chunk, Document
from apps.knowledge.selectors import chunk_get, document_get
from apps.knowledge.services import chunk_revert, chunk_update
from apps.portal.reader.diffing import word_diff
from apps.portal.reader.history import history_context
from apps.portal.reader.passages import Asked, named_in, reader_address, row_of
from apps.portal.reader.pictures import pictures_of
from apps.portal.reader.source import source_of
from apps.portal.views.forms import put_error
from apps.portal.web import DialogView, done, is_htmx

MAX_BYTES = 200_000


class PassageForm(forms.Form):
    content = forms.CharField(required=False, strip=False)
    revision = forms.IntegerField(min_value=0)


class PassagePage(PageView):
    """Base of what is done with one passage of a document of the space."""

    def passage(self, document_id: uuid.UUID, chunk_id: uuid.UUID) -> tuple[Document, Chunk]:
        document = document_get(actor=self.actor, document_id=document_id)
        return document, chunk_get(actor=self.actor, chunk_id=chunk_id, document=document)

    def row(self, document: Document, chunk: Chunk, *, status: int = 200) -> HttpResponse:
        """The passage as it is now, in its place in the list."""
        asked = Asked.read(self.request.GET)
        row = row_of(document, chunk, source_of(document), asked, chunk, pictures_of(self.actor, [named_in(chunk)]))
        context = {"passage": row, "document": document, "may_edit": allowed(self.actor, "chunk.write", document), "asked": asked}
        return self.page("portal/_passage.html", context, status=status)

    @staticmethod
    def back(document: Document, chunk: Chunk) -> str:
        return f"{reader_address(document)}?chunk={chunk.uid}#here"


class PassageView(PassagePage):
    """One passage as it is now (after an edit was given up)."""

    actions = {"GET": "chunk.read"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        return self.row(*self.passage(document_id, chunk_id))


class PassageEditView(PassagePage):
    actions = {"GET": "chunk.write", "POST": "chunk.write"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        document, chunk = self.passage(document_id, chunk_id)
        form = PassageForm(initial={"content": chunk.content, "revision": chunk.content_revision})
        return self._form(document, chunk, form)

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        document, chunk = self.passage(document_id, chunk_id)
        form = PassageForm(request.POST)
        if not form.is_valid():
            return self._form(document, chunk, form, status=422)
        text = form.cleaned_data["content"].replace("\r\n", "\n")
        try:
            chunk = chunk_update(actor=self.actor, chunk=chunk, content=text, expected_revision=form.cleaned_data["revision"])
        except Conflict as error:
            return self._form(document, chunk, form, status=422, theirs=error.details)
        except DomainError as error:
            put_error(form, error)
            return self._form(document, chunk, form, status=422)
        if not is_htmx(request):
            return done(request, _("The passage is saved."), back=self.back(document, chunk))
        return self.row(document, chunk)

    def _form(
        self, document: Document, chunk: Chunk, form: PassageForm, *, status: int = 200, theirs: dict[str, Any] | None = None
    ) -> HttpResponse:
        mine = str(form["content"].value() or "")
        context: dict[str, Any] = {
            "document": document,
            "chunk": chunk,
            "form": form,
            "max_bytes": MAX_BYTES,
            "revision": chunk.content_revision if theirs else form["revision"].value(),
            "back": self.back(document, chunk),
        }
        if theirs:
            context |= {"theirs": theirs["content"], "revision": theirs["current_revision"], "diff": word_diff(theirs["content"], mine)}
        if is_htmx(self.request):
            return self.page("portal/_passage_edit.html", context, status=status)
        context |= {
            "dialog_title": _("Edit passage %(number)d") % {"number": chunk.chunk_index + 1},
            "dialog_body": "portal/_passage_edit.html",
            "crumbs": [{"label": document.title, "href": reader_address(document)}, {"label": _("Edit passage")}],
        }
        return self.page("portal/dialog_page.html", context, status=status)


class PassageRetryView(PassagePage):
    """Index a passage again whose edit the index could not take."""

    actions = {"POST": "chunk.write"}

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        document, chunk = self.passage(document_id, chunk_id)
        chunk = chunk_update(actor=self.actor, chunk=chunk)
        if is_htmx(request):
            return self.row(document, chunk)
        if chunk.index_status == Chunk.IndexStatus.FAILED:
            return done(
                request, _("The index could not be written again. Your text is kept."), back=self.back(document, chunk), kind="danger"
            )
        return done(request, _("The passage is indexed."), back=self.back(document, chunk))


class PassageHistoryView(DialogView, PassagePage):
    """Earlier versions of a passage, in a drawer."""

    actions = {"GET": "chunk.read"}
    template = "portal/_passage_history.html"
    kind = "drawer"

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        return self.history(*self.passage(document_id, chunk_id))

    def history(self, document: Document, chunk: Chunk) -> HttpResponse:
        context = {
            **history_context(self.actor, chunk),
            "document": document,
            "may_edit": allowed(self.actor, "chunk.write", document),
            "crumbs": [{"label": document.title, "href": reader_address(document)}, {"label": _("Earlier versions")}],
        }
        title = _("Versions of passage %(number)d") % {"number": chunk.chunk_index + 1}
        return self.show(title, context, back=self.back(document, chunk))


class PassageStateView(PassagePage):
    """On or off: an off passage is found by nobody and stays in the list."""

    actions = {"POST": "chunk.write"}

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        document, chunk = self.passage(document_id, chunk_id)
        expected = _number(request.POST.get("revision", ""))
        chunk = chunk_update(actor=self.actor, chunk=chunk, is_enabled=request.POST.get("enabled") == "1", expected_revision=expected)
        return self._answer(document, chunk)

    def _answer(self, document: Document, chunk: Chunk) -> HttpResponse:
        if not is_htmx(self.request):
            word = _("The passage is on.") if chunk.is_enabled else _("The passage is off: nobody finds it.")
            return done(self.request, word, back=self.back(document, chunk))
        return self.row(document, chunk)


class PassageRevertView(PassagePage):
    """An earlier text as a new version; from the drawer of versions, one that somebody else wrote meanwhile is never passed over."""

    actions = {"POST": "chunk.write"}

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        document, chunk = self.passage(document_id, chunk_id)
        revision = _number(request.POST.get("revision", ""))
        expected = _number(request.POST.get("expected", ""))
        chunk = chunk_revert(actor=self.actor, chunk=chunk, revision=-1 if revision is None else revision, expected_revision=expected)
        if not is_htmx(request) or request.POST.get("from") == "history":
            return done(request, _("The earlier text is back."), back=self.back(document, chunk))
        return self.row(document, chunk)


def _number(raw: str) -> int | None:
    return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 9 else None
