"""One action on many documents: asked for in a dialog, done one by one where one may fail, reported per document."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.errors import DomainError, InvalidInput
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors import base_get, document_list, documents_get, folder_paths, tag_list
from apps.knowledge.services import document_reparse, documents_delete, documents_into_folder, documents_reparse, tags_replace
from apps.portal import links
from apps.portal.document_query import ListQuery
from apps.portal.templatetags.portal import known_hue
from apps.portal.trash import days_text, documents_undo, kept_text
from apps.portal.web import DialogView

SLICE = 200
MOST = 2000


class BulkView(DialogView):
    """`ids` names the documents; `all=1` means every one that the list's own filters (in the address) match."""

    def chosen(self, request: HttpRequest, base: KnowledgeBase) -> list[Document]:
        """Raises: InvalidInput when nothing is chosen, too much, or something that is gone."""
        values = request.POST if request.method == "POST" else request.GET
        if values.get("all") == "1":
            found = document_list(actor=self.actor, base=base, filters=ListQuery.read(request.GET).filters())
            documents = list(found[: MOST + 1])
            if len(documents) > MOST:
                raise InvalidInput(_("At most %(max)d documents at a time. Narrow the list first.") % {"max": MOST})
            return documents
        ids = list(dict.fromkeys(values.getlist("ids")))
        if len(ids) > MOST:
            raise InvalidInput(_("At most %(max)d documents at a time. Narrow the list first.") % {"max": MOST})
        parts = [ids[start : start + SLICE] for start in range(0, len(ids), SLICE)] or [[]]
        return [document for part in parts for document in documents_get(actor=self.actor, base=base, ids=part)]

    def ask(self, base: KnowledgeBase, documents: Sequence[Document], title: str, status: int = 200, **more: Any) -> HttpResponse:
        values = self.request.POST if self.request.method == "POST" else self.request.GET
        context = {
            "base": base,
            "documents": documents,
            "first": documents[:5],
            "more_count": max(0, len(documents) - 5),
            "all": values.get("all") == "1",
            "filters": ListQuery.read(self.request.GET).href(),
            "space_id": base.space_id,
            **more,
        }
        return self.show(title, context, status=status, back=links.base_url(base))

    def each(self, documents: Sequence[Document], work: Callable[[Document], None]) -> list[tuple[Document, str]]:
        """Do it to every document; those it failed for, with the reason."""
        failed = []
        for document in documents:
            try:
                work(document)
            except DomainError as error:
                failed.append((document, str(error)))
        return failed

    def report(
        self, base: KnowledgeBase, count: int, failed: list[tuple[Document, str]], text: str, *, clear: bool = True, **more: str
    ) -> HttpResponse:
        """A toast when all went well; else a dialog that names every document it failed for."""
        if not failed:
            response = self.done(text, back=links.base_url(base), **more)
        else:
            context = {
                "dialog_title": _("Done in part"),
                "dialog_body": "portal/_bulk_report.html",
                "done": count - len(failed),
                "count": count,
                "failed": failed,
            }
            response = render(self.request, "portal/_dialog.html", context)
            response["HX-Trigger"] = json.dumps({"kb:changed": {}})
        if clear and "HX-Trigger" in response:
            response["HX-Trigger"] = json.dumps({**json.loads(response["HX-Trigger"]), "kb:selection-done": {}})
        return response


def documents_text(count: int) -> str:
    return ngettext("%(count)s document", "%(count)s documents", count) % {"count": f"{count:,}"}


class BulkDeleteView(BulkView):
    actions = {"GET": "document.delete", "POST": "document.delete"}
    template = "portal/_bulk_delete.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = self.chosen(request, base)
        passages = sum(document.chunk_count for document in documents)
        return self.ask(
            base,
            documents,
            _("Delete %(documents)s?") % {"documents": documents_text(len(documents))},
            passages=passages,
            kept_days=days_text(),
        )

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = self.chosen(request, base)
        failed: list[tuple[Document, str]] = []
        for start in range(0, len(documents), SLICE):
            part = documents[start : start + SLICE]
            try:
                documents_delete(actor=self.actor, base=base, documents=part)
            except DomainError:  # one of them cannot go now: find out which
                failed += self.each(part, lambda document: self._delete_one(base, document))
        text = _("%(documents)s deleted.") % {"documents": documents_text(len(documents))}
        return self.report(base, len(documents), failed, text, detail=kept_text(), undo=documents_undo(self.actor, base, documents))

    def _delete_one(self, base: KnowledgeBase, document: Document) -> None:
        documents_delete(actor=self.actor, base=base, documents=[document])


class BulkReparseView(BulkView):
    actions = {"GET": "document.reparse", "POST": "document.reparse"}
    template = "portal/_bulk_reparse.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = self.chosen(request, base)
        return self.ask(base, documents, _("Parse %(documents)s again?") % {"documents": documents_text(len(documents))})

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = self.chosen(request, base)
        failed: list[tuple[Document, str]] = []
        for start in range(0, len(documents), SLICE):
            part = documents[start : start + SLICE]
            try:
                documents_reparse(actor=self.actor, base=base, documents=part)
            except DomainError:  # one of them cannot be parsed now: find out which
                failed += self.each(part, self._reparse)
        text = _("%(documents)s being parsed again.") % {"documents": documents_text(len(documents))}
        return self.report(base, len(documents), failed, text)

    def _reparse(self, document: Document) -> None:
        document_reparse(actor=self.actor, document=document)


class BulkFolderView(BulkView):
    actions = {"GET": "folder.update", "POST": "folder.update"}
    template = "portal/_bulk_folder.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self._form(base, self.chosen(request, base))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = self.chosen(request, base)
        path = request.POST.get("folder", "")
        failed: list[tuple[Document, str]] = []
        folder = ""
        for start in range(0, len(documents), SLICE):
            part = documents[start : start + SLICE]
            try:
                folder = documents_into_folder(actor=self.actor, base=base, documents=part, path=path).folder_path
            except DomainError as error:
                if start == 0:
                    return self._form(base, documents, typed=path, error=str(error), status=422)
                failed += [(document, str(error)) for document in part]
        values = {"documents": documents_text(len(documents)), "folder": folder}
        text = _("%(documents)s moved to “%(folder)s”.") % values if folder else _("%(documents)s moved out of folders.") % values
        return self.report(base, len(documents), failed, text)

    def _form(self, base: KnowledgeBase, documents: list[Document], *, typed: str | None = None, error: str = "", status: int = 200) -> Any:
        here = {document.folder_path for document in documents}
        folder = typed if typed is not None else here.pop() if len(here) == 1 else ""
        paths = folder_paths(actor=self.actor, base=base)
        title = _("Move %(documents)s") % {"documents": documents_text(len(documents))}
        return self.ask(base, documents, title, status, folder=folder, folders=paths, error=error)


class BulkTagsView(BulkView):
    """Tags all carry, some carry, none carries. What is left as it was stays as it was, document by document."""

    actions = {"GET": "document.update", "POST": "document.update"}
    template = "portal/_bulk_tags.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self._form(base, self.chosen(request, base))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = self.chosen(request, base)
        known = {str(tag.uid) for tag in tag_list(actor=self.actor, base=base)}
        add = {tag for tag in request.POST.getlist("on") if tag in known}
        take = {tag for tag in request.POST.getlist("off") if tag in known} - add
        failed: list[tuple[Document, str]] = []
        for start in range(0, len(documents), SLICE):
            part = self._with_tags(base, documents[start : start + SLICE])
            updates = {str(each.uid): sorted((have - take) | add) for each, have in part if (have - take) | add != have}
            try:
                if updates:
                    tags_replace(actor=self.actor, base=base, updates=updates)
            except DomainError as error:
                if start == 0:
                    return self._form(base, documents, error=str(error), status=422)
                failed += [(each, str(error)) for each, _have in part]
        return self.report(base, len(documents), failed, _("Tags saved."), clear=False)

    def _with_tags(self, base: KnowledgeBase, documents: Sequence[Document]) -> list[tuple[Document, set[str]]]:
        """Documents with the ids of the tags they carry now."""
        return [(document, {str(tag.uid) for tag in document.tags.all()}) for document in documents]

    def _form(self, base: KnowledgeBase, documents: list[Document], *, error: str = "", status: int = 200) -> HttpResponse:
        carried = [have for _document, have in self._with_tags(base, documents)]
        rows = []
        for tag in tag_list(actor=self.actor, base=base):
            count = sum(str(tag.uid) in have for have in carried)
            state = "all" if count == len(documents) else "some" if count else "none"
            rows.append({"tag": tag, "hue": known_hue(tag.color), "state": state, "count": count})
        title = _("Tags of %(documents)s") % {"documents": documents_text(len(documents))}
        return self.ask(base, documents, title, status, tags=rows, error=error)
