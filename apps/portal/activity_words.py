"""Acts of the activity log in words."""

from __future__ import annotations

import json
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from apps.common.models import Activity

ACTIONS: dict[str, Any] = {
    "kb.created": _("Base created"),
    "kb.updated": _("Settings changed"),
    "kb.deleted": _("Base deleted"),
    "kb.restored": _("Base restored"),
    "kb.duplicated": _("Base duplicated"),
    "kb.clone_started": _("Copy started"),
    "kb.clone_completed": _("Copy finished"),
    "kb.clone_failed": _("Copy failed"),
    "kb.reindex_started": _("Re-index started"),
    "kb.reindexed": _("Re-indexed"),
    "kb.reindex_cancelled": _("Re-index stopped"),
    "knowledge.created": _("Document added"),
    "knowledge.updated": _("Document changed"),
    "knowledge.deleted": _("Document deleted"),
    "knowledge.batch_deleted": _("Documents deleted"),
    "knowledge.restored": _("Document restored"),
    "knowledge.reparse_started": _("Parsing again"),
    "knowledge.parse_canceled": _("Parsing stopped"),
    "knowledge.move_started": _("Move started"),
    "knowledge.move_completed": _("Move finished"),
    "knowledge.move_failed": _("Move failed"),
    "faq.created": _("Entry added"),
    "faq.updated": _("Entry changed"),
    "faq.deleted": _("Entries deleted"),
    "faq.fields_updated": _("Entries changed"),
    "faq.import_started": _("Import of entries started"),
    "faq.import_completed": _("Entries imported"),
    "faq.import_failed": _("Import of entries broke off"),
    "tag.created": _("Tag created"),
    "tag.updated": _("Tag changed"),
    "tag.deleted": _("Tag deleted"),
    "knowledge.purged": _("Documents removed for good"),
    "kb.purged": _("Base removed for good"),
    "image.updated": _("Picture described"),
    "wiki.content_changed": _("Wiki page changed"),
    "wiki.folder_changed": _("Wiki folder changed"),
    "wiki.issue_changed": _("Wiki issue settled"),
    "wiki.import_started": _("Import of wiki pages started"),
    "source.created": _("Data source added"),
    "source.updated": _("Data source changed"),
    "source.credentials_changed": _("Credentials of a data source replaced"),
    "source.credentials_removed": _("Credentials of a data source removed"),
    "source.paused": _("Data source paused"),
    "source.resumed": _("Data source resumed"),
    "source.deleted": _("Data source removed"),
    "source.sync_started": _("Sync started"),
    "source.sync_completed": _("Sync finished"),
    "source.sync_failed": _("Sync failed"),
    "source.sync_canceled": _("Sync stopped"),
    "source.held_kept": _("Kept although gone at the source"),
    "moderator.opened": _("Contents opened by a moderator"),
}
OUTCOMES: dict[str, tuple[Any, str]] = {
    Activity.Outcome.SUCCESS: (_("Done"), "completed"),
    Activity.Outcome.ACCEPTED: (_("Accepted"), "pending"),
    Activity.Outcome.DENIED: (_("Denied"), "rejected"),
    Activity.Outcome.FAILED: (_("Failed"), "failed"),
    Activity.Outcome.PARTIAL: (_("In part"), "stalled"),
    Activity.Outcome.CANCELED: (_("Stopped"), "cancelled"),
}
FIELDS: dict[str, Any] = {
    "name": _("Name"),
    "title": _("Title"),
    "description": _("Description"),
    "content": _("Text"),
    "summary": _("Summary"),
    "aliases": _("Other names"),
    "page_type": _("Type"),
    "slug": pgettext_lazy("of a wiki page", "Address"),
    "folder": _("Folder"),
    "path": _("Path"),
    "is_enabled": _("In use"),
    "questions": _("Questions"),
    "chunks": _("Passages"),
    "image_info": _("Pictures"),
    "file_name": _("File name"),
    "file": _("File"),
    "parse_status": _("State"),
    "status": _("State"),
    "custom_metadata": _("Metadata"),
    "folder_path": _("Folder"),
    "tags": _("Tags"),
    "tag": _("Tag"),
    "standard_question": _("Standard question"),
    "similar_questions": _("Similar questions"),
    "negative_questions": _("Negative questions"),
    "answers": pgettext_lazy("of a question", "Answers"),
    "answer_strategy": _("Way of answering"),
    "is_recommended": _("Recommended"),
    "color": _("Colour"),
    "sort_order": _("Order"),
    "chunking_config": _("Splitting"),
    "indexing_strategy": _("Ways of finding"),
    "options": _("Further settings"),
    "embedding_model_id": _("Embedding model"),
    "summary_model_id": _("Language model"),
    "settings": _("Settings"),
    "resource_ids": _("Selected parts"),
    "schedule": _("Schedule"),
    "time_zone": _("Time zone"),
    "sync_mode": _("What is fetched"),
    "conflict_strategy": _("When changed here as well"),
    "deletion_policy": _("When gone at the source"),
    "log_retention_days": _("Days the history is kept"),
}
DETAILS: dict[str, Any] = {
    "count": _("How many"),
    "changed_fields": _("What changed"),
    "created": _("New"),
    "updated": _("Changed"),
    "renamed": _("Renamed"),
    "deleted": _("Deleted"),
    "held": _("Held"),
    "skipped": _("Skipped"),
    "failed": _("Failed"),
}


def action_word(action: str) -> str:
    """The act in words; an act that has none goes by its code."""
    return str(ACTIONS.get(action, action))


def subject_of(row: Activity) -> str:
    """What it was done to: one title, or the first of several."""
    details = row.details or {}
    titles = details.get("titles") or []
    if details.get("title"):
        return str(details["title"])
    more = int(details.get("count") or len(titles)) - 1
    if not titles:
        moved = (details.get("changes") or {}).get("folder_path")  # a folder that was renamed names no documents
        return f"{moved['before']} → {moved['after']}" if moved else ""
    return f"{titles[0]} +{more}" if more > 0 else str(titles[0])


def shown(value: Any) -> str:
    """A value of the log as text."""
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


def details_of(details: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """What else was written down: name, value, and whether the name is in words. Fields shown with before and after are left out."""
    lines = []
    for name, value in details.items():
        if name == "changed_fields" and isinstance(value, list):
            value = ", ".join(str(FIELDS.get(field, field)) for field in value)
        lines.append((str(DETAILS.get(name, name)), shown(value), name in DETAILS))
    return lines
