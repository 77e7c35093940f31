"""What retrieval keeps in the database: vectors by content, so that the index can always be made again from here alone."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

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


class RetrievalLog(SpaceOwned):
    """One search somebody asked for at a door: what, where, what came of it, how long it took. Never text of a passage.

    Ids are plain values: a row outlives what it names. `hits` holds the first `LOGGED_HITS` as {document, chunk, reason, score, text_rank,
    vector_rank}; `hits_count` counts all. `kb_uids` empty: every base the actor could read. `decision` to `injected_chars` are filled by
    doors that decide by themselves whether to search and put what they found into a prompt. Units: milliseconds.
    """

    class Door(models.TextChoices):
        REST_BASE = "rest-base", _("REST, one base")
        REST_SPACE = "rest-space", _("REST, several bases")
        PAGE = "page", _("Search page")
        PALETTE = "palette", _("Quick search")
        TEST = "test", _("Retrieval test")
        ASK = "ask", _("Question")
        TOOL = "tool", _("Tool of a model")

    class Outcome(models.TextChoices):
        HIT = "hit", _("Found")
        NEAR = "near", _("By meaning only")
        MISS = "miss", _("Nothing found")
        ERROR = "error", _("Failed")
        SKIP = "skip", _("Not looked up")

    created_at = models.DateTimeField(db_index=True)
    door = models.CharField(max_length=16, choices=Door)
    actor = models.CharField(max_length=80)  # Actor.who
    actor_user_id = models.UUIDField(null=True)
    key_id = models.BigIntegerField(null=True)
    request_id = models.CharField(max_length=64, blank=True)
    query_text = models.TextField(blank=True)
    query_chars = models.PositiveIntegerField(default=0)
    kb_uids = models.JSONField(default=list)
    bases = models.PositiveIntegerField(default=0)  # how many were searched
    mode = models.CharField(max_length=8)
    options = models.JSONField(default=dict)
    decision = models.CharField(max_length=16, blank=True)
    rule = models.CharField(max_length=64, blank=True)
    explicit_refs = models.JSONField(null=True)  # {"found": [...], "missing": [...]}
    budget_chars = models.PositiveIntegerField(null=True)
    injected_chars = models.PositiveIntegerField(null=True)
    outcome = models.CharField(max_length=8, choices=Outcome)
    hits = models.JSONField(default=list)
    hits_count = models.PositiveIntegerField(default=0)
    legs = models.JSONField(default=dict)
    failed_leg = models.CharField(max_length=16, blank=True)  # the leg that could not answer, while the other one may have
    error = models.CharField(max_length=64, blank=True)
    took_ms = models.FloatField(default=0)

    class Meta:
        verbose_name = _("search")
        verbose_name_plural = _("searches")
        indexes: ClassVar = [
            models.Index(fields=["space", "-id"], name="retrieval_log_space"),
            models.Index(fields=["outcome", "-id"], name="retrieval_log_outcome"),
        ]

    def __str__(self) -> str:
        return f"search {self.pk} in space {self.space_id}"
