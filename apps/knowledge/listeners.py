"""What this context does about the news of lower ones, and what it answers when they ask."""

from __future__ import annotations

from django.db.models import Sum

from apps.common.events import listen
from apps.knowledge.models import Document, KnowledgeBase
from apps.spaces.events import BasesAsked, StorageAsked


@listen(BasesAsked)
def name_bases(event: BasesAsked) -> None:
    event.found.update(KnowledgeBase.objects.visible_to(event.actor).values_list("uid", "name"))


@listen(StorageAsked)
def add_document_bytes(event: StorageAsked) -> None:
    live = Document.objects.filter(space_id=event.space_id, deleted_at__isnull=True)
    event.used_bytes += live.aggregate(total=Sum("file_size"))["total"] or 0
