"""What is written to the activity of a base about its wiki (contract content 5.7)."""

from __future__ import annotations

from typing import Any

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.wiki.models import WikiPage

SHOWN = 200


def record(actor: Actor, action: str, page: WikiPage, *, note: str = "", changes: dict[str, dict[str, Any]] | None = None) -> None:
    """One row: what was done to which page.

    `action`: ingest retract manual_create manual_edit manual_rename manual_move manual_delete revert.
    """
    audit(
        actor,
        "wiki.content_changed",
        page,
        target_type="wiki_page",
        target_id=str(page.uid),
        title=page.title[:SHOWN],
        action=action,
        target_slug=page.slug,
        version=page.version,
        note=note or None,
        changed_fields=list(changes) if changes else None,
        changes=changes,
    )
