"""Documents: one identity through every version and every parse."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.scope import SpaceOwned, SpaceQuerySet, scoped_manager
from apps.knowledge.models.base import KnowledgeBase
from apps.knowledge.models.tag import Tag


class ParseStatus(models.TextChoices):
    """Contract knowledge 4.2."""

    DRAFT = "draft", _("Draft")
    PENDING = "pending", _("Waiting")
    PROCESSING = "processing", _("Parsing")
    FINALIZING = "finalizing", _("Findable, finishing")
    COMPLETED = "completed", _("Completed")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Stopped")
    DELETING = "deleting", _("Deleting")


#: Not read yet; passages that are there nevertheless are those of the version before.
UNREAD = (ParseStatus.PENDING, ParseStatus.PROCESSING)
IN_FLIGHT = (ParseStatus.PENDING, ParseStatus.PROCESSING, ParseStatus.FINALIZING)


class DocumentQuerySet(SpaceQuerySet):
    def listed(self) -> DocumentQuerySet:
        """Without what is no document to people: question pairs, what stands for them, and pages of the wiki."""
        rows: Any = self.exclude(type__in=Document.UNLISTED)
        return rows

    def visible_to(self, actor: Actor) -> DocumentQuerySet:
        """Live documents of live bases of the actor's space; for a limited API key only those of its bases."""
        rows: Any = super().visible_to(actor).filter(deleted_at__isnull=True, kb__deleted_at__isnull=True, kb__is_hidden=False)
        return rows if actor.kb_uids is None else rows.filter(kb__uid__in=actor.kb_uids)


class Document(SpaceOwned):
    """Contract knowledge 4.1. `index_rev` rises in the same transaction as any change the index must follow.

    `reason` is the code of why it failed (or a remark such as `needs_ocr` on part of it), `error_message` the sentence beside it.
    `storage_path` is the original, `parsed_path` what the parser made of it, both keys of the file store.

    An entry of an FAQ base is a document of the type `pair` (its standard question is the title, its passages are what it is found by);
    the one document of the type `faq` stands for all of them. A page of the wiki is a document of the type `page`. None of these is shown
    or counted as a document.
    """

    class Type(models.TextChoices):
        FILE = "file"
        URL = "url"
        FILE_URL = "file_url"
        MANUAL = "manual"
        FAQ = "faq"
        PAIR = "pair"
        PAGE = "page"

    #: What is kept as a document and is none to people.
    UNLISTED: ClassVar = (Type.FAQ, Type.PAIR, Type.PAGE)

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="documents")
    type = models.CharField(max_length=8, choices=Type, default=Type.FILE)
    title = models.CharField(max_length=1024)
    file_name = models.CharField(max_length=1024, blank=True)
    description = models.TextField(blank=True)
    source = models.CharField(max_length=2048, blank=True)
    channel = models.CharField(max_length=32, default="web")
    parse_status = models.CharField(max_length=12, choices=ParseStatus, default=ParseStatus.PENDING)
    pending_subtasks_count = models.PositiveIntegerField(default=0)
    summary_status = models.CharField(max_length=12, default="none")
    enabled = models.BooleanField(default=False)
    folder_path = models.CharField(max_length=1024, blank=True)
    file_type = models.CharField(max_length=32, blank=True)
    media_type = models.CharField(max_length=128, blank=True)
    file_size = models.BigIntegerField(default=0)
    file_hash = models.CharField(max_length=64, blank=True)  # MD5, as clients compare it
    content_sha256 = models.CharField(max_length=64, blank=True)
    storage_path = models.CharField(max_length=512, blank=True)
    parsed_path = models.CharField(max_length=512, blank=True)
    encoding = models.CharField(max_length=32, blank=True)
    language = models.CharField(max_length=16, blank=True)
    counts = models.JSONField(default=dict)  # pages, sheets, slides
    metadata = models.JSONField(null=True)
    custom_metadata = models.JSONField(default=dict)
    reason = models.CharField(max_length=32, blank=True)
    error_message = models.TextField(blank=True)
    warnings = models.JSONField(default=list)
    chunk_count = models.PositiveIntegerField(default=0)
    vector_count = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=0)
    index_rev = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)
    version_creator = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    creator = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    tags = models.ManyToManyField(Tag, through="DocumentTag", related_name="documents")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    processed_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    # Of a deleted document: until when it can be brought back (None: it is going for good), and what it was.
    purge_at = models.DateTimeField(null=True)
    trashed_status = models.CharField(max_length=12, blank=True)
    trashed_tags = models.JSONField(default=list)

    objects: ClassVar[Any] = scoped_manager(DocumentQuerySet)

    class Meta:
        constraints: ClassVar = [
            # Ten racing uploads of the same bytes make one document.
            models.UniqueConstraint(
                fields=["kb", "file_hash", "file_type"],
                condition=models.Q(type="file", deleted_at__isnull=True) & ~models.Q(parse_status__in=["failed", "deleting"]),
                name="knowledge_document_same_bytes",
            ),
            models.UniqueConstraint(
                fields=["kb", "file_hash"],
                condition=models.Q(type="url", deleted_at__isnull=True) & ~models.Q(parse_status__in=["failed", "deleting"]),
                name="knowledge_document_same_address",
            ),
            models.UniqueConstraint(
                fields=["kb"], condition=models.Q(type="faq", deleted_at__isnull=True), name="knowledge_document_one_faq"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["kb", "deleted_at", "-created_at", "-id"], name="knowledge_doc_list"),
            models.Index(fields=["kb", "deleted_at", "-updated_at", "-id"], name="knowledge_doc_changed"),
            models.Index(fields=["kb", "deleted_at", "file_name", "id"], name="knowledge_doc_named"),
            # These two hold all that counting asks for, so that figures of a full base are read without its rows.
            models.Index(fields=["kb", "folder_path", "deleted_at", "parse_status", "space"], name="knowledge_doc_folders"),
            models.Index(
                fields=["kb", "deleted_at", "parse_status", "type", "file_type", "space", "chunk_count", "vector_count", "updated_at"],
                name="knowledge_doc_figures",
            ),
            models.Index(fields=["space", "-updated_at"], name="knowledge_doc_space"),
            models.Index(fields=["purge_at"], condition=models.Q(purge_at__isnull=False), name="knowledge_doc_trash"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid

    @property
    def is_answerable(self) -> bool:
        """Whether its passages may be found: live, enabled, not a draft."""
        return self.deleted_at is None and self.enabled and self.parse_status != ParseStatus.DRAFT


class DocumentTag(SpaceOwned):
    """A tag on a document."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="tag_links")
    tag = models.ForeignKey(Tag, on_delete=models.CASCADE, related_name="document_links")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "tag"], name="knowledge_documenttag_once")]
        indexes: ClassVar = [models.Index(fields=["tag", "document", "space"], name="knowledge_documenttag_counted")]

    def __str__(self) -> str:
        return f"{self.document_id}#{self.tag_id}"


class DocumentVersion(SpaceOwned):
    """A file a document had before; `created_at` is when the next one took its place. `creator` None: that of the document."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    file_name = models.CharField(max_length=1024, blank=True)
    file_type = models.CharField(max_length=32, blank=True)
    media_type = models.CharField(max_length=128, blank=True)
    file_size = models.BigIntegerField(default=0)
    file_hash = models.CharField(max_length=64, blank=True)
    content_sha256 = models.CharField(max_length=64, blank=True)
    storage_path = models.CharField(max_length=512, blank=True)
    parsed_path = models.CharField(max_length=512, blank=True)
    creator = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "number"], name="knowledge_documentversion_once")]

    def __str__(self) -> str:
        return f"{self.document_id} v{self.number}"
