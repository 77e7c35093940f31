"""The trash: what was deleted and can be brought back, or removed for good."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from apps.common.api.views import ApiView, Empty, Op, PageQuery
from apps.knowledge.api.serializers.bases import BaseOut
from apps.knowledge.api.serializers.trash import TrashDocumentOut, TrashIdsIn, TrashOut, TrashPurgedOut, TrashRestoredOut
from apps.knowledge.selectors import base_get, base_row, trash_base_get, trash_documents, trash_documents_get, trash_list
from apps.knowledge.services import base_purge, base_restore, documents_purge, documents_restore

TAGS = ("trash",)


class TrashView(ApiView):
    operations = {
        "GET": Op(
            "trash.read",
            "List what is in the trash",
            reply=TrashOut,
            shape="list",
            description="Deleted bases, latest first; then bases of which documents are in the trash.",
            tags=TAGS,
        )
    }

    def get(self, request: Any) -> Response:
        return self.render(trash_list(actor=self.actor))


class TrashBaseView(ApiView):
    operations = {
        "DELETE": Op("trash.purge", "Remove a deleted base for good", shape="message", errors=(400, 401, 403, 404, 409), tags=TAGS)
    }

    def delete(self, request: Any, kb_id: str) -> Response:
        base_purge(actor=self.actor, base=trash_base_get(actor=self.actor, kb_id=kb_id))
        return self.render(None, message="Removed for good")


class TrashBaseRestoreView(ApiView):
    operations = {
        "POST": Op(
            "trash.restore",
            "Bring a deleted base back",
            body=Empty,
            reply=BaseOut,
            errors=(400, 401, 403, 404, 409),
            description="With every document that was deleted with it; those deleted before stay in its trash.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, kb_id: str) -> Response:
        base = base_restore(actor=self.actor, base=trash_base_get(actor=self.actor, kb_id=kb_id))
        return self.render(base_row(actor=self.actor, base=base))


class TrashDocumentsView(ApiView):
    operations = {
        "GET": Op("trash.read", "List deleted documents of a base", query=PageQuery, reply=TrashDocumentOut, shape="page", tags=TAGS)
    }

    def get(self, request: Any, kb_id: str) -> Response:
        asked = self.asked()
        rows = trash_documents(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id))
        return self.page(rows, asked["page"], asked["page_size"])


class TrashDocumentsRestoreView(ApiView):
    operations = {
        "POST": Op(
            "trash.restore",
            "Bring deleted documents back",
            body=TrashIdsIn,
            reply=TrashRestoredOut,
            invalid_code=1000,
            description="`failed` names those whose content was added again in the meantime; ids that are not in the trash are left out.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, kb_id: str) -> Response:
        ids = self.read()["ids"]
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = trash_documents_get(actor=self.actor, base=base, ids=ids)
        return self.render(documents_restore(actor=self.actor, base=base, documents=documents))


class TrashDocumentsPurgeView(ApiView):
    operations = {
        "POST": Op("trash.purge", "Remove deleted documents for good", body=TrashIdsIn, reply=TrashPurgedOut, invalid_code=1000, tags=TAGS)
    }

    def post(self, request: Any, kb_id: str) -> Response:
        ids = self.read()["ids"]
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = trash_documents_get(actor=self.actor, base=base, ids=ids)
        return self.render({"purged_count": documents_purge(actor=self.actor, base=base, documents=documents)})
