"""Models a space may use, and what was found out about the endpoint of the deployment."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from apps.common.scope import SpaceOwned


class Model(SpaceOwned):
    """An endpoint of a space. `api_key` is encrypted; `dimension` and `probe` are what the endpoint gave when it was asked.

    `revision` rises when the endpoint begins to give other vectors: those made before can then not be compared with new ones.
    """

    class Type(models.TextChoices):
        """The contract's names (content 8)."""

        CHAT = "KnowledgeQA", pgettext_lazy("kind of model", "Chat")
        EMBEDDING = "Embedding", pgettext_lazy("kind of model", "Embedding")
        RERANK = "Rerank", pgettext_lazy("kind of model", "Rerank")
        VISION = "VLLM", pgettext_lazy("kind of model", "Vision")
        SPEECH = "ASR", pgettext_lazy("kind of model", "Speech")

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    name = models.CharField(max_length=100)  # what the endpoint calls it
    display_name = models.CharField(max_length=100, blank=True)
    description = models.CharField(max_length=500, blank=True)
    type = models.CharField(max_length=12, choices=Type, default=Type.EMBEDDING)
    source = models.CharField(max_length=16, default="remote")
    provider = models.CharField(max_length=32, blank=True)
    base_url = models.CharField(max_length=500)
    api_key = models.TextField(blank=True)  # apps.common.crypto
    query_prefix = models.CharField(max_length=100, blank=True)
    passage_prefix = models.CharField(max_length=100, blank=True)
    batch_size = models.PositiveIntegerField(default=32)
    concurrency = models.PositiveIntegerField(default=3)
    connect_timeout_s = models.FloatField(default=5.0)
    read_timeout_s = models.FloatField(default=60.0)
    context_window = models.PositiveIntegerField(default=0)  # tokens a chat model reads at once; 0: not known
    dimension = models.PositiveIntegerField(default=0)
    send_dimension = models.BooleanField(default=False)
    probe = models.BinaryField(default=bytes)  # float32, the endpoint's vector of a fixed text
    revision = models.PositiveIntegerField(default=1)
    tested_at = models.DateTimeField(null=True)
    test_ms = models.FloatField(null=True)
    test_error = models.CharField(max_length=32, blank=True)  # code of what was wrong last; "" when it answered
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["space", "type", "id"], name="llm_model_list")]

    def __str__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        return self.display_name or self.name

    @property
    def vector_space(self) -> str:
        """Name of the vectors it makes; the revision and the row are part of it, since endpoints give what names they like."""
        return f"{self.space_name}:{self.dimension}" if self.dimension else ""

    @property
    def space_name(self) -> str:
        return f"{self.name}@{self.uid.hex[:8]}.{self.revision}"


class EndpointFact(models.Model):
    """What the endpoint of the environment answered when it was first asked: kept, so that every process need not ask again."""

    base_url = models.CharField(max_length=500)
    model = models.CharField(max_length=200)
    dimension = models.PositiveIntegerField()
    found_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["base_url", "model"], name="llm_endpointfact_once")]

    def __str__(self) -> str:
        return _("%(model)s gives vectors of %(dimension)d values") % {"model": self.model, "dimension": self.dimension}


class ModelPace(models.Model):
    """How fast a model made vectors lately, for estimates. `key`: id of a built-in, or the uid of a model."""

    key = models.CharField(max_length=64, unique=True)
    passages_per_s = models.FloatField()
    measured_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.key}: {self.passages_per_s:.1f}/s"
