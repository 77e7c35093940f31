"""An import of entries as pages show it: counts, progress, rows to correct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from apps.common.actor import Actor
from apps.common.jobs.models import RunState
from apps.common.jobs.service import has_worker
from apps.faq.models import FaqImportRow, FaqImportRun
from apps.faq.selectors import FAILURES_AT_ONCE, import_counts, import_failures, sentence
from apps.faq.services import IncomingRow, cell_of, draft_of, field_of, texts_of
from apps.knowledge.models import KnowledgeBase

ENCODINGS = ("utf-8", "gb18030", "big5", "utf-16", "shift_jis", "euc-kr", "windows-1252", "iso-8859-1")
FIELD_WORDS = {
    "tag_name": gettext_lazy("Tag"),
    "tag_id": gettext_lazy("Tag number"),
    "standard_question": gettext_lazy("Standard question"),
    "similar_questions": gettext_lazy("Similar questions"),
    "negative_questions": gettext_lazy("Negative questions"),
    "answers": pgettext_lazy("of a question", "Answers"),
    "answer_all": gettext_lazy("Give all answers"),
    "answer_strategy": gettext_lazy("Way of answering"),
    "is_disabled": gettext_lazy("Disabled"),
    "is_enabled": gettext_lazy("Enabled"),
    "not_recommended": gettext_lazy("Not recommended"),
    "is_recommended": gettext_lazy("Recommended"),
}
#: What can be corrected in place, with the names rows may have for it.
EDITED = ("standard_question", "similar_questions", "negative_questions", "answers", "tag_name")


def result_counts(run: FaqImportRun) -> list[dict[str, Any]]:
    """The figures of an import, in the order in which people ask for them."""
    counts = run.counts or {}
    failed = counts.get("failed", 0)
    return [
        {"label": _("Rows"), "count": run.progress_total},
        {"label": pgettext("rows of an import", "Added"), "count": counts.get("added", 0)},
        {"label": _("Merged"), "count": counts.get("merged", 0)},
        {"label": _("Skipped"), "count": counts.get("skipped", 0)},
        {"label": _("Failed"), "count": failed, "kind": "danger" if failed else ""},
        *([{"label": _("Taken in part"), "count": counts["partial"]}] if counts.get("partial") else []),
        *([{"label": _("Removed"), "count": run.removed}] if run.removed else []),
    ]


def run_context(actor: Actor, base: KnowledgeBase, run: FaqImportRun, *, page: int = 1) -> dict[str, Any]:
    """Context of `portal/_faq_run.html`."""
    if run.is_live:
        run.counts = import_counts(actor=actor, run=run)
    counts = run.counts or {}
    settled = sum(counts.get(name, 0) for name in ("added", "merged", "skipped", "failed"))
    rows, total = import_failures(actor=actor, run=run, offset=(page - 1) * FAILURES_AT_ONCE)
    done = run.state == RunState.DONE
    arguments = [base.space_id, base.uid, run.task_id]
    address = reverse("faq-import-run", args=arguments)
    pages = max(1, -(-total // FAILURES_AT_ONCE))
    return {
        "base": base,
        "run": run,
        "counts": result_counts(run),
        "is_live": run.is_live,
        "is_done": done,
        "settled": min(settled, run.progress_total),
        "waits_for_worker": run.state == RunState.QUEUED and not has_worker(run.kind),
        "state_text": state_text(run),
        "failures": [failure_row(row) for row in rows] if not run.is_live else [],
        "failure_count": total if not run.is_live else 0,
        "page": page,
        "page_links": [{"number": n, "href": f"{address}?page={n}", "current": n == page} for n in range(1, pages + 1)]
        if pages > 1
        else [],
        "first_failure": (page - 1) * FAILURES_AT_ONCE,
        "run_href": address,
        "retry_href": reverse("faq-import-retry", args=arguments),
        "reasons_href": reverse("faq-import-reasons", args=arguments),
        "stop_href": reverse("faq-import-stop", args=arguments),
        "start_href": reverse("faq-import-start", args=arguments),
        "space_id": base.space_id,
    }


def state_text(run: FaqImportRun) -> str:
    """What an import is doing, or how it ended."""
    if run.state == RunState.QUEUED:
        return _("Waiting for its turn")
    if run.state == RunState.RUNNING:
        return _("Checking the rows") if not run.is_checked else _("Importing")
    if run.state == RunState.CANCELLED:
        return _("Stopped. What was imported by then is in the base.")
    if run.state == RunState.FAILED:
        return _("The import broke off. What was imported by then is in the base; start it again to bring the rest.")
    if run.dry_run:
        return _("Checked. Nothing has been changed yet.")
    failed = (run.counts or {}).get("failed", 0)
    return _("Imported, but some rows could not be taken.") if failed else _("Everything was imported.")


def failure_row(row: FaqImportRow) -> dict[str, Any]:
    """A row that was not taken, or not whole, with what can be corrected."""
    return {
        "number": row.index + 1,
        "code": row.reason,
        "reason": sentence(row.reason, row.facts),
        "is_partial": row.is_partial,
        "title": values_of(row)["standard_question"],
        "values": values_of(row),
        "index": row.index,
    }


def values_of(row: FaqImportRow) -> dict[str, str]:
    """The texts of a row as cells: what was understood of it, else what was sent."""
    if isinstance(row.draft, Mapping):
        draft = row.draft
        lists = {name: cell_of(draft.get(name) or ()) for name in ("similar_questions", "negative_questions", "answers")}
        return {"standard_question": draft.get("standard_question") or "", "tag_name": draft.get("tag_name") or "", **lists}
    found = dict.fromkeys(EDITED, "")
    if isinstance(row.raw, Mapping):
        for name, value in row.raw.items():
            if (field := field_of(str(name))) in found and not found[field]:
                found[field] = cell_of([str(each) for each in value]) if isinstance(value, list) else str(value)
    elif row.raw is not None:
        found["standard_question"] = str(row.raw)[:8000]
    return found


def corrected(rows: Sequence[FaqImportRow], posted: Mapping[str, str]) -> list[IncomingRow]:
    """Failed rows as the person corrected them; one whose box was cleared is left out. Flags stay as they were sent."""
    found = []
    for row in rows:
        if not posted.get(f"take-{row.index}"):
            continue
        values: dict[str, Any] = {name: posted.get(f"{name}-{row.index}", "") for name in EDITED}
        raw = {**values, "rowNumber": row.index + 1}
        kept = row.draft if isinstance(row.draft, Mapping) else {}
        for name in ("similar_questions", "negative_questions", "answers"):
            values[name] = texts_of(values[name])
        flags = {name: kept.get(name) for name in ("is_enabled", "is_recommended", "answer_strategy")}
        found.append(IncomingRow(raw=raw, draft=draft_of({**flags, **values})))
    return found
