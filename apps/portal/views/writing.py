"""What people and models write about a document: its summary, its custom metadata, the questions its passages answer."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from apps.common.errors import Conflict, DomainError
from apps.common.policy import allowed
from apps.knowledge.models import Chunk, Document
from apps.knowledge.selectors import chunk_get, document_get
from apps.knowledge.services import (
    document_update,
    has_chat_model,
    question_delete,
    question_put,
    questions_of,
    questions_regenerate,
    summary_regenerate,
)
from apps.portal.forms.metadata import KINDS, MAX_ROWS, MetadataRow, digest, metadata_of, rows_from, rows_read
from apps.portal.reader.passages import reader_address
from apps.portal.reader.summary import summary_context
from apps.portal.web import DialogView, done, is_htmx

MAX_SUMMARY = 20_000


class SummaryView(DialogView):
    """GET gives the block as it is now (it asks for its own news while a model writes); POST lets the model write it anew."""

    actions = {"GET": "document.read", "POST": "document.update"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        if not is_htmx(request):
            return redirect(reader_address(document))
        return self._block(document)

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        document = summary_regenerate(actor=self.actor, document=document)
        if is_htmx(request):
            return self._block(document)
        return done(
            request, _("The summary is being written.") if _is_busy(document) else _("The summary is written."), back=_back(document)
        )

    def _block(self, document: Document) -> HttpResponse:
        return self.page("portal/_summary.html", {**summary_context(self.actor, document), "document": document})


def _is_busy(document: Document) -> bool:
    return document.summary_status in ("pending", "processing")


def _back(document: Document) -> str:
    return f"{reader_address(document)}#passages"


class SummaryEditView(DialogView):
    actions = {"GET": "document.update", "POST": "document.update"}
    template = "portal/_summary_edit.html"

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        return self._form(document, document.description)

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        text = request.POST.get("description", "").replace("\r\n", "\n").strip()
        if len(text) > MAX_SUMMARY:
            error = _("The summary may have at most %(max)d characters.") % {"max": MAX_SUMMARY}
            return self._form(document, text, error=error, status=422)
        if request.POST.get("seen") != digest(document.description):
            return self._form(document, text, theirs=document.description, status=422)
        try:
            document_update(actor=self.actor, document=document, description=text, seen={"description": document.description})
        except Conflict as error:
            document.description = str(error.details["description"])
            return self._form(document, text, theirs=document.description, status=422)
        return self.done(_("The summary is saved."), back=_back(document))

    def _form(self, document: Document, text: str, *, error: str = "", theirs: str | None = None, status: int = 200) -> HttpResponse:
        context = {
            "document": document,
            "text": text,
            "seen": digest(document.description),
            "error": error,
            "is_conflict": theirs is not None,
            "theirs": theirs,
            "max_summary": MAX_SUMMARY,
        }
        return self.show(_("Summary"), context, status=status, wide=True, back=_back(document))


class MetadataView(DialogView):
    """The rows of custom metadata; `do=more` gives more rows and saves nothing."""

    actions = {"GET": "document.update", "POST": "document.update"}
    template = "portal/_metadata.html"

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        return self._form(document, rows_from(document.custom_metadata or {}))

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        rows = _sent(request.POST)
        if request.POST.get("do") == "more":
            rows += [MetadataRow() for _n in range(max(0, min(3, MAX_ROWS - len(rows))))]
            return self._form(document, rows, seen=request.POST.get("seen", ""))
        if (values := metadata_of(rows)) is None:
            return self._form(document, rows, seen=request.POST.get("seen", ""), status=422)
        now = document.custom_metadata or {}
        if request.POST.get("seen") != digest(now):
            return self._form(document, rows, theirs=now, status=422)
        try:
            document_update(actor=self.actor, document=document, custom_metadata=values, seen={"custom_metadata": document.custom_metadata})
        except Conflict as error:
            document.custom_metadata = error.details["custom_metadata"]
            return self._form(document, rows, theirs=document.custom_metadata or {}, status=422)
        except DomainError as error:
            at = next((row for row in rows if row.name[:64] == error.details.get("key")), rows[0] if rows else MetadataRow())
            at.error = str(error)
            return self._form(document, rows, seen=request.POST.get("seen", ""), status=422)
        return self.done(_("Metadata saved."), back=self._back(document))

    @staticmethod
    def _back(document: Document) -> str:
        return f"{reader_address(document)}details"

    def _form(
        self, document: Document, rows: list[MetadataRow], *, seen: str = "", theirs: dict[str, Any] | None = None, status: int = 200
    ) -> HttpResponse:
        context = {
            "document": document,
            "rows": rows,
            "kinds": KINDS,
            "seen": seen or digest(document.custom_metadata or {}),
            "theirs": rows_from(theirs, blank=0) if theirs is not None else [],
            "is_conflict": theirs is not None,
            "may_add": len(rows) < MAX_ROWS,
            "max_keys": MAX_ROWS,
        }
        return self.show(_("Custom metadata"), context, status=status, wide=True, back=self._back(document))


def _sent(form: QueryDict) -> list[MetadataRow]:
    return rows_read(form.getlist("name"), form.getlist("kind"), form.getlist("value"))


class QuestionsView(DialogView):
    """GET shows the drawer; POST adds a question, or does to one (`question_id`) or all what `do` says: save, delete, regenerate."""

    actions = {"GET": "chunk.read", "POST": "chunk.write"}
    template = "portal/_questions.html"
    kind = "drawer"

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        return self._drawer(self._chunk(document_id, chunk_id))

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, chunk_id: uuid.UUID) -> HttpResponse:
        chunk = self._chunk(document_id, chunk_id)
        question_id, action, text = (request.POST.get(name, "") for name in ("question_id", "do", "question"))
        try:
            if action == "regenerate":
                questions_regenerate(actor=self.actor, chunk=chunk)
            elif action == "delete":
                question_delete(actor=self.actor, chunk=chunk, question_id=question_id)
            else:
                question_put(actor=self.actor, chunk=chunk, question=text, question_id=question_id)
        except DomainError as error:
            fresh = self._chunk(document_id, chunk_id)
            return self._drawer(
                fresh, at=action if action == "regenerate" else question_id or "new", error=str(error), typed=text, status=422
            )
        if not is_htmx(request):
            return done(request, _("The questions are saved."), back=f"{reader_address(chunk.document)}?chunk={chunk.uid}#here")
        return self._drawer(self._chunk(document_id, chunk_id))

    def _chunk(self, document_id: uuid.UUID, chunk_id: uuid.UUID) -> Chunk:
        document = document_get(actor=self.actor, document_id=document_id)
        return chunk_get(actor=self.actor, chunk_id=chunk_id, document=document)

    def _drawer(self, chunk: Chunk, *, at: str = "", error: str = "", typed: str = "", status: int = 200) -> HttpResponse:
        rows = [
            {
                "id": str(row["id"]),
                "text": typed if at == str(row["id"]) else str(row["question"]),
                "stale": row.get("content_revision") != chunk.content_revision,
                "error": error if at == str(row["id"]) else "",
            }
            for row in questions_of(chunk)
        ]
        context = {
            "document": chunk.document,
            "chunk": chunk,
            "questions": rows,
            "new": {"text": typed, "error": error} if at == "new" else {},
            "trouble": error if at == "regenerate" else "",
            "may_edit": allowed(self.actor, "chunk.write", chunk),
            "has_model": has_chat_model(chunk.kb),
        }
        title = _("Questions of passage %(number)d") % {"number": chunk.chunk_index + 1}
        return self.show(title, context, status=status, back=f"{reader_address(chunk.document)}?chunk={chunk.uid}#here")
