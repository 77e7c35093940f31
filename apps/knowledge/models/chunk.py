"""Passages of a document and the history of their edits."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models

from apps.common.actor import Actor
from apps.common.scope import SpaceOwned, SpaceQuerySet, scoped_manager
from apps.knowledge.models.base import KnowledgeBase
from apps.knowledge.models.document import Document


def passage_hash(content: str) -> str:
    """What `content_hash` holds: SHA-256 of the text, in hex."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


class ChunkQuerySet(SpaceQuerySet):
    def visible_to(self, actor: Actor) -> ChunkQuerySet:
        """Chunks of live documents in live bases of the actor's space, within an API key's list of bases."""
        live = {"document__deleted_at__isnull": True, "kb__deleted_at__isnull": True, "kb__is_hidden": False}
        rows: Any = super().visible_to(actor).filter(**live)
        return rows if actor.kb_uids is None else rows.filter(kb__uid__in=actor.kb_uids)


class Chunk(SpaceOwned):
    """Contract knowledge 7.1; `pk` is its `seq_id` and its id in the search index, never reused.

    [`start_at`, `end_at`) is its exact span in the parsed text; `prefix` a table header repeated before it. `positions` say where it
    stands in the original (page, sheet and cells, slide, line; see ingestion.plugins.protocol.Position).

    A passage of the type `faq` belongs to a question pair. Its `metadata["faq"]` holds `indexed` (the text it is found by) and `question`;
    in the first one of a pair also `questions`, `negatives` and `answers`. `content` is what is read: the question and its answers.
    One of the type `wiki_page` belongs to a page of the wiki; `metadata["wiki"]["names"]` of the first one: what else it is found by.
    """

    class Type(models.TextChoices):
        TEXT = "text"
        PARENT = "parent_text"
        IMAGE_OCR = "image_ocr"
        IMAGE_CAPTION = "image_caption"
        FAQ = "faq"
        WIKI = "wiki_page"

    class IndexStatus(models.TextChoices):
        READY = "ready"
        PROCESSING = "processing"
        FAILED = "failed"

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="chunks")
    chunk_index = models.PositiveIntegerField()
    chunk_type = models.CharField(max_length=16, choices=Type, default=Type.TEXT)
    content = models.TextField()
    content_hash = models.CharField(max_length=64)
    prefix = models.TextField(blank=True)
    heading_path = models.JSONField(default=list)
    start_at = models.PositiveIntegerField()
    end_at = models.PositiveIntegerField()
    positions = models.JSONField(default=list)
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="children")
    is_enabled = models.BooleanField(default=True)
    content_revision = models.PositiveIntegerField(default=0)
    index_status = models.CharField(max_length=12, choices=IndexStatus, default=IndexStatus.READY)
    last_editor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    metadata = models.JSONField(null=True)
    image_info = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = scoped_manager(ChunkQuerySet)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["document", "chunk_type", "chunk_index"], name="knowledge_chunk_order")]

    def __str__(self) -> str:
        return f"{self.document_id}#{self.chunk_index}"

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid


class ChunkRevision(SpaceOwned):
    """A superseded state of a chunk; `edited_at` and `editor` say who produced that old state, and when."""

    chunk = models.ForeignKey(Chunk, on_delete=models.CASCADE, related_name="revisions")
    revision = models.PositiveIntegerField()
    content = models.TextField()
    is_enabled = models.BooleanField()
    editor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    edited_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["chunk", "revision"], name="knowledge_chunkrevision_once")]

    def __str__(self) -> str:
        return f"{self.chunk_id} v{self.revision}"
