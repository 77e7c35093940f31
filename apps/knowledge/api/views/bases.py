"""Knowledge bases, their settings and their activity."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from apps.common.api.errors import is_proxied
from apps.common.api.views import ApiView, Empty, Op
from apps.knowledge.api.serializers.bases import BaseIn, BaseListQuery, BaseOut, BaseUpdateIn, SettingsIn, settings_out
from apps.knowledge.api.serializers.chunks import ActivityOut, ActivityQuery
from apps.knowledge.rules.configs import chat_in_use, embedding_in_use, vision_in_use
from apps.knowledge.rules.pictures import vision_model_of
from apps.knowledge.selectors import activity_list, actor_names, base_get, base_list, base_row, has_documents, move_targets
from apps.knowledge.services import (
    base_clear,
    base_create,
    base_delete,
    base_pin_toggle,
    base_settings_update,
    base_update,
)

TAGS = ("knowledge bases",)
CREATE = {
    "documents": {"name": "Product handbook", "description": "Manuals and data sheets"},
    "own splitting": {
        "name": "Contracts",
        "chunking_config": {"chunk_size": 800, "chunk_overlap": 100, "strategy": "heading"},
        "indexing_strategy": {"vector_enabled": True, "keyword_enabled": True, "wiki_enabled": False, "graph_enabled": False},
    },
}


class BaseListView(ApiView):
    operations = {
        "GET": Op(
            "base.list",
            "List knowledge bases",
            query=BaseListQuery,
            reply=BaseOut,
            shape="list",
            description="Pinned first, then newest first. Not paged.",
            tags=TAGS,
        ),
        "POST": Op(
            "base.create",
            "Create a knowledge base",
            body=BaseIn,
            reply=BaseOut,
            status=201,
            errors=(400, 401, 403, 409),
            examples=CREATE,
            description="The two /v1/ families answer the bare base, /api/v1 answers it under `data`.",
            tags=TAGS,
        ),
    }

    def get(self, request: Any) -> Response:
        return self.render(base_list(actor=self.actor, creator=self.asked().get("creator", "")))

    def post(self, request: Any) -> Response:
        row = base_row(actor=self.actor, base=base_create(actor=self.actor, values=self.read()))
        if is_proxied(request.path):
            return Response(BaseOut(row).data, status=201)
        return self.render(row)


class BaseView(ApiView):
    operations = {
        "GET": Op("base.read", "Get a knowledge base", reply=BaseOut, tags=TAGS),
        "PUT": Op(
            "base.update",
            "Change a knowledge base",
            body=BaseUpdateIn,
            reply=BaseOut,
            examples={"rename": {"name": "Product handbook", "description": "Manuals"}},
            tags=TAGS,
        ),
        "DELETE": Op("base.delete", "Delete a knowledge base", shape="message", tags=TAGS),
    }

    def get(self, request: Any, kb_id: str) -> Response:
        return self.render(base_row(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id)))

    def put(self, request: Any, kb_id: str) -> Response:
        body = self.read()
        base = base_get(actor=self.actor, kb_id=kb_id)
        base = base_update(
            actor=self.actor, base=base, name=body["name"], description=body.get("description") or "", config=body.get("config")
        )
        return self.render(base_row(actor=self.actor, base=base))

    def delete(self, request: Any, kb_id: str) -> Response:
        base_delete(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id))
        return self.render(None, message="Knowledge base deleted successfully")


class BasePinView(ApiView):
    operations = {"PUT": Op("base.pin", "Pin or unpin a knowledge base", reply=BaseOut, tags=TAGS)}

    def put(self, request: Any, kb_id: str) -> Response:
        base = base_get(actor=self.actor, kb_id=kb_id)
        base_pin_toggle(actor=self.actor, base=base)
        return self.render(base_row(actor=self.actor, base=base))


class BaseMoveTargetsView(ApiView):
    operations = {"GET": Op("base.read", "List where documents of a base may move to", reply=BaseOut, shape="list", tags=TAGS)}

    def get(self, request: Any, kb_id: str) -> Response:
        return self.render(move_targets(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id)))


class BaseSettingsView(ApiView):
    operations = {
        "GET": Op("base.read", "Read the settings of a base", tags=TAGS),
        "PUT": Op(
            "base.update",
            "Change the settings of a base",
            body=SettingsIn,
            shape="message",
            examples={"splitting": {"documentSplitting": {"chunkSize": 800, "chunkOverlap": 100, "separators": ["\n\n", "\n"]}}},
            tags=TAGS,
        ),
    }

    def get(self, request: Any, kb_id: str) -> Response:
        base = base_get(actor=self.actor, kb_id=kb_id)
        has_files = has_documents(actor=self.actor, base=base)
        embedding = embedding_in_use(base.embedding_model_id) if base.indexing_strategy.get("vector_enabled") else {}
        chat = chat_in_use(base.summary_model_id)
        vision = vision_in_use(vision_model_of(base))
        row = base_row(actor=self.actor, base=base)
        return self.render(settings_out(row, has_files=has_files, embedding=embedding, chat=chat, vision=vision))

    def put(self, request: Any, kb_id: str) -> Response:
        body = self.read()
        base_settings_update(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id), values=body)
        return self.render(None, message="Settings saved")


class BaseContentsView(ApiView):
    """Shares its address with the document list; DELETE clears the base (contract knowledge 3.12)."""

    operations = {"DELETE": Op("base.clear", "Delete every document of a base", body=Empty, tags=TAGS)}

    def delete(self, request: Any, kb_id: str) -> Response:
        count = base_clear(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id))
        return Response({"success": True, "message": "Deletion started", "data": {"deleted_count": count}})


class BaseActivityView(ApiView):
    operations = {
        "GET": Op(
            "base.activity",
            "List what happened in a base",
            query=ActivityQuery,
            reply=ActivityOut,
            shape="list",
            description="Newest first; `next_cursor` is 0 only on an empty page.",
            tags=TAGS,
        )
    }

    def get(self, request: Any, kb_id: str) -> Response:
        asked = self.asked()
        rows = activity_list(
            actor=self.actor,
            base=base_get(actor=self.actor, kb_id=kb_id),
            after_id=asked["after_id"],
            action=asked.get("action", ""),
            outcome=asked.get("outcome", ""),
            who=asked.get("actor", ""),
            since=asked.get("from") or None,
            until=asked.get("to") or None,
            limit=asked["limit"],
        )
        self.render_context = {"actor_names": actor_names(actor=self.actor, who={row.actor for row in rows})}
        return self.render(rows, next_cursor=rows[-1].pk if rows else 0)
