"""An evaluation as the contract's clients ask for it: whatever they leave out is chosen."""

from __future__ import annotations

from django.utils.translation import gettext as _

from apps.chat.services.once import BUILT_IN
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import authorize
from apps.evaluation.models import EvaluationRun, QuestionSet
from apps.evaluation.services.runs import run_start
from apps.evaluation.services.sets import MAX_NAME, set_draw
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import as_uuid, base_get
from apps.llm.services.chat import chat_models


def evaluation_ask(*, actor: Actor, dataset_id: str = "", knowledge_base_id: str = "", chat_id: str = "") -> EvaluationRun:
    """Queue a run (contract content 10). `default` draws a set from the base once and asks the same one from then on.

    Raises: NotFound for a set or a base that is not there; InvalidInput when the space has no base, or the base nothing to ask about.
    """
    authorize(actor, "evaluation.manage")
    base = base_get(actor=actor, kb_id=knowledge_base_id) if knowledge_base_id else _latest(actor)
    chosen = _set(actor, dataset_id, base)
    models = chat_models()
    model_id = chat_id or (str(models[0].uid) if models else BUILT_IN)
    return run_start(actor=actor, question_set=chosen, base=base, model_id=model_id)


def _latest(actor: Actor) -> KnowledgeBase:
    base = KnowledgeBase.objects.visible_to(actor).order_by("-updated_at", "-pk").first()
    if base is None:
        raise InvalidInput(_("There is no knowledge base to evaluate. Make one first."), field="knowledge_base_id")
    return base  # type: ignore[no-any-return]


def _set(actor: Actor, dataset_id: str, base: KnowledgeBase) -> QuestionSet:
    rows = QuestionSet.objects.visible_to(actor)
    if dataset_id not in ("", "default"):
        uid = as_uuid(dataset_id)
        found = rows.filter(uid=uid).first() if uid else None
        if found is None:
            raise NotFound(_("Question set not found."))
        return found  # type: ignore[no-any-return]
    name = f"{base.name[: MAX_NAME - 11]} ({str(base.uid)[:8]})"
    return rows.filter(name=name).first() or set_draw(actor=actor, base=base, name=name)
