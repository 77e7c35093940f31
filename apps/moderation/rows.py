"""Rows of background work as the admin draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from apps.common.jobs.models import Run, RunState
from apps.common.jobs.registry import job_kinds
from apps.knowledge.reasons import REASONS, reason_of
from apps.moderation.words import KINDS, STATES, TONES
from apps.sources.reasons import knows, words_of


@dataclass(frozen=True, slots=True)
class RunRow:
    run: Run
    key: str
    href: str
    kind: Any
    state: Any
    tone: str
    queue: str
    waits: bool
    subject: str
    subject_href: str
    reason: str
    progress: str
    took: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of an object's page. `state`: "" or the look of a mark before the value; `href`: where the value leads."""

    label: Any
    value: Any
    href: str = ""
    tone: str = ""
    code: bool = False


def when(moment: Any) -> str:
    """A moment in the portal's time zone, to the minute; a dash when there is none."""
    return date_format(localtime(moment), "Y-m-d H:i") if moment else "—"


def seconds(started: Any, ended: Any) -> str:
    """How long something took; "" when it has not both ends."""
    if not started or not ended:
        return ""
    spent = max(0.0, (ended - started).total_seconds())
    return f"{spent:.1f} s" if spent < 60 else _("%(minutes)d min %(seconds)d s") % {"minutes": spent // 60, "seconds": spent % 60}


def run_row(run: Run, served: set[str]) -> RunRow:
    queue = job_kinds.get(run.kind).queue
    waits = run.state == RunState.QUEUED and queue not in served
    subject, href = _subject(run)
    progress = f"{run.progress_done}/{run.progress_total} {run.progress_unit}".strip() if run.progress_total else ""
    return RunRow(
        run=run,
        key=f"{run.kind}-{run.pk}",
        href=reverse("admin:run", args=[run.kind, run.pk]),
        kind=KINDS.get(run.kind, run.kind),
        state=STATES[run.state],
        tone="bad" if waits else TONES.get(run.state, ""),
        queue=queue,
        waits=waits,
        subject=subject,
        subject_href=href,
        reason=run_reason(run.reason),
        progress=progress,
        took=seconds(run.started_at, run.finished_at),
    )


def run_reason(code: str) -> str:
    """A run's reason in words; codes of the jobs themselves have their own."""
    own = {
        "superseded": _("A newer run took its place"),
        "deleted": _("What it was about was deleted"),
        "move_failed": _("No document could be moved"),
        "cancelled": _("Stopped by a person"),
    }
    if not code:
        return ""
    return own.get(code) or str(reason_of(code).title if code in REASONS else words_of(code).title if knows(code) else code)


def _subject(run: Any) -> tuple[str, str]:
    """(what a run is about, its page): a document, or how many."""
    document = getattr(run, "document", None)
    if document is not None:
        return document.title, reverse("admin:knowledge_document_change", args=[document.pk])
    source = getattr(run, "source", None)
    if source is not None:
        return source.name, reverse("admin:sources_datasource_change", args=[source.pk])
    count = len(getattr(run, "document_refs", []) or [])
    base = getattr(run, "kb_ref", None) or getattr(run, "target_ref", None)
    href = reverse("admin:knowledge_knowledgebase_change", args=[base]) if base else ""
    if not count and base:
        return _("a whole knowledge base"), href
    return ngettext("%(count)d document", "%(count)d documents", count) % {"count": count}, href


def run_facts(run: Any, row: RunRow) -> list[Fact]:
    """Everything the row says, for people who look for a fault."""
    space = reverse("admin:spaces_space_change", args=[run.space_id])
    state = f"{row.state} · {_('No worker serves the queue %(queue)s.') % {'queue': row.queue}}" if row.waits else row.state
    return [
        Fact(_("State"), state, tone=row.tone),
        Fact(pgettext("run", "About"), row.subject, row.subject_href),
        Fact(_("Space"), run.space.name, space),
        Fact(_("Queue"), row.queue, code=True),
        Fact(_("Reason"), row.reason or "—"),
        Fact(_("Error"), run.error or "—", code=bool(run.error)),
        Fact(_("Progress"), row.progress or "—"),
        Fact(
            pgettext("run", "Attempts"),
            _("%(tries)d after passing faults, taken over %(takeovers)d times") % {"tries": run.attempt, "takeovers": run.takeovers},
        ),
        Fact(_("Worker"), run.worker or "—", code=bool(run.worker)),
        Fact(_("Lease until"), when(run.lease_until)),
        Fact(_("Not before"), when(run.not_before)),
        Fact(_("Stop asked for"), _("yes") if run.cancel_requested else _("no")),
        Fact(_("Made"), when(run.created_at)),
        Fact(_("Started"), when(run.started_at)),
        Fact(_("Ended"), when(run.finished_at) + (f" ({row.took})" if row.took else "")),
    ]
