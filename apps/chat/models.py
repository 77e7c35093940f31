"""Conversations: sessions, their messages, the passages an answer was given, and the events it was streamed as."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.scope import SpaceOwned, SpaceQuerySet, scoped_manager


class SessionQuerySet(SpaceQuerySet):
    def visible_to(self, actor: Actor) -> SessionQuerySet:
        """SECURITY: a conversation is seen by who began it, whatever their role in the space."""
        rows: Any = super().visible_to(actor)
        return rows.filter(owner=actor.who)


class ChatSession(SpaceOwned):
    """A conversation. `owner` is `Actor.who` of who began it; `last_request` what the last question was asked with (contract 2.1)."""

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    owner = models.CharField(max_length=80)
    owner_user_id = models.UUIDField(null=True)
    source = models.CharField(max_length=16, default="web")  # web | api
    title = models.CharField(max_length=200, blank=True)
    description = models.CharField(max_length=1000, blank=True)
    is_titled = models.BooleanField(default=False)  # a person, or the first question, gave it its title
    pinned_at = models.DateTimeField(null=True)
    last_request = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = scoped_manager(SessionQuerySet)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["space", "owner", "-updated_at", "-id"], name="chat_session_list")]

    def __str__(self) -> str:
        return f"conversation {self.pk}"


class MessageQuerySet(SpaceQuerySet):
    def visible_to(self, actor: Actor) -> MessageQuerySet:
        """SECURITY: messages of the actor's own conversations."""
        rows: Any = super().visible_to(actor)
        return rows.filter(session__owner=actor.who)


class Message(SpaceOwned):
    """A question or an answer. An answer's `parent` is its question; several answers to one question are tries, the newest counts.

    `search`: what the turn looked up ({decision, rule, bases, found, used, took_ms, missing, error, legs}). `support`: per cited sentence
    {start, end, numbers, score, level}, offsets into `content`. `reason`: why it is not what was hoped for (not_found, no_model, model_*,
    search_*, stopped, interrupted, internal). `lease_until`: while it is being written, until when its writer is believed alive.
    """

    class Role(models.TextChoices):
        USER = "user", _("Question")
        ASSISTANT = "assistant", _("Answer")

    class State(models.TextChoices):
        RUNNING = "running", _("Being written")
        DONE = "done", _("Done")
        STOPPED = "stopped", _("Stopped")
        FAILED = "failed", _("Failed")

    class Answerer(models.TextChoices):
        NONE = "", "-"
        EXTRACTIVE = "extractive", _("Extracted, without a model")
        MODEL = "model", _("Written by a model")
        PORTAL = "portal", _("Said by the portal")

    class Rating(models.TextChoices):
        NONE = "", "-"
        UP = "up", _("Helpful")
        DOWN = "down", _("Not helpful")

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    session = models.ForeignKey(ChatSession, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="answers")
    role = models.CharField(max_length=9, choices=Role)
    state = models.CharField(max_length=8, choices=State, default=State.DONE)
    content = models.TextField(blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    channel = models.CharField(max_length=32, blank=True)
    request = models.JSONField(default=dict)  # of a question: what it was asked with
    search = models.JSONField(default=dict)
    support = models.JSONField(default=list)
    dropped_markers = models.JSONField(default=list)
    steps = models.JSONField(default=list)
    answerer = models.CharField(max_length=10, choices=Answerer, blank=True)
    model_id = models.CharField(max_length=64, blank=True)
    model_name = models.CharField(max_length=100, blank=True)
    usage = models.JSONField(default=dict)
    reason = models.CharField(max_length=32, blank=True)
    is_fallback = models.BooleanField(default=False)
    took_ms = models.PositiveIntegerField(default=0)
    first_ms = models.PositiveIntegerField(null=True)  # until the first words of the answer
    rating = models.CharField(max_length=4, choices=Rating, blank=True)
    rating_note = models.CharField(max_length=1000, blank=True)
    suggestions = models.JSONField(default=dict)  # of an answer: the questions offered after it (services.follow_ups)
    stop_requested = models.BooleanField(default=False)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = scoped_manager(MessageQuerySet)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["session", "-created_at", "-id"], name="chat_message_list"),
            models.Index(fields=["lease_until"], name="chat_message_lease", condition=models.Q(state="running")),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~models.Q(state="running") | models.Q(lease_until__isnull=False), name="chat_message_running_is_leased"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.pk}"

    @property
    def is_live(self) -> bool:
        return self.state == self.State.RUNNING


class Citation(SpaceOwned):
    """A passage an answer was given, as it was then: what `[number]` opens for good. Ids are plain values, so that it outlives its source.

    `row` holds the rest of the contract's reference object (2.5).
    """

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="citations")
    number = models.PositiveIntegerField()
    is_cited = models.BooleanField(default=False)
    chunk_uid = models.UUIDField()
    document_uid = models.UUIDField(db_index=True)
    kb_uid = models.UUIDField()
    document_title = models.CharField(max_length=1024)
    document_version = models.PositiveIntegerField(default=1)
    revision = models.PositiveIntegerField(default=0)
    content_hash = models.CharField(max_length=64)
    content = models.TextField()
    positions = models.JSONField(default=list)
    heading_path = models.JSONField(default=list)
    hit_reason = models.CharField(max_length=16)
    score = models.FloatField(default=0)
    match_type = models.PositiveSmallIntegerField(default=0)
    row = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["message", "number"], name="chat_citation_once")]

    def __str__(self) -> str:
        return f"[{self.number}] of message {self.message_id}"


class StreamEvent(SpaceOwned):
    """One event of an answer as it was sent, so that a reader who comes later, or again, gets the same stream."""

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    payload = models.JSONField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["message", "seq"], name="chat_streamevent_once")]

    def __str__(self) -> str:
        return f"event {self.seq} of message {self.message_id}"
