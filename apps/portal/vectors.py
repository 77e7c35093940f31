"""Which vectors serve a base, and how far a re-index is, as the settings of the base show it."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.actor import Actor
from apps.common.policy import allowed
from apps.ingestion.selectors import ReindexPlan, run_facts, vector_state
from apps.knowledge.models import KnowledgeBase
from apps.llm.failures import FAILURES, failure_of
from apps.llm.selectors import Entry


def vectors_context(actor: Actor, base: KnowledgeBase) -> dict[str, Any]:
    """Context of `portal/_vectors.html`."""
    state = vector_state(actor=actor, base=base)
    run = run_facts(state.run) if state.run is not None else None
    is_live = run is not None and run["state"] in ("queued", "running")
    return {
        "base": base,
        "space_id": base.space_id,
        "vectors": state,
        "vectors_live": run if is_live else None,
        "vectors_line": _line(run) if run is not None and is_live else "",
        "vectors_wait": failure_of(run["reason"]) if run is not None and is_live and run["is_waiting"] else None,
        "vectors_failed": _failed(run) if run is not None and not is_live else "",
        "vectors_follows": not base.embedding_model_id,
        "vectors_percent": min(100, 100 * state.covered // state.passages) if state.passages else None,
        "may_reindex": allowed(actor, "base.reindex", base),
    }


def _line(run: dict[str, Any]) -> str:
    values = {"done": f"{run['done']:,}", "total": f"{run['total']:,}"}
    if run["waits_for_worker"]:
        return _("Waiting: no worker is running")
    if run["is_switching"]:
        return _("The new vectors take over: document %(done)s of %(total)s") % values
    return _("Passage %(done)s of %(total)s") % values if run["total"] else _("Waiting for its turn")


def _failed(run: dict[str, Any]) -> str:
    if run["state"] != "failed":
        return ""
    return str(failure_of(run["reason"]).why) if run["reason"] in FAILURES else _("The last re-index ended early: %(error)s") % run


def plan_lines(plan: ReindexPlan) -> list[str]:
    """What a re-index will do, a sentence each."""
    lines = [
        ngettext("%(count)s document", "%(count)s documents", plan.documents) % {"count": f"{plan.documents:,}"}
        + _(", ")
        + ngettext("%(count)s passage", "%(count)s passages", plan.passages) % {"count": f"{plan.passages:,}"}
    ]
    count = {"count": f"{plan.to_embed:,}"}
    if not plan.to_embed:
        lines.append(_("All vectors are there already; the change takes a moment."))
    elif plan.exact:
        lines.append(ngettext("%(count)s vector has to be made", "%(count)s vectors have to be made", plan.to_embed) % count)
    else:
        lines.append(_("At most %(count)s vectors have to be made") % count)
    if plan.to_embed:
        lines.append(_duration(plan.seconds))
        lines.append(_where(plan.model))
    return lines


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return _("How long it takes is seen once the first vectors are made")
    if seconds < 90:
        return _("About a minute, as fast as this model was lately")
    if seconds < 5400:
        return _("About %(minutes)d minutes, as fast as this model was lately") % {"minutes": round(seconds / 60)}
    return _("About %(hours)d hours, as fast as this model was lately") % {"hours": round(seconds / 3600)}


def _where(model: Entry | None) -> str:
    if model is None or model.is_local:
        return _("On this machine: free of charge, and no text leaves it")
    return _("The passages are sent to the endpoint of this model, which may cost money")
