"""Copying bases: settings only, with contents, and how far a copy is."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from apps.common.api.views import ApiView, Empty, Op
from apps.knowledge.api.serializers.bases import BaseOut
from apps.knowledge.api.serializers.copies import CopyIn, CopyStartedOut, DuplicatedOut
from apps.knowledge.api.serializers.progress import CopyProgressOut
from apps.knowledge.selectors import base_get, base_row, copy_get
from apps.knowledge.services import base_copy, base_duplicate, copy_cancel

TAGS = ("knowledge bases",)


class BaseDuplicateView(ApiView):
    operations = {
        "POST": Op(
            "base.copy",
            "Copy the settings of a base into a new one",
            body=Empty,
            reply=DuplicatedOut,
            status=201,
            description="No documents, tags or pins. `knowledge_base` is the new base.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, kb_id: str) -> Response:
        source = base_get(actor=self.actor, kb_id=kb_id)
        copy = base_duplicate(actor=self.actor, base=source)
        shown = BaseOut(base_row(actor=self.actor, base=copy), context={"request": request, "actor": self.actor}).data
        data = {"source_id": str(source.uid), "target_id": str(copy.uid), "message": "Knowledge base duplicated", "knowledge_base": shown}
        return Response({"success": True, "data": data}, status=201)


class BaseCopyView(ApiView):
    operations = {
        "POST": Op(
            "base.copy",
            "Copy a base with its contents",
            body=CopyIn,
            reply=CopyStartedOut,
            errors=(400, 401, 403, 404, 409),
            invalid_code=1000,
            examples={"new base": {"source_id": "…"}, "mirror": {"source_id": "…", "target_id": "…"}},
            description=(
                "Runs in the background. Without a target a new base is made, which is seen once it is whole. An existing target becomes a "
                "mirror: what the source does not have is deleted there. The names `sourceId`, `targetId`, `taskId` are read as well."
            ),
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        source = base_get(actor=self.actor, kb_id=body["source_id"])
        target = base_get(actor=self.actor, kb_id=body["target_id"]) if body["target_id"] else None
        return self.render(base_copy(actor=self.actor, source=source, target=target, task_id=body["task_id"]))


class CopyProgressView(ApiView):
    operations = {"GET": Op("base.copy_progress", "Follow a copy", reply=CopyProgressOut, tags=TAGS)}

    def get(self, request: Any, task_id: str) -> Response:
        return self.render(copy_get(actor=self.actor, task_id=task_id))


class CopyCancelView(ApiView):
    operations = {
        "POST": Op(
            "base.copy",
            "Stop a copy",
            body=Empty,
            reply=CopyProgressOut,
            description="A base made for the copy goes; a mirrored one keeps what came so far. One that has ended stays as it is.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, task_id: str) -> Response:
        run = copy_get(actor=self.actor, task_id=task_id)
        copy_cancel(actor=self.actor, run=run)
        return self.render(copy_get(actor=self.actor, task_id=task_id))
