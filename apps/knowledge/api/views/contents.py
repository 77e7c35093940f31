"""Tags and passages."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from apps.common.api.views import ApiView, Empty, Op
from apps.knowledge.api.serializers import chunks as chunk_shapes
from apps.knowledge.api.serializers.fields import LenientFlag
from apps.knowledge.api.serializers.tags import TagDeleteIn, TagIn, TagListQuery, TagOut, TagRowOut, TagUpdateIn
from apps.knowledge.models import Chunk
from apps.knowledge.selectors import (
    base_get,
    chunk_get,
    chunk_list,
    chunk_neighbours,
    document_get,
    revision_list,
    tag_get,
    tag_list,
)
from apps.knowledge.services import (
    chunk_revert,
    chunk_update,
    chunks_delete,
    question_delete,
    question_put,
    questions_regenerate,
    tag_create,
    tag_delete,
    tag_update,
)

TAGS = ("tags",)
CHUNKS = ("passages",)


class TagListView(ApiView):
    operations = {
        "GET": Op(
            "tag.read", "List tags of a base", query=TagListQuery, reply=TagRowOut, shape="nested_page", invalid_code=1000, tags=TAGS
        ),
        "POST": Op(
            "tag.write",
            "Create a tag",
            body=TagIn,
            reply=TagOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            examples={"tag": {"name": "safety", "color": "red"}},
            tags=TAGS,
        ),
    }

    def get(self, request: Any, kb_id: str) -> Response:
        asked = self.asked()
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self.page(tag_list(actor=self.actor, base=base, keyword=asked.get("keyword", "")), asked["page"], asked["page_size"])

    def post(self, request: Any, kb_id: str) -> Response:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self.render(tag_create(actor=self.actor, base=base, **self.read()))


class TagView(ApiView):
    operations = {
        "PUT": Op(
            "tag.write",
            "Change a tag",
            body=TagUpdateIn,
            reply=TagOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            tags=TAGS,
        ),
        "DELETE": Op("tag.write", "Delete a tag", body=TagDeleteIn, shape="message", tags=TAGS),
    }

    def put(self, request: Any, kb_id: str, tag_id: str) -> Response:
        tag = tag_get(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id), tag_id=tag_id)
        return self.render(tag_update(actor=self.actor, tag=tag, **self.read()))

    def delete(self, request: Any, kb_id: str, tag_id: str) -> Response:
        tag = tag_get(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id), tag_id=tag_id)
        asked = {name: LenientFlag().to_internal_value(request.query_params.get(name, "")) for name in ("force", "content_only")}
        tag_delete(actor=self.actor, tag=tag, keep_tag=bool(self.read().get("exclude_ids")), **asked)
        return self.render(None)


class ChunkListView(ApiView):
    operations = {
        "GET": Op(
            "chunk.read",
            "List passages of a document",
            query=chunk_shapes.ChunkListQuery,
            reply=chunk_shapes.ChunkOut,
            shape="page",
            invalid_code=1000,
            tags=CHUNKS,
        ),
        "DELETE": Op("chunk.write", "Delete every passage of a document", body=Empty, shape="message", tags=CHUNKS),
    }

    def get(self, request: Any, document_id: str) -> Response:
        asked = self.asked()
        document = document_get(actor=self.actor, document_id=document_id)
        rows = chunk_list(actor=self.actor, document=document, types=[kind for kind in asked.get("chunk_type", []) if kind])
        page, page_size = asked["page"], asked["page_size"]
        chunks = list(rows[(page - 1) * page_size : page * page_size])
        around = chunk_neighbours(actor=self.actor, chunks=chunks)
        shown = chunk_shapes.ChunkOut(chunks, many=True, context={"neighbours": around})  # type: ignore[arg-type]
        return Response({"success": True, "data": shown.data, "total": rows.count(), "page": page, "page_size": page_size})

    def delete(self, request: Any, document_id: str) -> Response:
        chunks_delete(actor=self.actor, document=document_get(actor=self.actor, document_id=document_id))
        return self.render(None, message="All passages deleted")


class ChunkReadView(ChunkListView):
    """The proxied families do not delete passages."""

    http_method_names = ["get", "head", "options"]
    operations = {"GET": ChunkListView.operations["GET"]}


class OneChunk(ApiView):
    def of(self, document_id: str, chunk_id: str) -> Chunk:
        document = document_get(actor=self.actor, document_id=document_id)
        return chunk_get(actor=self.actor, chunk_id=chunk_id, document=document)

    def shown(self, chunk: Chunk) -> dict[str, Any]:
        around = chunk_neighbours(actor=self.actor, chunks=[chunk])
        return dict(chunk_shapes.ChunkOut(chunk, context={"neighbours": around}).data)

    def edited(self, chunk: Chunk) -> Response:
        document = chunk.document
        return Response(
            {"success": True, "data": self.shown(chunk), "summary_status": document.summary_status, "description": document.description}
        )


class ChunkByIdView(OneChunk):
    operations = {"GET": Op("chunk.read", "Get a passage", reply=chunk_shapes.ChunkOut, tags=CHUNKS)}

    def get(self, request: Any, chunk_id: str) -> Response:
        return Response({"success": True, "data": self.shown(chunk_get(actor=self.actor, chunk_id=chunk_id))})


class ChunkView(OneChunk):
    operations = {
        "PUT": Op(
            "chunk.write",
            "Edit a passage, or turn it on or off",
            body=chunk_shapes.ChunkUpdateIn,
            reply=chunk_shapes.ChunkOut,
            errors=(400, 401, 403, 404, 409),
            examples={"edit": {"content": "The pump runs at 40 °C.", "expected_revision": 0}, "turn off": {"is_enabled": False}},
            tags=CHUNKS,
        ),
        "DELETE": Op("chunk.write", "Delete a passage", body=Empty, shape="message", tags=CHUNKS),
    }

    def put(self, request: Any, document_id: str, chunk_id: str) -> Response:
        body = self.read()
        return self.edited(chunk_update(actor=self.actor, chunk=self.of(document_id, chunk_id), **body))

    def delete(self, request: Any, document_id: str, chunk_id: str) -> Response:
        chunk = self.of(document_id, chunk_id)
        chunks_delete(actor=self.actor, document=chunk.document, chunks=[chunk])
        return self.render(None, message="Passage deleted")


class ChunkEditView(ChunkView):
    """The proxied families do not delete passages."""

    http_method_names = ["put", "options"]
    operations = {"PUT": ChunkView.operations["PUT"]}


class ChunkRevisionsView(OneChunk):
    operations = {"GET": Op("chunk.read", "List earlier states of a passage", reply=chunk_shapes.RevisionOut, shape="list", tags=CHUNKS)}

    def get(self, request: Any, document_id: str, chunk_id: str) -> Response:
        return self.render(revision_list(actor=self.actor, chunk=self.of(document_id, chunk_id)))


class ChunkRevertView(OneChunk):
    operations = {
        "POST": Op(
            "chunk.write",
            "Bring back an earlier state of a passage",
            body=chunk_shapes.RevertIn,
            reply=chunk_shapes.ChunkOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            tags=CHUNKS,
        )
    }

    def post(self, request: Any, document_id: str, chunk_id: str) -> Response:
        body = self.read()
        return self.edited(chunk_revert(actor=self.actor, chunk=self.of(document_id, chunk_id), **body))


class ChunkQuestionsView(ApiView):
    operations = {
        "PUT": Op(
            "chunk.write",
            "Add a question to a passage, or change one",
            body=chunk_shapes.QuestionIn,
            reply=chunk_shapes.QuestionOut,
            invalid_code=1000,
            description="Whoever asks the question finds the passage.",
            examples={"add": {"question": "How often is the pump checked?"}, "change": {"question": "…", "question_id": "0f3c…"}},
            tags=CHUNKS,
        ),
        "DELETE": Op(
            "chunk.write",
            "Delete a question of a passage",
            body=chunk_shapes.QuestionDeleteIn,
            shape="message",
            invalid_code=1000,
            tags=CHUNKS,
        ),
    }

    def put(self, request: Any, chunk_id: str) -> Response:
        body = self.read()
        chunk = chunk_get(actor=self.actor, chunk_id=chunk_id)
        made = question_put(actor=self.actor, chunk=chunk, question=body["question"], question_id=body.get("question_id") or "")
        return self.render(made)

    def delete(self, request: Any, chunk_id: str) -> Response:
        body = self.read()
        question_delete(actor=self.actor, chunk=chunk_get(actor=self.actor, chunk_id=chunk_id), question_id=body["question_id"])
        return self.render(None, message="Question deleted")


class ChunkQuestionsRegenerateView(ApiView):
    operations = {
        "POST": Op(
            "chunk.write",
            "Write the questions of a passage anew",
            body=Empty,
            reply=chunk_shapes.QuestionOut,
            shape="list",
            invalid_code=1000,
            description="By the chat model of the base (`summary_model_id`), in place of all there were; answers when they are written.",
            tags=CHUNKS,
        )
    }

    def post(self, request: Any, chunk_id: str) -> Response:
        return self.render(questions_regenerate(actor=self.actor, chunk=chunk_get(actor=self.actor, chunk_id=chunk_id)))
