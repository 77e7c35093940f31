"""Sizes, states and kinds in words; and the texts of the admin's toolkit, which brings no translations of its own."""

from __future__ import annotations

from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

STATES: dict[str, Any] = {
    "queued": _("Waiting"),
    "running": _("Running"),
    "done": _("Done"),
    "failed": _("Failed"),
    "cancelled": _("Stopped"),
    "waiting": _("Waiting, and nobody serves the queue"),
}
KINDS: dict[str, Any] = {
    "parse": _("Read a file"),
    "ocr": _("Read pictures (OCR)"),
    "embed": _("Make vectors"),
    "embed_remote": _("Make vectors (endpoint)"),
    "enrich": _("Write summaries and questions"),
    "pictures": _("Read the text in pictures"),
    "describe": _("Describe pictures"),
    "reindex": _("Re-index vectors"),
    "cleanup": _("Finish a deletion"),
    "copy": _("Copy a base"),
    "move": _("Move documents"),
    "sync": _("Sync a data source"),
    "faq_import": _("Import question pairs"),
    "wiki_import": _("Import wiki pages"),
    "faq_index": _("Make passages of question pairs"),
    "evaluate": _("Evaluate knowledge bases"),
}
#: state of a run or document -> look of its mark
TONES = {
    "queued": "wait",
    "pending": "wait",
    "running": "live",
    "processing": "live",
    "finalizing": "live",
    "done": "good",
    "completed": "good",
    "failed": "bad",
    "cancelled": "off",
    "draft": "off",
    "deleting": "off",
    "hit": "good",
    "near": "wait",
    "miss": "warn",
    "skip": "off",
    "error": "bad",
}
REASONS: dict[str, Any] = {
    "exact": _("exact"),
    "both": _("words and meaning"),
    "words": _("words"),
    "meaning": _("meaning"),
    # of turns
    "explicit": _("named in the question"),
    "title": _("by its title"),
    "filename": _("by its file name"),
    "body": _("by its text"),
    "kb_meta": _("about the base"),
    "recent_synthesis": _("added lately"),
}


def size_text(size: int | None) -> str:
    """A size as people read it; a dash when it is not known."""
    return "—" if size is None else str(filesizeformat(size))


TOOLKIT = (
    gettext_noop("Filters"),
    gettext_noop("Apply Filters"),
    gettext_noop("Clear all filters"),
    gettext_noop("Reset filters"),
    gettext_noop("Type to search"),
    gettext_noop("No results found"),
    gettext_noop("This page yielded into no results. Create a new item or reset your filters."),
    gettext_noop("Select all rows"),
    gettext_noop("Select record"),
    gettext_noop("Light"),
    gettext_noop("Dark"),
    gettext_noop("System"),
    gettext_noop("Expand row"),
    gettext_noop("Unknown"),
    gettext_noop("Go back"),
    gettext_noop("Run the selected action"),
    gettext_noop("Objects"),
    gettext_noop("Click here to select the objects across all pages"),
    gettext_noop("Clear selection"),
    gettext_noop("Run"),
    gettext_noop("No data"),
    gettext_noop("All applications"),
    gettext_noop("True"),
    gettext_noop("False"),
    gettext_noop("All"),
    gettext_noop("From"),
    gettext_noop("To"),
    gettext_noop("Value"),
    gettext_noop("Log out"),
    gettext_noop("Change password"),
    gettext_noop("View site"),
    gettext_noop("Close"),
    gettext_noop("Toggle sorting"),
    gettext_noop("Remove from sorting"),
    gettext_noop("Show counts"),
    gettext_noop("Hide counts"),
)
