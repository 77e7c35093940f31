"""Folders of a wiki."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from apps.common.scope import SpaceOwned
from apps.knowledge.models import KnowledgeBase


class WikiFolder(SpaceOwned):
    """Contract content 5.4. `path` is the names from the root joined by `/`; an empty folder stays until somebody deletes it.

    `made_by_run`: no person made or touched it, so whoever cleans up may remove it once it is empty.
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="children")
    name = models.CharField(max_length=128)
    path = models.CharField(max_length=4096)
    depth = models.PositiveIntegerField(default=1)
    sort_order = models.IntegerField(default=0)
    made_by_run = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kb", "parent", "name"], name="wiki_wikifolder_sibling"),
            models.UniqueConstraint(fields=["kb", "name"], condition=models.Q(parent__isnull=True), name="wiki_wikifolder_root"),
        ]
        indexes: ClassVar = [models.Index(fields=["kb", "path"], name="wiki_wikifolder_path")]

    def __str__(self) -> str:
        return self.path

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid
