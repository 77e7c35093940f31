"""Reading copies of bases: how far they are, what one would do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.jobs.models import LIVE
from apps.common.policy import authorize
from apps.knowledge.models import CopyRun, Document, KnowledgeBase, ParseStatus
from apps.knowledge.selectors.documents import PROGRESS_KEPT

Mark = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Documents a copy would bring, remove from the target, and leave as they are."""

    missing: int
    surplus: int
    same: int


def copy_hindrance(source: KnowledgeBase, target: KnowledgeBase) -> str:
    """Why a base cannot be copied onto another, "" when it can."""
    if source.pk == target.pk:
        return _("A knowledge base cannot be copied onto itself. Choose another one, or leave it out for a new one.")
    if source.type != target.type:
        return _("Both bases must be of the same type.")
    if source.embedding_model_id != target.embedding_model_id:
        return _("Both bases must use the same embedding model.")
    return ""


def mark_of(file_hash: str, parse_status: str, kind: str, source: str, title: str) -> Mark:
    """What makes two documents the same to a mirror: their content, and whether it could be read."""
    return file_hash or f"{kind}:{source}:{title}", parse_status == ParseStatus.FAILED


def documents_marked(kb_id: int) -> list[tuple[int, Mark]]:
    """(primary key, mark) of the live documents of a base, oldest first."""
    rows = Document.objects.filter(kb_id=kb_id, deleted_at__isnull=True).exclude(type=Document.Type.FAQ).order_by("pk")
    return [(pk, mark_of(*rest)) for pk, *rest in rows.values_list("pk", "file_hash", "parse_status", "type", "source", "title")]


def surplus_of(wanted: list[tuple[int, Mark]], there: list[tuple[int, Mark]]) -> list[int]:
    """Those of `there` that have no counterpart in `wanted`, counting each as often as it occurs."""
    left = Counter(mark for _pk, mark in wanted)
    surplus = []
    for pk, mark in there:
        if left[mark] > 0:
            left[mark] -= 1
        else:
            surplus.append(pk)
    return surplus


def copy_plan(*, actor: Actor, source: KnowledgeBase, target: KnowledgeBase) -> CopyPlan:
    """What copying one base onto another would do now."""
    authorize(actor, "base.copy", source)
    wanted, there = documents_marked(source.pk), documents_marked(target.pk)
    missing, surplus = len(surplus_of(there, wanted)), len(surplus_of(wanted, there))
    return CopyPlan(missing, surplus, len(wanted) - missing)


def copy_get(*, actor: Actor, task_id: str) -> CopyRun:
    """The copy a task id names. Raises: InvalidInput when it is no such id; NotFound when it is unknown, foreign, or older than a day."""
    authorize(actor, "base.copy_progress")
    parts = task_id.split("_")
    if len(parts) < 6 or parts[:2] != ["kb", "clone"] or not parts[2].isdigit():
        raise InvalidInput(_("This is not the id of a task."), field="task_id", api_code=1000)
    found = _visible(actor).filter(task_id=task_id, created_at__gt=timezone.now() - PROGRESS_KEPT).first()
    if found is None or int(parts[2]) != found.space_id or not _within(actor, found):
        raise NotFound(_("Task not found."))
    return found  # type: ignore[no-any-return]


def _visible(actor: Actor) -> Any:
    return CopyRun.objects.visible_to(actor)


def _within(actor: Actor, run: CopyRun) -> bool:
    """SECURITY: a key limited to some bases follows no copy of others."""
    return actor.kb_uids is None or run.source_uid in actor.kb_uids and (run.is_new or run.target_uid in actor.kb_uids)


def copies_live(*, actor: Actor) -> list[CopyRun]:
    """Copies of the space that are waiting or under way, oldest first."""
    authorize(actor, "base.copy_progress")
    return [run for run in _visible(actor).filter(state__in=LIVE).order_by("pk") if _within(actor, run)]


def copies_by_pk(*, actor: Actor, pks: list[int]) -> list[CopyRun]:
    """Copies of the space by primary key, whatever their state."""
    authorize(actor, "base.copy_progress")
    return [run for run in _visible(actor).filter(pk__in=pks[:50]).order_by("pk") if _within(actor, run)]
