"""Versions of a document's file."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework import serializers
from rest_framework.response import Response

from apps.common.api.parsers import StrictJSONParser
from apps.common.api.views import ApiView, Empty, Op
from apps.knowledge.api.bytes import as_download
from apps.knowledge.api.multipart import UploadParser
from apps.knowledge.api.serializers.documents import DocumentOut
from apps.knowledge.api.views.intake import IntakeView
from apps.knowledge.selectors import document_get, version_get, version_list, version_original
from apps.knowledge.services import document_version_add, document_version_restore

TAGS = ("versions",)


class VersionIn(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True, max_length=None, use_url=False)
    fileName = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)


class VersionOut(serializers.Serializer[Any]):
    version = serializers.IntegerField(source="number")
    is_current = serializers.BooleanField()
    file_name = serializers.CharField()
    file_type = serializers.CharField()
    file_size = serializers.IntegerField()
    file_hash = serializers.CharField()
    replaced_at = serializers.DateTimeField(allow_null=True, help_text="When the next version came.")
    creator_name = serializers.SerializerMethodField()

    def get_creator_name(self, row: Any) -> str:
        return row.creator.username if row.creator else ""


class VersionListView(IntakeView):
    parser_classes = [UploadParser, StrictJSONParser]
    operations = {
        "GET": Op("document.read", "List the versions of a document", reply=VersionOut, shape="list", tags=TAGS),
        "POST": Op(
            "document.update",
            "Give a document a new file",
            body=VersionIn,
            reply=DocumentOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            multipart=True,
            description="Id, folder, tags and metadata stay; passages of the file before serve until the new ones are there.",
            tags=TAGS,
        ),
    }

    def get(self, request: Any, document_id: str) -> Response:
        return self.render(version_list(actor=self.actor, document=document_get(actor=self.actor, document_id=document_id)))

    def post(self, request: Any, document_id: str) -> Response:
        document = document_get(actor=self.actor, document_id=document_id)
        body = self.read()
        upload = body["file"]
        file_name = body.get("fileName") or getattr(upload, "raw_name", "") or upload.name
        stored = document_version_add(actor=self.actor, document=document, upload=upload, file_name=file_name)
        return self.stored(stored, "duplicate_file")


class VersionDownloadView(ApiView):
    operations = {"GET": Op("document.download", "Download an earlier version", shape="file", tags=TAGS)}

    def get(self, request: Any, document_id: str, number: int) -> HttpResponseBase:
        document = document_get(actor=self.actor, document_id=document_id)
        version = version_get(actor=self.actor, document=document, number=number)
        return as_download(request, version_original(actor=self.actor, document=document, version=version))


class VersionRestoreView(ApiView):
    operations = {
        "POST": Op(
            "document.update",
            "Make an earlier version the newest",
            body=Empty,
            reply=DocumentOut,
            errors=(400, 401, 403, 404, 409),
            tags=TAGS,
        )
    }

    def post(self, request: Any, document_id: str, number: int) -> Response:
        document = document_get(actor=self.actor, document_id=document_id)
        version = version_get(actor=self.actor, document=document, number=number)
        return self.render(document_version_restore(actor=self.actor, document=document, version=version))
