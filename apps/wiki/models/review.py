"""What is wrong with pages, and what runs and agents would change on pages people keep."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.scope import SpaceOwned
from apps.knowledge.models import KnowledgeBase
from apps.wiki.models.pages import WikiPage


class WikiIssue(SpaceOwned):
    """Contract content 5.6. `key` tells one problem from another, so that finding it again makes no second open issue.

    `reporter` names who raised it where that is no person of the space; `facts` hold what its sentence names.
    """

    class Kind(models.TextChoices):
        CONTRADICTION = "contradiction", _("Contradiction")
        STALE = "stale", _("Out of date")
        DUPLICATE = "duplicate", _("Duplicate")
        BROKEN_LINK = "broken_link", _("Broken link")
        MISSING_SOURCE = "missing_source", _("Source missing")
        THIN_PAGE = "thin_page", _("Hardly any text")
        MIXED = "mixed", _("Several things on one page")
        OTHER = "other", _("Something else")

    class Status(models.TextChoices):
        OPEN = "open", _("Open")
        RESOLVED = "resolved", _("Resolved")
        IGNORED = "ignored", _("Ignored")

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    page = models.ForeignKey(WikiPage, on_delete=models.CASCADE, related_name="issues")
    other_page = models.ForeignKey(WikiPage, null=True, on_delete=models.SET_NULL, related_name="+")
    kind = models.CharField(max_length=16, choices=Kind)
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    key = models.CharField(max_length=255)
    description = models.TextField(blank=True)
    facts = models.JSONField(default=dict)
    document_uids = models.JSONField(default=list)
    raised_by = models.CharField(max_length=12, choices=WikiPage.Source, default=WikiPage.Source.SYSTEM)
    raiser = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    reporter = models.CharField(max_length=80, blank=True)
    closer = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    closed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["page", "kind", "key"], condition=models.Q(status="open"), name="wiki_wikiissue_open_once")
        ]
        indexes: ClassVar = [models.Index(fields=["kb", "status", "-id"], name="wiki_wikiissue_list")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.page_id}"

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid


class WikiProposal(SpaceOwned):
    """What a run or an agent would make of a page a person keeps; a person takes it over or not.

    `draft` holds title, summary, content, aliases and page_type as proposed, `claims` the claims that come with them in the shape of
    `apps.wiki.drafts.ClaimDraft`, `base_version` the version of the page it was written against. The next one of a page replaces it.
    """

    class Action(models.TextChoices):
        CHANGE = "change", _("Change")
        DELETE = "delete", _("Delete")

    class Status(models.TextChoices):
        OPEN = "open", _("Open")
        ACCEPTED = "accepted", _("Accepted")
        REJECTED = "rejected", _("Rejected")
        REPLACED = "replaced", _("Replaced by a newer one")

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    page = models.ForeignKey(WikiPage, on_delete=models.CASCADE, related_name="proposals")
    action = models.CharField(max_length=8, choices=Action, default=Action.CHANGE)
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    base_version = models.PositiveIntegerField()
    draft = models.JSONField(default=dict)
    claims = models.JSONField(default=list)
    note = models.CharField(max_length=1000, blank=True)
    source = models.CharField(max_length=12, choices=WikiPage.Source, default=WikiPage.Source.SYSTEM)
    model_name = models.CharField(max_length=128, blank=True)
    run_ref = models.BigIntegerField(null=True)
    proposer = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    decider = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    decided_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["page"], condition=models.Q(status="open"), name="wiki_wikiproposal_open_once")
        ]
        indexes: ClassVar = [models.Index(fields=["kb", "status", "-id"], name="wiki_wikiproposal_list")]

    def __str__(self) -> str:
        return f"{self.action} {self.page_id}"

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid
