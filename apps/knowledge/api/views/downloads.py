"""Originals: download, preview, archive."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone

from apps.common.api.views import ApiView, Op
from apps.common.errors import InvalidInput
from apps.knowledge.api.bytes import as_archive, as_download, as_preview
from apps.knowledge.api.serializers.documents import ZipIn
from apps.knowledge.downloads import document_original, documents_archive
from apps.knowledge.selectors import base_get, document_get

TAGS = ("documents",)
MAX_BODY = 64 * 1024


class DocumentDownloadView(ApiView):
    operations = {"GET": Op("document.download", "Download the original", shape="file", tags=TAGS)}

    def get(self, request: Any, document_id: str) -> HttpResponseBase:
        document = document_get(actor=self.actor, document_id=document_id)
        return as_download(request, document_original(actor=self.actor, document=document, action="document.download"))


class DocumentPreviewView(ApiView):
    operations = {
        "GET": Op(
            "document.read",
            "Show the original in place",
            shape="file",
            description="Types that could run anything come as an attachment.",
            tags=TAGS,
        )
    }

    def get(self, request: Any, document_id: str) -> HttpResponseBase:
        document = document_get(actor=self.actor, document_id=document_id)
        original = document_original(actor=self.actor, document=document, action="document.read")
        return as_preview(request, original, file_type=document.file_type)


class BatchDownloadView(ApiView):
    operations = {
        "POST": Op(
            "document.download",
            "Download originals as a ZIP",
            body=ZipIn,
            shape="file",
            errors=(400, 401, 403, 404, 429),
            invalid_code=1000,
            tags=TAGS,
        )
    }

    def post(self, request: Any, kb_id: str) -> HttpResponseBase:
        base = base_get(actor=self.actor, kb_id=kb_id)
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY:
            raise InvalidInput("the request body is too large", code="too_large", api_code=1000)
        path = documents_archive(actor=self.actor, base=base, ids=self.read()["ids"])
        return as_archive(request, path, f"knowledge-files-{timezone.now():%Y%m%d-%H%M%S}.zip")
