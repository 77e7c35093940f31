"""Tags of one knowledge base."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from apps.common.scope import SpaceOwned
from apps.knowledge.models.base import KnowledgeBase


class Tag(SpaceOwned):
    """Contract knowledge 6.1; `pk` is its `seq_id`. `color` is one of six hue names or empty."""

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=128)
    color = models.CharField(max_length=32, blank=True)
    sort_order = models.IntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["kb", "name"], name="knowledge_tag_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid
