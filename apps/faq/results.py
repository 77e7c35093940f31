"""What an import came to, in the contract's shapes: failed rows inline and as a file, the last result of a base (contract content F12)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from apps.faq.drafts import Draft
from apps.faq.exporting import Export
from apps.faq.files import HEADERS, cell_of, escaped
from apps.faq.models import FaqEntry, FaqImportRow, FaqImportRun
from apps.faq.reasons import sentence

#: First column of the file of failed rows; the first seven of an export follow, so that a corrected file can be imported again.
REASON_HEADER = "错误原因"
PRE, POST = "pre_validation", "post_validation"


def failed_entry(row: FaqImportRow) -> dict[str, Any]:
    """A row that was not taken, or not whole, as FailedEntry has it."""
    draft = _shown(row)
    whole: dict[str, Any] = {
        "index": row.index,
        "reason": sentence(row.reason, row.facts),
        "failure_type": row.facts.get("failure_type") or PRE,
        "standard_question": draft.standard_question,
    }
    optional: dict[str, Any] = {
        "is_partial_failure": row.is_partial,
        "tag_name": draft.tag_name,
        "similar_questions": list(draft.similar_questions),
        "negative_questions": list(draft.negative_questions),
        "answers": list(draft.answers),
        "answer_all": draft.answer_strategy != FaqEntry.Strategy.RANDOM,
        "is_disabled": draft.is_enabled is False,
        "removed_similar_questions": list(row.facts.get("removed_similar", ())),
        "removed_negative_questions": list(row.facts.get("removed_negative", ())),
    }
    return whole | {name: value for name, value in optional.items() if value}


def failures_csv(rows: Iterable[FaqImportRow]) -> Export:
    """Failed rows as a file, each with its reason in the reader's language."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([REASON_HEADER, *HEADERS[:7]])
    for row in rows:
        draft = _shown(row)
        cells = [
            sentence(row.reason, row.facts),
            draft.tag_name,
            draft.standard_question,
            cell_of(list(draft.similar_questions)),
            cell_of(list(draft.negative_questions)),
            cell_of(list(draft.answers)),
            _truth(draft.answer_strategy != FaqEntry.Strategy.RANDOM),
            _truth(draft.is_enabled is False),
        ]
        writer.writerow([escaped(cell) for cell in cells])
    return Export("faq_import_failures.csv", "text/csv; charset=utf-8", ("\ufeff" + out.getvalue()).encode("utf-8", "replace"))


def last_result(run: FaqImportRun) -> dict[str, Any]:
    """What a base keeps of the last import that changed it."""
    counts = {name: int(run.counts.get(name, 0)) for name in ("added", "merged", "skipped", "failed", "partial")}
    took = int((run.finished_at - run.started_at).total_seconds()) if run.finished_at and run.started_at else 0
    whole = {
        "total_entries": run.progress_total,
        "success_count": counts["added"] + counts["merged"] - counts["partial"],
        "failed_count": counts["failed"],
        "partial_failed_count": counts["partial"],
        "skipped_count": counts["skipped"],
        "merged_count": counts["merged"],
        "added_count": counts["added"],
        "import_mode": run.mode,
        "imported_at": _moment(run.finished_at),
        "task_id": run.task_id,
        "display_status": run.shown,
        "processing_time": took,
    }
    if counts["failed"] or counts["partial"]:
        whole["failed_entries_url"] = failures_url("/api/v1", run)
    return whole


def failures_url(prefix: str, run: FaqImportRun) -> str:
    """Where the file of an import's failed rows is, within the family of routes that was asked."""
    return f"{prefix}/faq/import/failures/{run.task_id}/csv"


def _moment(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z") if at is not None else None


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _shown(row: FaqImportRow) -> Draft:
    """What was understood of the row; of one that could not be understood, the texts that can be made out."""
    if row.draft is not None:
        return Draft.from_json(row.draft)
    raw = row.raw if isinstance(row.raw, dict) else {}
    answers = raw.get("answers")
    return Draft(
        str(raw.get("standard_question") or ""),
        answers=tuple(text for text in answers if isinstance(text, str)) if isinstance(answers, list) else (),
        tag_name=str(raw.get("tag_name") or ""),
    )
