"""Question pairs of FAQ bases, and imports of them."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db import models

from apps.common.actor import Actor
from apps.common.jobs.models import Run
from apps.common.scope import SpaceOwned, SpaceQuerySet, scoped_manager
from apps.knowledge.models import Document, KnowledgeBase

SEPARATOR = "\x1e"
#: Numbers below this one are those a migration brought along; the portal's own begin here (contract content 3.2, `id`).
FIRST_NUMBER = 100_000_000


def joined(texts: list[str] | tuple[str, ...]) -> str:
    """Texts as one column holds them, so that they can be searched as they are written."""
    return SEPARATOR.join(texts)


def parted(text: str) -> list[str]:
    return text.split(SEPARATOR) if text else []


class FaqEntryQuerySet(SpaceQuerySet):
    def visible_to(self, actor: Actor) -> FaqEntryQuerySet:
        """Live entries of live bases of the actor's space, within an API key's list of bases."""
        live = {"document__deleted_at__isnull": True, "kb__deleted_at__isnull": True, "kb__is_hidden": False}
        rows: Any = super().visible_to(actor).filter(**live)
        return rows if actor.kb_uids is None else rows.filter(kb__uid__in=actor.kb_uids)


class FaqEntry(SpaceOwned):
    """Contract content 3.1. It lives and dies with its document (type `pair`), which has its passages, its tag and its place in the index.

    `number` is set only where a migration brought one along. `content_hash` is that of the texts in normal form, `version` rises with
    every change of a text.
    """

    class Strategy(models.TextChoices):
        ALL = "all"
        RANDOM = "random"

    document = models.OneToOneField(Document, on_delete=models.CASCADE, related_name="faq_entry")
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    number = models.BigIntegerField(null=True)
    standard_question = models.TextField()
    similar_text = models.TextField(blank=True)
    negative_text = models.TextField(blank=True)
    answers_text = models.TextField(blank=True)
    answer_strategy = models.CharField(max_length=8, choices=Strategy, default=Strategy.ALL)
    is_enabled = models.BooleanField(default=True)
    is_recommended = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    content_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = scoped_manager(FaqEntryQuerySet)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["space", "number"], condition=models.Q(number__isnull=False), name="faq_faqentry_number_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["kb", "-updated_at", "-id"], name="faq_faqentry_list"),
            models.Index(fields=["kb", "content_hash"], name="faq_faqentry_same"),
        ]

    def __str__(self) -> str:
        return self.standard_question[:80]

    @property
    def seq_id(self) -> int:
        return self.number if self.number is not None else FIRST_NUMBER + self.pk

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid

    @property
    def similar_questions(self) -> list[str]:
        return parted(self.similar_text)

    @property
    def negative_questions(self) -> list[str]:
        return parted(self.negative_text)

    @property
    def answers(self) -> list[str]:
        return parted(self.answers_text)


class FaqQuestion(SpaceOwned):
    """A question some live entry of a base answers; `key` is it in normal form, so that no two entries answer the same one."""

    entry = models.ForeignKey(FaqEntry, on_delete=models.CASCADE, related_name="questions")
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64)
    is_standard = models.BooleanField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["kb", "key"], name="faq_faqquestion_once")]

    def __str__(self) -> str:
        return f"{self.entry_id}:{self.key[:8]}"


class FaqImportRun(Run):
    """One import (contract content F11, F12). `task_id` is what clients ask progress by; correcting failed rows runs under it again.

    `highest`: the newest entry when the rows were checked, None before: replacing removes only what was there then. `is_checked`: the rows
    know what becomes of them. `shown`: whether the result is shown above the list (contract F13).
    """

    class Mode(models.TextChoices):
        APPEND = "append"
        REPLACE = "replace"

    task_id = models.CharField(max_length=160, db_index=True)
    kb_ref = models.BigIntegerField(db_index=True)
    kb_uid = models.UUIDField()
    mode = models.CharField(max_length=8, choices=Mode)
    dry_run = models.BooleanField(default=False)
    file_name = models.CharField(max_length=255, blank=True)
    is_checked = models.BooleanField(default=False)
    highest = models.BigIntegerField(null=True)
    removed = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict)  # success, failed, partial, skipped, merged, added
    shown = models.CharField(max_length=8, default="open")
    starter_id = models.UUIDField(null=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(Run.Meta):
        constraints: ClassVar = [
            *Run.Meta.constraints,
            models.UniqueConstraint(
                fields=["kb_ref"], condition=models.Q(state__in=["queued", "running"]), name="faq_faqimportrun_one_live"
            ),
        ]


class FaqIndexRun(Run):
    """The passages of every entry of a base are made anew, because what they are made of was changed in its settings."""

    kb_ref = models.BigIntegerField()

    class Meta(Run.Meta):
        constraints: ClassVar = [
            *Run.Meta.constraints,
            models.UniqueConstraint(
                fields=["kb_ref"], condition=models.Q(state__in=["queued", "running"]), name="faq_faqindexrun_one_live"
            ),
        ]


class FaqImportRow(SpaceOwned):
    """One submitted row and what becomes of it. `index` counts from 0; `raw` is the row as it came, `draft` what was understood of it.

    `reason` is a code of `apps.faq.reasons`, `facts` what its sentence names. A row that is `planned` still has to be done.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        FAILED = "failed"
        SKIPPED = "skipped"
        ADDED = "added"
        MERGED = "merged"

    run = models.ForeignKey(FaqImportRun, on_delete=models.CASCADE, related_name="rows")
    index = models.PositiveIntegerField()
    raw = models.JSONField()
    draft = models.JSONField(null=True)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    is_planned = models.BooleanField(default=False)
    is_partial = models.BooleanField(default=False)
    reason = models.CharField(max_length=40, blank=True)
    facts = models.JSONField(default=dict)
    entry_ref = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "index"], name="faq_faqimportrow_once")]
        indexes: ClassVar = [models.Index(fields=["run", "state", "index"], name="faq_faqimportrow_pick")]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.index} ({self.state})"
