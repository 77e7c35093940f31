"""What pages link to."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.common.scope import SpaceOwned
from apps.knowledge.models import KnowledgeBase
from apps.wiki.models.pages import WikiPage


class PageLink(SpaceOwned):
    """One `[[key|label]]` of a live page's text, each key once. `target` None: no page answers to it (a broken link).

    The target is held by id: whatever address it gets later, the link leads there. `key` is the address as it stands in the text.
    """

    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    page = models.ForeignKey(WikiPage, on_delete=models.CASCADE, related_name="out_links")
    target = models.ForeignKey(WikiPage, null=True, on_delete=models.SET_NULL, related_name="in_links")
    key = models.CharField(max_length=255)
    label = models.CharField(max_length=512, blank=True)
    place = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["page", "key"], name="wiki_pagelink_once")]
        indexes: ClassVar = [
            models.Index(fields=["kb", "target", "page"], name="wiki_pagelink_graph"),
            models.Index(fields=["kb", "key"], condition=models.Q(target__isnull=True), name="wiki_pagelink_broken"),
        ]

    def __str__(self) -> str:
        return f"{self.page_id} -> {self.key}"
