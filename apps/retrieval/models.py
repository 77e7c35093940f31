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
