"""Reading the trash: what was deleted and can still be brought back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, Sum
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.policy import authorize
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors.ids import as_uuid, clean_ids


@dataclass(frozen=True, slots=True)
class TrashRow:
    """A base with what the trash holds of it: the base itself (`is_base`), or documents of a base that is there."""

    base: KnowledgeBase
    is_base: bool
    documents: int
    size_bytes: int


def trash_days() -> float:
    """For how long what is deleted can be brought back; 0: not at all."""
    return float(settings.TRASH_DAYS)


def trash_documents(*, actor: Actor, base: KnowledgeBase) -> Any:
    """Documents of a live base that are in the trash, deleted last first."""
    authorize(actor, "trash.read", base)
    rows = Document.objects.filter(space_id=actor.space_id, kb=base, deleted_at__isnull=False, purge_at__isnull=False)
    return rows.select_related("kb").order_by("-deleted_at", "-pk")


def trash_documents_get(*, actor: Actor, base: KnowledgeBase, ids: Sequence[Any]) -> list[Document]:
    """Those of the named documents that are in the trash of a base. Raises: NotFound when none is."""
    uids = [uid for name in clean_ids(ids) if (uid := as_uuid(name))]
    found = list(trash_documents(actor=actor, base=base).filter(uid__in=uids)) if uids else []
    if not found:
        raise NotFound(_("None of these documents is in the trash."))
    return found


def _bases(actor: Actor) -> Any:
    rows = KnowledgeBase.objects.filter(space_id=actor.space_id, deleted_at__isnull=False, purge_at__isnull=False)
    return rows if actor.kb_uids is None else rows.filter(uid__in=actor.kb_uids)


def trash_base_get(*, actor: Actor, kb_id: Any) -> KnowledgeBase:
    """A deleted base that can be brought back. Raises: NotFound, the same for a foreign id as for one that never was."""
    authorize(actor, "trash.read")
    uid = as_uuid(kb_id)
    found = _bases(actor).filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("This knowledge base is not in the trash."))
    return found  # type: ignore[no-any-return]


def trash_list(*, actor: Actor) -> list[TrashRow]:
    """Deleted bases, latest first, then live bases of which documents are in the trash, by name. Three queries."""
    authorize(actor, "trash.read")
    figures = {
        kb_id: (count, size or 0)
        for kb_id, count, size in Document.objects.filter(space_id=actor.space_id, deleted_at__isnull=False, purge_at__isnull=False)
        .order_by()
        .values_list("kb_id")
        .annotate(count=Count("pk"), size=Sum("file_size"))
    }
    gone = [TrashRow(base, True, *figures.get(base.pk, (0, 0))) for base in _bases(actor).order_by("-deleted_at", "-pk")]
    live = KnowledgeBase.objects.visible_to(actor).filter(pk__in=figures).order_by("name", "pk")
    return gone + [TrashRow(base, False, *figures[base.pk]) for base in live]
