"""Ways in: files, addresses, Markdown."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from apps.common.api.parsers import StrictJSONParser
from apps.common.api.views import ApiView, Op
from apps.knowledge.api.multipart import UploadParser
from apps.knowledge.api.serializers.documents import DocumentOut, ManualIn, ManualUpdateIn, UploadIn, UrlIn
from apps.knowledge.intake import space_warning
from apps.knowledge.selectors import base_get, document_get
from apps.knowledge.services import Arrival, Stored, document_import_url, document_receive, document_rewrite, document_write

TAGS = ("documents",)


def arrival_of(body: dict[str, Any]) -> Arrival:
    return Arrival(
        channel=body.get("channel") or "web",
        tag_ids=body.get("tag_ids") or (),
        process_config=body.get("process_config"),
        enable_multimodel=body.get("enable_multimodel"),
        metadata=body.get("metadata"),
        folder_path=body.get("folder_path") or "",
    )


class IntakeView(ApiView):
    def stored(self, stored: Stored, code: str) -> Response:
        """The new document; for one that was there already the envelope of contract knowledge 4.3."""
        warning = space_warning()
        extra = {"warning": warning} if warning else {}
        if not stored.duplicate:
            return self.render(stored.document, **extra)
        name = stored.document.file_name if code == "duplicate_file" else stored.document.source
        kind = "File" if code == "duplicate_file" else "URL"
        message = f"{kind} already exists: {name}"
        if stored.mismatch:
            message += f". The name of the uploaded file does not match its type: the content is .{stored.document.file_type}"
        return Response({"success": False, "message": message, "data": DocumentOut(stored.document).data, "code": code}, status=409)


class DocumentUploadView(IntakeView):
    parser_classes = [UploadParser, StrictJSONParser]
    operations = {
        "POST": Op(
            "document.create",
            "Upload a file",
            body=UploadIn,
            reply=DocumentOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            multipart=True,
            description="The same bytes twice in one base answer 409 with the document that is there (`code: duplicate_file`).",
            tags=TAGS,
        )
    }

    def post(self, request: Any, kb_id: str) -> Response:
        base = base_get(actor=self.actor, kb_id=kb_id)
        body = self.read()
        upload = body["file"]
        file_name = body.get("fileName") or getattr(upload, "raw_name", "") or upload.name
        stored = document_receive(
            actor=self.actor,
            base=base,
            upload=upload,
            file_name=file_name,
            arrival=arrival_of(body),
            same_name=body.get("on_same_name") or "keep",
        )
        return self.stored(stored, "duplicate_file")


class DocumentUrlView(IntakeView):
    operations = {
        "POST": Op(
            "document.create",
            "Import a web page or a file at an address",
            body=UrlIn,
            reply=DocumentOut,
            status=201,
            errors=(400, 401, 403, 404, 409),
            examples={"page": {"url": "https://example.com/handbook"}, "file": {"url": "https://example.com/a.pdf", "file_name": "a.pdf"}},
            tags=TAGS,
        )
    }

    def post(self, request: Any, kb_id: str) -> Response:
        base = base_get(actor=self.actor, kb_id=kb_id)
        body = self.read()
        names = {name: body[name] for name in ("url", "title", "file_name", "file_type")}
        return self.stored(document_import_url(actor=self.actor, base=base, arrival=arrival_of(body), **names), "duplicate_url")


class DocumentManualView(IntakeView):
    operations = {
        "POST": Op(
            "document.create",
            "Write a Markdown document",
            body=ManualIn,
            reply=DocumentOut,
            examples={"publish": {"title": "Opening hours", "content": "# Hours\n\nMonday to Friday, 9 to 18.", "status": "publish"}},
            tags=TAGS,
        )
    }

    def post(self, request: Any, kb_id: str) -> Response:
        base = base_get(actor=self.actor, kb_id=kb_id)
        body = self.read()
        texts = {name: body[name] for name in ("title", "content", "status")}
        return self.stored(Stored(document_write(actor=self.actor, base=base, arrival=arrival_of(body), **texts)), "")


class ManualUpdateView(ApiView):
    operations = {
        "PUT": Op(
            "document.update",
            "Replace the text of a Markdown document",
            body=ManualUpdateIn,
            reply=DocumentOut,
            errors=(400, 401, 403, 404, 409),
            description="Saved as a draft it is found nowhere until it is published.",
            tags=TAGS,
        )
    }

    def put(self, request: Any, document_id: str) -> Response:
        body = self.read()
        document = document_get(actor=self.actor, document_id=document_id)
        return self.render(document_rewrite(actor=self.actor, document=document, **body))
