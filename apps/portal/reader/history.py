"""Earlier versions of a passage: who wrote each, when, and what the passage says otherwise now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.knowledge.models import Chunk, ChunkRevision
from apps.knowledge.selectors import revision_list
from apps.portal.reader.diffing import word_diff

MAX_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Version:
    """One earlier state. `diff`: what turns it into the text of now, empty when only the switch differs."""

    revision: int
    number: int
    who: str
    when: datetime
    is_enabled: bool
    content: str
    diff: list[dict[str, str]]


def history_context(actor: Actor, chunk: Chunk) -> dict[str, Any]:
    """Context of `portal/_passage_history.html`: the versions, newest first."""
    rows = revision_list(actor=actor, chunk=chunk)
    versions = [_version(chunk, row) for row in rows[:MAX_SHOWN]]
    total = rows.count() if len(versions) == MAX_SHOWN else len(versions)
    who = chunk.last_editor.username if chunk.last_editor else (_("unknown") if chunk.content_revision else _("parsing"))
    return {"chunk": chunk, "current": chunk.content_revision + 1, "current_who": who, "versions": versions, "older": total - len(versions)}


def _version(chunk: Chunk, row: ChunkRevision) -> Version:
    who = row.editor.username if row.editor else (_("unknown") if row.revision else _("parsing"))
    diff = word_diff(row.content, chunk.content) if row.content != chunk.content else []
    return Version(row.revision, row.revision + 1, who, row.edited_at, row.is_enabled, row.content, diff)
