"""What this context does about the news of lower ones, and what it answers when they ask."""

from __future__ import annotations

from django.db.models import Q, Sum

from apps.common.actor import Actor
from apps.common.events import listen
from apps.common.scope import space_scope
from apps.knowledge.models import Document, DocumentVersion, KnowledgeBase
from apps.knowledge.services import base_delete, base_purge
from apps.llm.events import ModelUseAsked
from apps.spaces.events import BasesAsked, SpaceDeleted, StorageAsked


@listen(BasesAsked)
def name_bases(event: BasesAsked) -> None:
    event.found.update(KnowledgeBase.objects.visible_to(event.actor).values_list("uid", "name"))


@listen(StorageAsked)
def add_document_bytes(event: StorageAsked) -> None:
    """What is in the trash takes room until it is removed, and counts: bringing it back never lacks room."""
    kept = Document.objects.filter(Q(deleted_at__isnull=True) | Q(purge_at__isnull=False), space_id=event.space_id)
    event.used_bytes += kept.aggregate(total=Sum("file_size"))["total"] or 0
    earlier = DocumentVersion.objects.filter(space_id=event.space_id)
    event.used_bytes += earlier.aggregate(total=Sum("file_size"))["total"] or 0


@listen(ModelUseAsked)
def name_users_of_model(event: ModelUseAsked) -> None:
    chosen = Q(embedding_model_id=event.model_id) | Q(summary_model_id=event.model_id)
    for option in ("vlm_config", "image_processing_config", "auto_tag_config", "profile_config"):
        chosen |= Q(**{f"options__{option}__model_id": event.model_id})
    rows = KnowledgeBase.objects.filter(chosen, space_id=event.space_id, deleted_at__isnull=True)
    event.found.extend(rows.order_by("name").values_list("name", flat=True))


@listen(SpaceDeleted)
def delete_bases(event: SpaceDeleted) -> None:
    """A space that is gone takes its bases with it: invisible now, rows and files in the background."""
    actor = Actor.system(event.space_id, "the space was deleted")
    with space_scope(event.space_id, "the space was deleted"):
        for base in KnowledgeBase.objects.visible_to(actor):
            base_delete(actor=actor, base=base, keep=False)
        for base in KnowledgeBase.objects.filter(deleted_at__isnull=False, purge_at__isnull=False):
            base_purge(actor=actor, base=base)
