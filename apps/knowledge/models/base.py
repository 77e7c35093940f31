"""Knowledge bases, and each person's pins and visits."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.scope import SpaceOwned, SpaceQuerySet, scoped_manager


class KnowledgeBaseQuerySet(SpaceQuerySet):
    def visible_to(self, actor: Actor) -> KnowledgeBaseQuerySet:
        """Live bases of the actor's space; for a limited API key only those on its list."""
        rows: Any = super().visible_to(actor).filter(deleted_at__isnull=True, is_hidden=False)
        return rows if actor.kb_uids is None else rows.filter(uid__in=actor.kb_uids)


class KnowledgeBase(SpaceOwned):
    """A container of documents (contract knowledge 3.1). Configuration objects keep the contract's names and shapes.

    `is_hidden`: a copy that is still being filled; nobody sees it before it is whole.
    """

    class Type(models.TextChoices):
        DOCUMENT = "document", _("Documents")
        FAQ = "faq", _("FAQ")
        WIKI = "wiki", _("Wiki")

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    name = models.CharField(max_length=200)
    description = models.CharField(max_length=4000, blank=True)
    type = models.CharField(max_length=8, choices=Type, default=Type.DOCUMENT)
    is_temporary = models.BooleanField(default=False)
    is_example = models.BooleanField(default=False)
    is_hidden = models.BooleanField(default=False)
    creator = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    chunking_config = models.JSONField(default=dict)
    indexing_strategy = models.JSONField(default=dict)  # vector_enabled, keyword_enabled, wiki_enabled, graph_enabled
    retrieval_config = models.JSONField(default=dict)  # weights, fusion
    options = models.JSONField(default=dict)  # the contract's other configuration objects, by name
    embedding_model_id = models.CharField(max_length=128, blank=True)
    summary_model_id = models.CharField(max_length=128, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True)
    purge_at = models.DateTimeField(null=True)  # of a deleted base: until then it can be brought back; None: it is going for good

    objects: ClassVar[Any] = scoped_manager(KnowledgeBaseQuerySet)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["space", "deleted_at", "-created_at"], name="knowledge_kb_list")]

    def __str__(self) -> str:
        return self.name

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.uid


class Pin(SpaceOwned):
    """A base a person keeps at the top; never shared."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="pins")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "kb"], name="knowledge_pin_once")]

    def __str__(self) -> str:
        return f"{self.user_id} pins {self.kb_id}"


class BaseVisit(SpaceOwned):
    """When a person last opened a base; feeds "recent"."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="visits")
    visited_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "kb"], name="knowledge_visit_once")]
        indexes: ClassVar = [models.Index(fields=["space", "user", "-visited_at"], name="knowledge_visit_recent")]

    def __str__(self) -> str:
        return f"{self.user_id} visited {self.kb_id}"
