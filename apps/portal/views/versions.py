"""Versions of a document's file: list, bring a new one, download, compare, make an earlier one the newest."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.errors import Conflict, DomainError, NotFound
from apps.common.policy import allowed
from apps.ingestion.selectors import version_diff
from apps.knowledge.models import Document
from apps.knowledge.selectors import document_get, version_get, version_list
from apps.knowledge.services import document_version_add, document_version_restore
from apps.portal import links
from apps.portal.web import PageView


def _address(document: Document) -> str:
    return reverse("document-versions", args=[document.space_id, document.uid])


def _crumbs(document: Document, *more: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"label": document.kb.name, "href": links.base_url(document.kb)},
        {"label": document.title, "href": links.document_url(document)},
    ]
    return [*found, {"label": _("Versions"), **({"href": _address(document)} if more else {})}, *({"label": each} for each in more)]


class DocumentVersionsView(PageView):
    actions = {"GET": "document.read", "POST": "document.update"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        return self._page(document_get(actor=self.actor, document_id=document_id))

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        upload = request.FILES.get("file")
        if upload is None:
            return self._page(document, error=_("Choose a file first."), status=422)
        try:
            stored = document_version_add(actor=self.actor, document=document, upload=upload, file_name=upload.name or "")
        except DomainError as error:
            return self._page(document, error=str(error), status=422)
        if stored.duplicate and stored.document.pk == document.pk:
            return self._page(document, error=_("This is the very file the document has. Nothing was changed."), status=422)
        if stored.duplicate:
            text = _("The base has this file already, as “%(title)s”. Nothing was changed.") % {"title": stored.document.title}
            return self._page(document, error=text, status=422)
        messages.success(
            request,
            _("Version %(number)d is being read. The passages before serve until it is ready.") % {"number": stored.document.version},
        )
        return redirect(_address(document))

    def _page(self, document: Document, *, error: str = "", status: int = 200) -> HttpResponse:
        context = {
            "document": document,
            "versions": version_list(actor=self.actor, document=document),
            "is_file": document.type == Document.Type.FILE,
            "may_write": allowed(self.actor, "document.update", document),
            "may_download": allowed(self.actor, "document.download", document),
            "download_href": links.download_url(self.actor, document),
            "versions_href": f"{links.download_url(self.actor, document).removesuffix('download')}versions",
            "error": error,
            "space_id": document.space_id,
            "crumbs": _crumbs(document),
        }
        return self.page("portal/document_versions.html", context, status=status)


class VersionDiffView(PageView):
    """From an earlier version to the current one."""

    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, number: int) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        version_get(actor=self.actor, document=document, number=number)
        diff, problem = None, ""
        try:
            diff = version_diff(actor=self.actor, document=document, older=number, newer=document.version)
        except (NotFound, DomainError) as error:
            problem = str(error)
        title = _("From version %(older)d to %(newer)d") % {"older": number, "newer": document.version}
        context = {"document": document, "diff": diff, "problem": problem, "diff_title": title, "crumbs": _crumbs(document, title)}
        return self.page("portal/version_diff.html", context)


class VersionRestoreView(PageView):
    actions = {"POST": "document.update"}

    def post(self, request: HttpRequest, space_id: int, document_id: uuid.UUID, number: int) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        version = version_get(actor=self.actor, document=document, number=number)
        try:
            document_version_restore(actor=self.actor, document=document, version=version)
        except Conflict as error:
            messages.error(request, str(error))
        else:
            messages.success(request, _("The file of version %(number)d is the newest again and is being read.") % {"number": number})
        return redirect(_address(document))
