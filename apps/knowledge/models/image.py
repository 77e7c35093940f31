"""Pictures found in documents."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db import models

from apps.common.actor import Actor
from apps.common.scope import SpaceOwned, SpaceQuerySet, scoped_manager
from apps.knowledge.models.base import KnowledgeBase
from apps.knowledge.models.chunk import Chunk
from apps.knowledge.models.document import Document

SCHEME = "resource://"


class DocumentImageQuerySet(SpaceQuerySet):
    def visible_to(self, actor: Actor) -> DocumentImageQuerySet:
        """Pictures of live documents in live bases of the actor's space, within an API key's list of bases."""
        rows: Any = super().visible_to(actor).filter(document__deleted_at__isnull=True, kb__deleted_at__isnull=True)
        return rows if actor.kb_uids is None else rows.filter(kb__uid__in=actor.kb_uids)


class DocumentImage(SpaceOwned):
    """One picture of a document, once however often it is shown there; `uid` is its handle and survives a new parse of the same bytes.

    `chunk` is the passage beside its first place, `position` that place in the original, `number` its order in the document.
    `storage_path` is a key of the file store; for a picture that was uploaded as such, the document's own original.
    `attrs` holds observed attributes by id (contract knowledge 9.3), None when nothing was observed. `read_at`: OCR has looked at it;
    `described_at`: a model, or a person, has said what it shows (until then `caption` is the document's own alternative text).
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="images")
    chunk = models.ForeignKey(Chunk, on_delete=models.CASCADE, related_name="images")
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    storage_path = models.CharField(max_length=512)
    media_type = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    width = models.PositiveIntegerField(default=0)
    height = models.PositiveIntegerField(default=0)
    position = models.JSONField(default=dict)
    at = models.PositiveIntegerField(default=0)  # character of the parsed text before which it stands
    caption = models.TextField(blank=True)
    ocr_text = models.TextField(blank=True)
    attrs = models.JSONField(null=True)
    read_at = models.DateTimeField(null=True)
    described_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = scoped_manager(DocumentImageQuerySet)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "sha256"], name="knowledge_documentimage_once")]
        indexes: ClassVar = [models.Index(fields=["kb", "-created_at", "-id"], name="knowledge_image_list")]

    def __str__(self) -> str:
        return f"{self.document_id}#{self.number}"

    @property
    def url(self) -> str:
        """The reference other texts name it by."""
        return f"{SCHEME}{self.uid}"

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid
