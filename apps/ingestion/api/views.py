"""Routes about processing: the trace of a document and the chunking preview."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from apps.common.api.views import ApiView, ObjectField, Op
from apps.common.errors import InvalidInput, PayloadTooLarge, Unavailable
from apps.ingestion.selectors import chunk_preview, document_trace, version_diff
from apps.knowledge.selectors import document_get


class AttemptQuery(serializers.Serializer[Any]):
    """`attempt`: which one; missing, zero or unreadable means the latest."""

    attempt = serializers.CharField(required=False, default="")


class TraceOut(serializers.Serializer[Any]):
    """Contract knowledge 4.18; `trace` is a node with `children`."""

    knowledge_id = serializers.UUIDField()
    attempt = serializers.IntegerField()
    latest_attempt = serializers.IntegerField()
    current_attempt = serializers.IntegerField()
    parse_status = serializers.CharField()
    current_stage = serializers.CharField(allow_blank=True)
    trace = serializers.JSONField()
    progress = serializers.JSONField(required=False, help_text="While work goes on: stage (parse, ocr, embed), done, total, unit.")
    last_error = serializers.JSONField(required=False)
    last_activity_at = serializers.DateTimeField(required=False)
    stall_state = serializers.CharField(required=False)


class StagesView(ApiView):
    operations = {
        "GET": Op("run.read", summary="What happened to a document, stage by stage", query=AttemptQuery, reply=TraceOut, tags=["documents"])
    }

    def get(self, request: Any, document_id: str) -> Response:
        raw = self.asked()["attempt"]
        document = document_get(actor=self.actor, document_id=document_id)
        return self.render(document_trace(actor=self.actor, document=document, attempt=int(raw) if raw.isdecimal() else None))


class SpansView(StagesView):
    """The same under the route family's older name; a class of its own gives the operation its own id."""


class VersionDiffQuery(serializers.Serializer[Any]):
    to = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=10**9, help_text="The other version; 0: the current one."
    )


class VersionDiffOut(serializers.Serializer[Any]):
    older = serializers.IntegerField()
    newer = serializers.IntegerField()
    added = serializers.IntegerField(help_text="Lines.")
    removed = serializers.IntegerField()
    lines = serializers.JSONField(help_text="Each: kind (added, removed, same, gap), old_no, new_no, text.")
    left_out = serializers.IntegerField()


class VersionDiffView(ApiView):
    operations = {
        "GET": Op(
            "document.read",
            "What changed in the text between two versions",
            query=VersionDiffQuery,
            reply=VersionDiffOut,
            tags=["versions"],
        )
    }

    def get(self, request: Any, document_id: str, number: int) -> Response:
        newer = self.asked()["to"]
        document = document_get(actor=self.actor, document_id=document_id)
        found = version_diff(actor=self.actor, document=document, older=number, newer=newer or document.version)
        return self.render(found)


class PreviewIn(serializers.Serializer[Any]):
    """Contract knowledge 11."""

    text = serializers.CharField(trim_whitespace=False, allow_blank=True, required=False, default="")
    chunking_config = ObjectField(required=False, default=dict)


class ChunkerPreviewView(ApiView):
    """Its errors have a shape of their own: `{success: false, error: text}` (contract knowledge 11)."""

    operations = {
        "POST": Op(
            "chunk.preview",
            summary="Cut a text into passages without storing anything, with the reason for the way it was cut",
            body=PreviewIn,
            reply=None,
            errors=(400, 401, 413, 504),
            examples={
                "a heading and a paragraph": {"text": "# Sensor\n\nCalibrate every quarter.", "chunking_config": {"chunk_size": 400}}
            },
            tags=["chunks"],
        )
    }

    def post(self, request: Any) -> Response:
        try:
            body = self.read()
            return self.render(chunk_preview(actor=self.actor, text=body["text"], config=body["chunking_config"]))
        except PayloadTooLarge as error:
            return Response({"success": False, "error": str(error), "limit": error.details.get("limit", 65536)}, status=413)
        except InvalidInput as error:
            return Response({"success": False, "error": str(error)}, status=400)
        except Unavailable as error:
            return Response({"success": False, "error": str(error)}, status=504)
