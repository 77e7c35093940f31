"""What happened to a document, attempt by attempt and stage by stage, in words."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.actor import Actor
from apps.ingestion.selectors import document_trace
from apps.knowledge import reasons
from apps.knowledge.models import Document
from apps.portal.reader.places import place_text

STAGES = {
    "knowledge_processing": gettext_lazy("Whole run"),
    "docreader": gettext_lazy("Read the file"),
    "chunking": gettext_lazy("Cut into passages"),
    "embedding": gettext_lazy("Make vectors"),
    "multimodal": gettext_lazy("Read pictures (OCR)"),
    "postprocess": gettext_lazy("Finish"),
}
STATES = {"done": "done", "running": "running", "failed": "failed", "skipped": "skipped", "cancelled": "skipped", "pending": "waiting"}
OUTCOMES = {
    "done": gettext_lazy("done"),
    "running": gettext_lazy("running"),
    "failed": gettext_lazy("failed"),
    "skipped": gettext_lazy("not needed"),
    "cancelled": gettext_lazy("not reached"),
    "pending": gettext_lazy("waiting"),
}
FACTS = {
    "parser": gettext_lazy("reader %(value)s"),
    "characters": gettext_lazy("characters %(value)s"),
    "encoding": gettext_lazy("encoding %(value)s"),
    "pages": gettext_lazy("pages %(value)s"),
    "sheets": gettext_lazy("sheets %(value)s"),
    "slides": gettext_lazy("slides %(value)s"),
    "passages": gettext_lazy("passages %(value)s"),
    "vectors": gettext_lazy("vectors %(value)s"),
    "tier": gettext_lazy("cut by %(value)s"),
}
TIERS = {"heading": gettext_lazy("headings"), "heuristic": gettext_lazy("layout"), "legacy": gettext_lazy("size and separators")}
WARNINGS = {
    "opened_with_password": gettext_lazy("It was opened with a password, which was not kept; parsing it again asks for it"),
    "type_mismatch": gettext_lazy("The name claims another type than the content has; the content was believed"),
    "page_unreadable": gettext_lazy("A page whose text is garbled was left out"),
    "slide_damaged": gettext_lazy("A damaged slide was left out"),
    "missing_part": gettext_lazy("A part of the file is missing and was left out"),
    "attachment_not_read": gettext_lazy("An attachment could not be read"),
    "attachment_cut": gettext_lazy("There are more attachments than are read"),
    "invalid_json": gettext_lazy("The file breaks the rules of JSON, so it was read as text"),
    "page_damaged": gettext_lazy("A damaged page was left out"),
    "needs_ocr": gettext_lazy("Pages without text were not read"),
    "unreadable_text": gettext_lazy("Pages whose text is garbled were left out"),
    "hidden_sheet": gettext_lazy("A hidden sheet was read as well"),
    "hidden_slide": gettext_lazy("A hidden slide was read as well"),
    "formula_not_calculated": gettext_lazy("A formula was never calculated, so its value is unknown"),
    "replaced_characters": gettext_lazy("Some characters could not be read in this encoding"),
    "pictures_unread": gettext_lazy("The text in some pictures could not be read"),
    "pictures_undescribed": gettext_lazy("Some pictures could not be described by the vision model; the document is found without it"),
    "images_skipped": gettext_lazy("There are more pictures than are kept"),
    "tables_skipped": gettext_lazy("Tables were looked for on the first pages only"),
    "invalid_csv": gettext_lazy("The table breaks the rules of CSV, so it was read as text"),
    "wide_table": gettext_lazy("A very wide table was kept as lines of values"),
    "fallback_reader": gettext_lazy("The usual reader failed; a simpler one was used"),
}


def pipeline_context(actor: Actor, document: Document, attempt: int) -> dict[str, Any]:
    """Context of `portal/_pipeline.html`: the stages of one attempt on one time line; attempt 0 is the latest."""
    trace = document_trace(actor=actor, document=document, attempt=attempt or None)
    nodes = sorted(trace["trace"]["children"], key=lambda node: (node.get("started_at") is None, node.get("started_at") or timezone.now()))
    started = [node["started_at"] for node in nodes if node.get("started_at")]
    begin = min(started, default=None)
    end = max([node.get("finished_at") or timezone.now() for node in nodes if node.get("started_at")], default=None)
    address = reverse("document-pipeline", args=[document.space_id, document.uid])
    latest = trace["latest_attempt"]
    return {
        "attempt": trace["attempt"],
        "is_latest": trace["attempt"] == latest,
        "attempts": [
            {"label": str(number), "href": f"{address}?attempt={number}", "current": number == trace["attempt"]}
            for number in range(max(1, latest - 9), latest + 1)
        ],
        "waterfall": [_span(node, begin, end) for node in nodes],
        "begin": begin,
        "whole": duration_text((end - begin).total_seconds()) if begin and end else "",
        "last_error": _error(trace.get("last_error")),
        "stall": trace.get("stall_state", ""),
        "warnings": warnings_of(document),
    }


def _span(node: dict[str, Any], begin: datetime | None, end: datetime | None) -> dict[str, Any]:
    status = str(node["status"])
    shown: dict[str, Any] = {
        "name": str(STAGES.get(node["name"], node["name"])),
        "state": STATES.get(status, "waiting"),
        "length": None,
        "time": str(OUTCOMES.get(status, status)),
        "detail": _facts(node),
    }
    start = node.get("started_at")
    if start is None or begin is None or end is None:
        return shown
    stop = node.get("finished_at") or timezone.now()
    seconds = (stop - start).total_seconds()
    if status not in ("skipped", "cancelled"):
        whole = max((end - begin).total_seconds(), 0.001)
        shown["start"] = round(min(99.0, 100 * (start - begin).total_seconds() / whole), 2)
        shown["length"] = round(max(1.0, min(100 - shown["start"], 100 * seconds / whole)), 2)
        shown["time"] = duration_text(seconds)
    return shown


def _facts(node: dict[str, Any]) -> str:
    output = node.get("output") or {}
    found = []
    for name, words in FACTS.items():
        value = output.get(name)
        if value in (None, "", 0) and name not in ("passages", "vectors"):
            continue
        if value is None:
            continue
        if name == "tier":
            value = TIERS.get(str(value), value)
        found.append(str(words) % {"value": f"{value:,}" if isinstance(value, int) else value})
    if message := node.get("error_message"):
        found.append(str(message)[:300])
    return " · ".join(found)


def duration_text(seconds: float) -> str:
    """ "0.4 s", "12 s", "3 min 5 s"."""
    if seconds < 10:
        return _("%(count)s s") % {"count": f"{seconds:.1f}"}
    if seconds < 60:
        return _("%(count)s s") % {"count": int(seconds)}
    return _("%(min)d min %(s)d s") % {"min": int(seconds // 60), "s": int(seconds % 60)}


def _error(error: dict[str, Any] | None) -> dict[str, Any] | None:
    if not error:
        return None
    return {**error, "stage_name": str(STAGES.get(error["stage"], error["stage"]))}


def warnings_of(document: Document) -> list[dict[str, Any]]:
    """What a reader should know though the document was read: words, place, how often."""
    found = []
    for warning in document.warnings or []:
        code = str(warning.get("code", ""))
        words = WARNINGS.get(code) or (reasons.REASONS[code].title if code in reasons.REASONS else warning.get("message", ""))
        found.append(
            {
                "text": str(words),
                "place": place_text([warning.get("position") or {}]),
                "count": int(warning.get("count") or 1),
                "details": f"{code}: {warning.get('message', '')}",
            }
        )
    return found
