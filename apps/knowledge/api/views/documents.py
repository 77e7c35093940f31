"""Documents that are there: lists, changes, states, folders, moves."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from apps.common.api.views import ApiView, Empty, Op
from apps.common.errors import NotFound
from apps.knowledge.api.serializers import documents as shapes
from apps.knowledge.api.serializers.documents import DocumentOut
from apps.knowledge.api.serializers.progress import MoveProgressOut
from apps.knowledge.api.views.bases import BaseContentsView
from apps.knowledge.intake import stall_states
from apps.knowledge.models import IN_FLIGHT
from apps.knowledge.selectors import (
    DocumentFilters,
    base_get,
    document_get,
    document_list,
    document_search,
    documents_batch,
    documents_get,
    folder_tree,
    move_get,
)
from apps.knowledge.services import (
    document_cancel,
    document_reparse,
    document_update,
    documents_delete,
    documents_into_folder,
    documents_move,
    documents_reparse,
    folder_rename,
    summary_regenerate,
    tags_replace,
)

TAGS = ("documents",)


class DocumentListView(BaseContentsView):
    operations = {
        **BaseContentsView.operations,
        "GET": Op(
            "document.read",
            "List documents of a base",
            query=shapes.DocumentListQuery,
            reply=DocumentOut,
            shape="page",
            invalid_code=1000,
            tags=TAGS,
        ),
    }

    def get(self, request: Any, kb_id: str) -> Response:
        base = base_get(actor=self.actor, kb_id=kb_id)
        asked = self.asked()
        page, page_size = asked.pop("page"), asked.pop("page_size")
        given = {name: value for name, value in asked.items() if value not in ("", None) or name == "folder_path"}
        return self.page(document_list(actor=self.actor, base=base, filters=DocumentFilters(**given)), page, page_size)


class DocumentListOnlyView(DocumentListView):
    """The proxied families list under `documents`; clearing a base is not among their routes."""

    http_method_names = ["get", "head", "options"]
    operations = {"GET": DocumentListView.operations["GET"]}


class DocumentView(ApiView):
    operations = {
        "GET": Op("document.read", "Get a document", reply=DocumentOut, tags=TAGS),
        "PUT": Op(
            "document.update",
            "Change title, summary, custom metadata",
            body=shapes.DocumentUpdateIn,
            reply=DocumentOut,
            examples={"metadata": {"custom_metadata": {"department": "sales", "year": 2026}}},
            tags=TAGS,
        ),
        "DELETE": Op("document.delete", "Delete a document", reply=shapes.DeletedOut, errors=(401, 403, 404, 409), tags=TAGS),
    }

    def get(self, request: Any, document_id: str) -> Response:
        return self.render(document_get(actor=self.actor, document_id=document_id))

    def put(self, request: Any, document_id: str) -> Response:
        body = self.read()
        document = document_get(actor=self.actor, document_id=document_id)
        changed = document_update(
            actor=self.actor,
            document=document,
            title=body.get("title") or "",
            description=body.get("description"),
            custom_metadata=body.get("custom_metadata"),
        )
        return self.render(changed, message="Document updated")

    def delete(self, request: Any, document_id: str) -> Response:
        document = document_get(actor=self.actor, document_id=document_id)
        deleted = documents_delete(actor=self.actor, base=document.kb, documents=[document])
        return self.render(deleted, message="Deletion started")


class SummaryRegenerateView(ApiView):
    operations = {
        "POST": Op(
            "document.update",
            "Write the summary of a document anew",
            body=Empty,
            reply=DocumentOut,
            invalid_code=1000,
            description="By the chat model of the base (`summary_model_id`). A first summary is in the answer; a later one is `pending`.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, document_id: str) -> Response:
        return self.render(summary_regenerate(actor=self.actor, document=document_get(actor=self.actor, document_id=document_id)))


class DocumentBatchView(ApiView):
    operations = {
        "GET": Op(
            "document.read",
            "Get many documents",
            query=shapes.BatchQuery,
            reply=shapes.BatchDocumentOut,
            shape="list",
            invalid_code=1000,
            description="Ids that are unknown or not yours are left out.",
            tags=TAGS,
        )
    }

    def get(self, request: Any) -> Response:
        asked = self.asked()
        ids = [part for value in asked.get("ids", []) for part in value.split(",")]
        base = base_get(actor=self.actor, kb_id=asked["kb_id"]) if asked.get("kb_id") else None
        documents = documents_batch(actor=self.actor, ids=ids, base=base)
        stuck = stall_states(self.actor, [document for document in documents if document.parse_status in IN_FLIGHT])
        shown = shapes.BatchDocumentOut(documents, many=True, context={"stall_states": stuck})  # type: ignore[arg-type]
        return Response({"success": True, "data": shown.data})


class DocumentSearchView(ApiView):
    operations = {
        "GET": Op(
            "document.read",
            "Find documents by name",
            query=shapes.SearchQuery,
            reply=shapes.FoundDocumentOut,
            shape="list",
            invalid_code=1000,
            tags=TAGS,
        )
    }

    def get(self, request: Any) -> Response:
        asked = self.asked()
        rows, total = document_search(
            actor=self.actor,
            keyword=(asked.get("keyword") or asked.get("query") or "").strip(),
            recent=asked.get("recent", False),
            file_types=asked.get("file_types", ()),
            offset=asked["offset"],
            limit=asked["limit"],
        )
        return self.render(rows, has_more=asked["offset"] + len(rows) < total, total=total)


class DocumentReparseView(ApiView):
    operations = {
        "POST": Op(
            "document.reparse",
            "Parse a document again",
            body=shapes.ReparseIn,
            reply=DocumentOut,
            examples={"again": {}, "a locked PDF": {"password": "…"}},
            errors=(400, 401, 403, 404, 409),
            tags=TAGS,
        )
    }

    def post(self, request: Any, document_id: str) -> Response:
        body = self.read()
        document = document_get(actor=self.actor, document_id=document_id)
        done = document_reparse(
            actor=self.actor, document=document, process_config=body.get("process_config"), password=body.get("password", "")
        )
        return self.render(done, message="Reparse started")


class DocumentCancelView(ApiView):
    operations = {"POST": Op("document.cancel", "Stop parsing a document", body=Empty, reply=DocumentOut, tags=TAGS)}

    def post(self, request: Any, document_id: str) -> Response:
        document = document_get(actor=self.actor, document_id=document_id)
        return self.render(document_cancel(actor=self.actor, document=document), message="Parsing stopped")


class BatchReparseView(ApiView):
    operations = {
        "POST": Op(
            "document.reparse",
            "Parse many documents again",
            body=shapes.BatchReparseIn,
            reply=shapes.BatchReparsedOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        base = base_get(actor=self.actor, kb_id=body["kb_id"])
        documents = documents_get(actor=self.actor, base=base, ids=body["ids"])
        done = documents_reparse(actor=self.actor, base=base, documents=documents, process_config=body.get("process_config"))
        return self.render({"task_id": f"reparse-{done[0].uid}", "reparse_count": len(done)}, message="Reparse started")


class BatchDeleteView(ApiView):
    operations = {
        "POST": Op(
            "document.delete",
            "Delete many documents",
            body=shapes.IdsIn,
            reply=shapes.BatchDeletedOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        base = base_get(actor=self.actor, kb_id=body["kb_id"])
        documents = documents_get(actor=self.actor, base=base, ids=body["ids"])
        return self.render(documents_delete(actor=self.actor, base=base, documents=documents), message="Deletion started")


class TagsReplaceView(ApiView):
    operations = {
        "PUT": Op(
            "document.update", "Replace the tags of documents", body=shapes.TagsReplaceIn, shape="message", invalid_code=1000, tags=TAGS
        )
    }

    def put(self, request: Any) -> Response:
        body = self.read()
        if body.get("kb_id"):
            base = base_get(actor=self.actor, kb_id=body["kb_id"])
        else:
            known = documents_batch(actor=self.actor, ids=list(body["updates"])[:200])
            if not known:
                raise NotFound("Document not found.")
            base = known[0].kb
        tags_replace(actor=self.actor, base=base, updates=body["updates"])
        return self.render(None)


class IntoFolderView(ApiView):
    operations = {
        "POST": Op(
            "folder.update",
            "Put documents in a folder",
            body=shapes.IntoFolderIn,
            reply=shapes.RefiledOut,
            invalid_code=1000,
            examples={"file": {"kb_id": "…", "knowledge_ids": ["…"], "folder_path": "manuals/pumps"}},
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        base = base_get(actor=self.actor, kb_id=body["kb_id"])
        documents = documents_get(actor=self.actor, base=base, ids=body["knowledge_ids"], field_name="knowledge_ids")
        return self.render(documents_into_folder(actor=self.actor, base=base, documents=documents, path=body["folder_path"] or ""))


class FolderView(ApiView):
    operations = {
        "GET": Op("folder.read", "Show the folders of a base", reply=shapes.FolderTreeOut, tags=TAGS),
        "PUT": Op(
            "folder.update",
            "Rename, move or merge a folder",
            body=shapes.FolderRenameIn,
            reply=shapes.RefiledOut,
            invalid_code=1000,
            examples={"rename": {"from": "manuals", "to": "handbooks/manuals"}},
            tags=TAGS,
        ),
    }

    def get(self, request: Any, kb_id: str) -> Response:
        return self.render(folder_tree(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id)))

    def put(self, request: Any, kb_id: str) -> Response:
        body = self.read()
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self.render(folder_rename(actor=self.actor, base=base, source=body["from"], target=body["to"]))


class DocumentMoveView(ApiView):
    operations = {
        "POST": Op(
            "document.move",
            "Move documents to another base",
            body=shapes.MoveIn,
            reply=shapes.MoveStartedOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        source = base_get(actor=self.actor, kb_id=body["source_kb_id"])
        target = base_get(actor=self.actor, kb_id=body["target_kb_id"])
        documents = documents_get(actor=self.actor, base=source, ids=body["knowledge_ids"], field_name="knowledge_ids")
        run = documents_move(actor=self.actor, source=source, target=target, documents=documents, mode=body["mode"])
        shown = shapes.MoveStartedOut(run).data
        return Response({"success": True, "data": {**shown, "message": "Move started"}})


class MoveProgressView(ApiView):
    operations = {"GET": Op("document.read", "Follow a move", reply=MoveProgressOut, tags=TAGS)}

    def get(self, request: Any, task_id: str) -> Response:
        return self.render(move_get(actor=self.actor, task_id=task_id))
