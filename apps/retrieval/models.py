"""What retrieval keeps in the database: vectors by content, so that the index can always be made again from here alone."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.common.scope import SpaceOwned


class PassageVector(SpaceOwned):
    """The embedding of a text, once per space and vector space. `data` is little-endian float16, unit length."""

    vector_space = models.CharField(max_length=160)  # "<model>:<dimension>"
    content_hash = models.CharField(max_length=64)
    data = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["space", "vector_space", "content_hash"], name="retrieval_passagevector_once"),
        ]

    def __str__(self) -> str:
        return f"{self.vector_space} {self.content_hash[:12]}"


class BaseIndex(SpaceOwned):
    """Which vectors serve a base: while another model's are being made, the old ones go on answering."""

    kb = models.OneToOneField("knowledge.KnowledgeBase", on_delete=models.CASCADE, related_name="index_state")
    vector_space = models.CharField(max_length=160, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"base {self.kb_id} served by {self.vector_space or 'words'}"
