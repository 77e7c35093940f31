"""What pages rest on: documents, and for each claim its passages."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from apps.common.scope import SpaceOwned
from apps.knowledge.models import Document
from apps.wiki.models.pages import WikiPage


class PageSource(SpaceOwned):
    """A document a page rests on. `title` and `document_uid` outlive the document; `document_version` is the one that was read."""

    page = models.ForeignKey(WikiPage, on_delete=models.CASCADE, related_name="sources")
    document = models.ForeignKey(Document, null=True, on_delete=models.SET_NULL, related_name="+")
    document_uid = models.UUIDField()
    document_version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=1024)
    state = models.CharField(max_length=20, choices=WikiPage.State, default=WikiPage.State.CURRENT)
    place = models.PositiveIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["page", "document_uid"], name="wiki_pagesource_once")]
        indexes: ClassVar = [models.Index(fields=["document_uid"], name="wiki_pagesource_document")]

    def __str__(self) -> str:
        return f"{self.page_id} < {self.title}"


class PageClaim(SpaceOwned):
    """A sentence of a page and the passages it rests on; `[^anchor]` stands behind it in the text.

    `chunk_ids` are primary keys of passages, `chunk_uids` their public ids, `quote` is what they said when the claim was written: they stay
    when the passages are gone. `page_version` is the version of the page the claim came in with.
    """

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    page = models.ForeignKey(WikiPage, on_delete=models.CASCADE, related_name="claims")
    page_version = models.PositiveIntegerField()
    anchor = models.CharField(max_length=32)
    place = models.PositiveIntegerField()
    text = models.TextField()
    document = models.ForeignKey(Document, null=True, on_delete=models.SET_NULL, related_name="+")
    document_uid = models.UUIDField()
    document_version = models.PositiveIntegerField(default=1)
    document_title = models.CharField(max_length=1024)
    chunk_ids = models.JSONField(default=list)
    chunk_uids = models.JSONField(default=list)
    quote = models.TextField(blank=True)
    state = models.CharField(max_length=20, choices=WikiPage.State, default=WikiPage.State.CURRENT)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["page", "anchor"], name="wiki_pageclaim_once")]
        indexes: ClassVar = [models.Index(fields=["document_uid", "state"], name="wiki_pageclaim_document")]

    def __str__(self) -> str:
        return self.text[:80]
