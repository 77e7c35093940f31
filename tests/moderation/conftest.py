"""A moderator, and a space they are not in with documents that went through the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.models import User
from apps.retrieval.engine import forget_engine
from apps.retrieval.journal import journal
from tests.support.library import Library
from tests.support.world import SessionClient, make_user


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
