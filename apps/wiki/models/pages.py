"""Pages, the addresses and names they go by, and their history."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.scope import SpaceOwned, SpaceQuerySet, scoped_manager
from apps.knowledge.models import Document, KnowledgeBase
from apps.wiki.models.folders import WikiFolder


class PageType(models.TextChoices):
    """Contract content 5.1; a page somebody made by hand has none."""

    SUMMARY = "summary", _("Summary")
    ENTITY = "entity", _("Entity")
    CONCEPT = "concept", _("Concept")
    INDEX = "index", _("Index")
    SYNTHESIS = "synthesis", _("Synthesis")
    COMPARISON = "comparison", _("Comparison")


class WikiPageQuerySet(SpaceQuerySet):
    def live(self) -> WikiPageQuerySet:
        rows: Any = self.filter(document__deleted_at__isnull=True)
        return rows

    def visible_to(self, actor: Actor) -> WikiPageQuerySet:
        """Live pages of live bases of the actor's space, within an API key's list of bases."""
        live = {"document__deleted_at__isnull": True, "kb__deleted_at__isnull": True, "kb__is_hidden": False}
        rows: Any = super().visible_to(actor).filter(**live)
        return rows if actor.kb_uids is None else rows.filter(kb__uid__in=actor.kb_uids)


class WikiPage(SpaceOwned):
    """Contract content 5.1. It lives and dies with its document (type `page`), which has its passages and its place in the index.

    `version` rises with every change of what is read; `source` says who made the current one, `made_by` who made the page. `is_kept`: a
    person has written on it, so a run proposes instead of writing. `metadata` keeps members of an imported front matter the portal has no
    use for, so that they go out again. `title_key` is the title as links name it (`apps.wiki.slugs.slug_of`).
    """

    class Status(models.TextChoices):
        DRAFT = "draft", _("Draft")
        PUBLISHED = "published", _("Published")
        ARCHIVED = "archived", _("Archived")

    class State(models.TextChoices):
        """How the documents a page rests on are."""

        CURRENT = "current", _("Current")
        SOURCE_CHANGED = "source_changed", _("Source changed")
        SOURCE_WITHDRAWN = "source_withdrawn", _("Source withdrawn")

    class Source(models.TextChoices):
        """Where a version came from (contract content 5.1, `last_edit_source`: pipeline, agent, user, revert; connectors are pipelines)."""

        PERSON = "person", _("A person")
        SYSTEM = "system", _("The portal")
        CONNECTOR = "connector", _("A data source")
        AGENT = "agent", _("An agent")
        REVERT = "revert", _("Brought back")

    class Mode(models.TextChoices):
        """How a page came to be."""

        PERSON = "person", _("Written by hand")
        RULES = "rules", _("Made without a model")
        MODEL = "model", _("Written by a model")
        IMPORT = "import", _("Imported")
        AGENT = "agent", _("Written by an agent")

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    document = models.OneToOneField(Document, on_delete=models.CASCADE, related_name="wiki_page")
    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    slug = models.CharField(max_length=255)
    title = models.CharField(max_length=512)
    title_key = models.CharField(max_length=255)
    page_type = models.CharField(max_length=16, choices=PageType, blank=True)
    status = models.CharField(max_length=12, choices=Status, default=Status.PUBLISHED)
    state = models.CharField(max_length=20, choices=State, default=State.CURRENT)
    summary = models.TextField(blank=True)
    content = models.TextField(blank=True)
    folder = models.ForeignKey(WikiFolder, null=True, on_delete=models.SET_NULL, related_name="pages")
    sort_order = models.IntegerField(default=0)
    metadata = models.JSONField(default=dict)
    trashed = models.JSONField(default=dict)  # of a deleted page: the addresses it had, and the pages its links led to
    version = models.PositiveIntegerField(default=1)
    made_by = models.CharField(max_length=8, choices=Mode, default=Mode.PERSON)
    model_name = models.CharField(max_length=128, blank=True)
    is_kept = models.BooleanField(default=False)
    source = models.CharField(max_length=12, choices=Source, default=Source.PERSON)
    editor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    edit_note = models.CharField(max_length=1000, blank=True)
    edited_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[Any] = scoped_manager(WikiPageQuerySet)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["kb", "-updated_at", "-id"], name="wiki_wikipage_changed"),
            models.Index(fields=["kb", "folder", "title", "id"], name="wiki_wikipage_folder"),
            models.Index(fields=["kb", "page_type", "title", "id"], name="wiki_wikipage_type"),
            models.Index(fields=["kb", "slug"], name="wiki_wikipage_slug"),
            models.Index(fields=["kb", "title_key"], name="wiki_wikipage_named"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def kb_uid(self) -> uuid.UUID:
        return self.kb.uid

    @property
    def alias_names(self) -> list[str]:
        """Its other names in their order; no query when `aliases` is prefetched."""
        return [alias.name for alias in sorted(self.aliases.all(), key=lambda alias: alias.place)]  # type: ignore[attr-defined]


class PageSlug(SpaceOwned):
    """An address of a live page: the one it has, and those it had. One address leads to one page."""

    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    page = models.ForeignKey(WikiPage, on_delete=models.CASCADE, related_name="slugs")
    slug = models.CharField(max_length=255)
    is_current = models.BooleanField(default=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kb", "slug"], name="wiki_pageslug_once"),
            models.UniqueConstraint(fields=["page"], condition=models.Q(is_current=True), name="wiki_pageslug_current"),
        ]

    def __str__(self) -> str:
        return self.slug


class PageAlias(SpaceOwned):
    """Another name of a page; `key` is it as links and searches compare names (`apps.wiki.slugs.slug_of`)."""

    kb = models.ForeignKey(KnowledgeBase, on_delete=models.CASCADE, related_name="+")
    page = models.ForeignKey(WikiPage, on_delete=models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=255)
    key = models.CharField(max_length=255)
    place = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["page", "key"], name="wiki_pagealias_once")]
        indexes: ClassVar = [models.Index(fields=["kb", "key"], name="wiki_pagealias_found")]

    def __str__(self) -> str:
        return self.name


class PageRevision(SpaceOwned):
    """A state a page had before; `source`, `editor` and `note` tell of who made it, `edited_at` when (contract content 5.3)."""

    uid = models.UUIDField(unique=True, default=uuid.uuid4)
    page = models.ForeignKey(WikiPage, on_delete=models.CASCADE, related_name="revisions")
    version = models.PositiveIntegerField()
    slug = models.CharField(max_length=255)
    title = models.CharField(max_length=512)
    page_type = models.CharField(max_length=16, blank=True)
    status = models.CharField(max_length=12)
    summary = models.TextField(blank=True)
    content = models.TextField(blank=True)
    aliases = models.JSONField(default=list)
    source = models.CharField(max_length=12, choices=WikiPage.Source)
    editor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    note = models.CharField(max_length=1000, blank=True)
    edited_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["page", "version"], name="wiki_pagerevision_once")]

    def __str__(self) -> str:
        return f"{self.page_id} v{self.version}"
