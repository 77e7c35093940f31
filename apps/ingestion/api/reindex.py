"""Changing the embedding model of a base that has documents: what it takes, how far it is, stop."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from apps.common.actor import Actor
from apps.common.api.views import ApiView, Op
from apps.ingestion.selectors import reindex_plan, run_facts, vector_state
from apps.ingestion.services import reindex_cancel, reindex_start
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get

TAGS = ("models",)
DESCRIPTION = (
    "`serving` are the vectors that answer now, `stale` says that they are not those of the chosen model, `plan` what a re-index with "
    "`embedding_model_id` would take (seconds as measured lately, null when not known yet), `run` the latest one."
)


class ReindexQuery(serializers.Serializer[Any]):
    embedding_model_id = serializers.CharField(
        required=False, allow_blank=True, help_text="Plan for this model; left out: the one the base has chosen. Empty: the portal's own."
    )


class ReindexIn(serializers.Serializer[Any]):
    embedding_model_id = serializers.CharField(
        required=False, allow_blank=True, help_text="Left out: the one the base has chosen. Empty: the portal's own."
    )


class ReindexView(ApiView):
    operations = {
        "GET": Op("run.read", "See which vectors serve a base, and plan others", query=ReindexQuery, description=DESCRIPTION, tags=TAGS),
        "POST": Op(
            "base.reindex",
            "Re-index a base with another embedding model",
            body=ReindexIn,
            status=202,
            errors=(400, 401, 403, 404, 409),
            examples={"the portal's own": {"embedding_model_id": ""}},
            description="New vectors are made in the background while the old ones serve; the switch comes when all are there.",
            tags=TAGS,
        ),
        "DELETE": Op("base.reindex", "Stop a re-index; the vectors that served go on serving", errors=(401, 403, 404, 409), tags=TAGS),
    }

    def get(self, request: Any, kb_id: str) -> Response:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self.render(_shown(self.actor, base, self.asked().get("embedding_model_id", base.embedding_model_id)))

    def post(self, request: Any, kb_id: str) -> Response:
        wanted = self.read().get("embedding_model_id")
        base = base_get(actor=self.actor, kb_id=kb_id)
        run = reindex_start(actor=self.actor, base=base, model_id=base.embedding_model_id if wanted is None else wanted)
        return self.render(run_facts(run))

    def delete(self, request: Any, kb_id: str) -> Response:
        stopped = reindex_cancel(actor=self.actor, base=base_get(actor=self.actor, kb_id=kb_id))
        return self.render({"stopped": stopped})


def _shown(actor: Actor, base: KnowledgeBase, model_id: str) -> dict[str, Any]:
    state = vector_state(actor=actor, base=base)
    plan = reindex_plan(actor=actor, base=base, model_id=model_id)
    return {
        "vectors_on": state.is_on,
        "embedding_model_id": base.embedding_model_id,
        "serving": {"vector_space": state.serving_space, "model_id": state.serving.id if state.serving else ""},
        "stale": state.stale,
        "passages": state.passages,
        "covered": state.covered,
        "plan": {
            "embedding_model_id": model_id,
            "documents": plan.documents,
            "passages": plan.passages,
            "to_embed": plan.to_embed,
            "to_embed_is_exact": plan.exact,
            "seconds": None if plan.seconds is None else round(plan.seconds, 1),
            "is_local": bool(plan.model and plan.model.is_local),
        },
        "run": run_facts(state.run) if state.run else None,
    }
