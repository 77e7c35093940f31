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
    """Which vectors serve a base, and which model makes those of a question: while another model's are being made, they go on answering.

    `previous_*` are those of before a switch, as long as the index still holds some of them; until then both are asked.
    """

    kb = models.OneToOneField("knowledge.KnowledgeBase", on_delete=models.CASCADE, related_name="index_state")
    vector_space = models.CharField(max_length=160, blank=True)
    model_id = models.CharField(max_length=128, blank=True)
    previous_space = models.CharField(max_length=160, blank=True)
    previous_model_id = models.CharField(max_length=128, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"base {self.kb_id} served by {self.vector_space or 'words'}"


class RetiredSpace(SpaceOwned):
    """When vectors of a space stopped serving its last base: they are kept for a while, so that changing back is quick."""

    vector_space = models.CharField(max_length=160)
    retired_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["space", "vector_space"], name="retrieval_retiredspace_once")]

    def __str__(self) -> str:
        return f"{self.vector_space} until {self.retired_at:%Y-%m-%d}"
