"""A moderator, and a space they are not in with documents that went through the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.models import User
from apps.common.scope import unscoped
from apps.ingestion.models import IngestionRun
from apps.knowledge.models import Chunk, Document, passage_hash
from apps.retrieval.engine import forget_engine
from apps.retrieval.journal import journal
from tests.support.library import Library
from tests.support.world import SessionClient, make_user

TEXT = "The pump is replaced every five years."


@dataclass
class House:
    """`client` is the moderator's browser in English; `library.client` an admin's of a space the moderator is not in."""

    moderator: User
    client: SessionClient
    library: Library

    def page(self, name: str, *args: Any, query: str = "", status: int = 200) -> str:
        answer = self.client.get(reverse(f"admin:{name}", args=args) + query)
        assert answer.status_code == status, answer.content[:3000].decode()
        return str(answer.content.decode())

    def document(self, title: str = "pump.txt", **values: Any) -> Document:
        """A finished document with one passage, without the pipeline."""
        space, base = self.library.space, self.library.base
        defaults: dict[str, Any] = {"parse_status": "completed", "enabled": True, "chunk_count": 1, "attempt": 1, "file_type": "txt"}
        with unscoped("test"):
            made = Document.objects.create(space=space, kb=base, title=title, file_name=title, file_hash=title, **{**defaults, **values})
            place = {"chunk_index": 0, "start_at": 0, "end_at": len(TEXT), "content_hash": passage_hash(TEXT)}
            Chunk.objects.create(space=space, kb=base, document=made, content=TEXT, **place)
            IngestionRun.objects.create(space=space, document=made, kind="parse", document_attempt=1, state="done")
        return made

    def act(self, noun: str, key: Any, code: str, **typed: str) -> Any:
        return self.client.post(reverse("admin:act", args=[noun, key, code]), typed)


@pytest.fixture
def house(db: None, settings: Any, tmp_path: Path) -> Iterator[House]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    settings.STORAGES = {**settings.STORAGES, "default": {**settings.STORAGES["default"], "OPTIONS": {"location": tmp_path / "files"}}}
    forget_engine()
    journal.forget()
    moderator = make_user("moderator@example.com", language="en")
    made = House(moderator, SessionClient(moderator), Library.make())
    yield made
    journal.forget()
    forget_engine()
