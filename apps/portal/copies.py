"""Copies of knowledge bases under way, as the list of bases shows them."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.actor import Actor
from apps.common.jobs.service import has_worker
from apps.common.policy import allowed
from apps.knowledge.models import CopyRun
from apps.knowledge.reasons import copy_error
from apps.knowledge.selectors import copies_live


def copies_context(actor: Actor) -> dict[str, Any]:
    """Context of `portal/_copies.html`."""
    live = copies_live(actor=actor)
    served = not live or has_worker("copy")
    return {
        "copies": [{"run": run, "line": _line(run, served)} for run in live],
        "copies_watched": ",".join(str(run.pk) for run in live),
        "may_copy": allowed(actor, "base.copy"),
        "space_id": actor.space_id,
    }


def _line(run: CopyRun, served: bool) -> str:
    if run.state == "queued" or not run.progress_total:
        return _("Waiting for its turn") if served else _("Waiting: no worker is running")
    values = {"done": f"{run.progress_done:,}", "total": f"{run.progress_total:,}"}
    return _("Document %(done)s of %(total)s") % values


def ended_toast(run: CopyRun) -> dict[str, str]:
    """What to say of a copy that was watched and has ended."""
    if run.state == "done":
        count = ngettext("%(count)s document", "%(count)s documents", run.progress_done) % {"count": f"{run.progress_done:,}"}
        if run.progress_failed:
            lost = _("%(count)d originals were not in the file store any more.") % {"count": run.progress_failed}
            return {"kind": "warning", "text": _("“%(name)s” is copied: %(count)s.") % {"name": run.name, "count": count}, "detail": lost}
        return {"kind": "success", "text": _("“%(name)s” is copied: %(count)s.") % {"name": run.name, "count": count}}
    if run.state == "cancelled":
        return {"kind": "info", "text": _("The copy of “%(name)s” was stopped.") % {"name": run.name}}
    text = _("“%(name)s” could not be copied.") % {"name": run.name}
    return {"kind": "danger", "text": text, "detail": copy_error(run.state, run.reason)}
