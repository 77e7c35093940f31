"""Reading knowledge bases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, Sum
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.policy import authorize
from apps.knowledge.models import BaseVisit, Document, KnowledgeBase, ParseStatus, Pin
from apps.knowledge.selectors.ids import as_uuid


@dataclass(frozen=True, slots=True)
class BaseCounts:
    """Live documents of a base; `processing` are those waiting or being parsed (not those findable already), `passages` their chunks.

    `vectors`: passages that have one; `changed_at`: when any live document changed last, None without documents. `entries`: question
    pairs of an FAQ base, which are no documents.
    """

    documents: int = 0
    processing: int = 0
    failed: int = 0
    passages: int = 0
    vectors: int = 0
    changed_at: datetime | None = None
    entries: int = 0


@dataclass(frozen=True, slots=True)
class BaseRow:
    """A base with what lists show beside it."""

    base: KnowledgeBase
    counts: BaseCounts
    pinned_at: datetime | None
    visited_at: datetime | None = None

    @property
    def is_pinned(self) -> bool:
        return self.pinned_at is not None


def base_get(*, actor: Actor, kb_id: Any) -> KnowledgeBase:
    """The live base of this id. Raises: NotFound, the same for a foreign id as for one that never was."""
    uid = as_uuid(kb_id)
    found = KnowledgeBase.objects.visible_to(actor).select_related("creator").filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("Knowledge base not found."))
    return found  # type: ignore[no-any-return]


def base_row(*, actor: Actor, base: KnowledgeBase) -> BaseRow:
    """One base with counts and pin, in a constant number of queries."""
    return _rows(actor, [base])[0]


def base_list(*, actor: Actor, creator: str = "") -> list[BaseRow]:
    """Every base the actor sees, pinned ones first (latest pin first), then newest first. `creator`: "mine", "others" or ""."""
    authorize(actor, "base.list")
    bases = KnowledgeBase.objects.visible_to(actor).filter(is_temporary=False).select_related("creator")
    if creator == "mine":
        bases = bases.filter(creator_id=actor.user_id) if actor.user_id else bases.none()
    elif creator == "others" and actor.user_id:
        bases = bases.filter(~Q(creator_id=actor.user_id) | Q(creator__isnull=True))
    rows = _rows(actor, bases.order_by("-created_at", "-pk"))
    pinned = sorted((row for row in rows if row.pinned_at), key=lambda row: row.pinned_at, reverse=True)  # type: ignore[arg-type,return-value]
    return pinned + [row for row in rows if not row.pinned_at]


def recent_bases(*, actor: Actor, limit: int = 6) -> list[BaseRow]:
    """The bases the person opened last, latest first."""
    authorize(actor, "base.list")
    if actor.user_id is None:
        return []
    visits = BaseVisit.objects.visible_to(actor).filter(user_id=actor.user_id).order_by("-visited_at", "-pk")
    seen = dict(visits.values_list("kb_id", "visited_at")[: limit * 3])
    bases = {base.pk: base for base in KnowledgeBase.objects.visible_to(actor).select_related("creator").filter(pk__in=seen)}
    return _rows(actor, [bases[pk] for pk in seen if pk in bases][:limit], seen)


def move_targets(*, actor: Actor, base: KnowledgeBase) -> list[BaseRow]:
    """Bases a document of this one may move to: same space, type and embedding model (contract knowledge 3.9)."""
    authorize(actor, "base.read", base)
    bases = KnowledgeBase.objects.visible_to(actor).select_related("creator").filter(is_temporary=False).exclude(pk=base.pk)
    bases = bases.filter(type=base.type, embedding_model_id=base.embedding_model_id)
    return _rows(actor, bases.order_by("-created_at", "-pk"))


def has_documents(*, actor: Actor, base: KnowledgeBase) -> bool:
    """Whether the base holds anything, which locks its embedding model."""
    return bool(Document.objects.visible_to(actor).filter(kb=base).exclude(type=Document.Type.FAQ).exists())


def _rows(actor: Actor, bases: Iterable[KnowledgeBase], visits: dict[int, datetime] | None = None) -> list[BaseRow]:
    bases = list(bases)
    ids = [base.pk for base in bases]
    counts = counts_of(ids)
    pins: dict[int, datetime] = {}
    if actor.user_id is not None:
        pins = dict(Pin.objects.visible_to(actor).filter(user_id=actor.user_id, kb_id__in=ids).values_list("kb_id", "created_at"))
    return [BaseRow(base, counts.get(base.pk, BaseCounts()), pins.get(base.pk), (visits or {}).get(base.pk)) for base in bases]


def counts_of(kb_pks: Sequence[int]) -> dict[int, BaseCounts]:
    """{primary key of a base: its counts}, in one query."""
    rows = (
        Document.objects.filter(kb_id__in=kb_pks, deleted_at__isnull=True)
        .order_by()
        .values("kb_id")
        .annotate(
            documents=Count("pk", filter=~Q(type__in=Document.UNLISTED)),
            processing=Count("pk", filter=Q(parse_status__in=(ParseStatus.PENDING, ParseStatus.PROCESSING))),
            failed=Count("pk", filter=Q(parse_status=ParseStatus.FAILED)),
            passages=Sum("chunk_count"),
            vectors=Sum("vector_count"),
            changed_at=Max("updated_at"),
            entries=Count("pk", filter=Q(type=Document.Type.PAIR)),
        )
    )
    return {
        row["kb_id"]: BaseCounts(
            row["documents"],
            row["processing"],
            row["failed"],
            row["passages"] or 0,
            row["vectors"] or 0,
            row["changed_at"],
            row["entries"],
        )
        for row in rows
    }
