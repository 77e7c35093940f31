"""A team with two people, a knowledge base and documents in any state, for tests of pages."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.common.models import WorkerBeat
from apps.common.scope import unscoped
from apps.ingestion.models import IngestionRun
from apps.knowledge.models import Document, DocumentTag, KnowledgeBase, ParseStatus, Tag
from apps.spaces.models import Membership, Space

BOTH = {"vector_enabled": True, "keyword_enabled": True, "wiki_enabled": False, "graph_enabled": False}
HTMX = {"HX-Request": "true"}


class Shelf:
    """`admin` and `member` are signed-in browsers in `space`; `outsider` is admin of another space that owns `foreign`."""

    def __init__(self, language: str = "en") -> None:
        self.space = Space.objects.create(name="Acme", kind=Space.Kind.ORGANIZATION)
        self.other = Space.objects.create(name="Other", kind=Space.Kind.ORGANIZATION)
        self.admin = self.person("ada", self.space, "admin", language)
        self.member = self.person("mia", self.space, "member", language)
        self.outsider = self.person("otto", self.other, "admin", language)
        self.base = self.make_base("Handbook")
        self.foreign = self.make_base("Secret", space=self.other)

    @staticmethod
    def person(name: str, space: Space, role: str, language: str) -> Client:
        user = User.objects.create_user(f"{name}@example.com", "pw", username=name, language=language)
        Membership.objects.create(space=space, user=user, role=role)
        client = Client()
        client.force_login(user)
        return client

    def make_base(self, name: str, *, space: Space | None = None, **values: Any) -> KnowledgeBase:
        with unscoped("test data"):
            return KnowledgeBase.objects.create(space=space or self.space, name=name, **{"indexing_strategy": BOTH, **values})

    def document(self, title: str = "a.txt", *, base: KnowledgeBase | None = None, tags: tuple[Tag, ...] = (), **values: Any) -> Document:
        base = base or self.base
        given = {
            "parse_status": ParseStatus.COMPLETED,
            "enabled": True,
            "file_name": title,
            "file_type": title.rpartition(".")[2] if "." in title else "",
            "file_hash": uuid.uuid4().hex,
            "storage_path": "x/y",
            "attempt": 1,
            **values,
        }
        with unscoped("test data"):
            document = Document.objects.create(space_id=base.space_id, kb=base, title=title, **given)
            for tag in tags:
                DocumentTag.objects.create(space_id=base.space_id, document=document, tag=tag)
        return document

    def tag(self, name: str, color: str = "blue") -> Tag:
        with unscoped("test data"):
            return Tag.objects.create(space=self.space, kb=self.base, name=name, color=color)

    def run(
        self, document: Document, kind: str = "parse", *, state: str = "running", done: int = 0, total: int = 0, unit: str = ""
    ) -> None:
        running = state == "running"
        with unscoped("test data"):
            IngestionRun.objects.create(
                space_id=document.space_id,
                document=document,
                document_attempt=1,
                kind=kind,
                state=state,
                progress_done=done,
                progress_total=total,
                progress_unit=unit,
                started_at=timezone.now() - timedelta(seconds=65) if running else None,
                claim_token=uuid.uuid4() if running else None,
            )

    def worker(self) -> None:
        now = timezone.now()
        queues = ["parse", "ocr", "embed", "cleanup", "copy", "maintenance"]
        WorkerBeat.objects.update_or_create(name="w", defaults={"queues": queues, "started_at": now, "seen_at": now})

    def url(self, tail: str = "", base: KnowledgeBase | None = None) -> str:
        """An address below a base: `url("settings")`."""
        return f"/s/{self.space.pk}/bases/{(base or self.base).uid}/{tail}"

    def document_url(self, document: Document, tail: str) -> str:
        return f"/s/{self.space.pk}/documents/{document.uid}/{tail}"

    def fresh(self, row: Any) -> Any:
        """The row as it is now, None when it is gone."""
        with unscoped("test look"):
            return type(row).objects.filter(pk=row.pk).first()
