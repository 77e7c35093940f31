"""Two organizations and a personal space behind REST, in a database that commits, with an index and a file store of the test's own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import User
from apps.common.scope import unscoped
from apps.knowledge.models import Document, KnowledgeBase
from apps.retrieval.engine import forget_engine
from apps.retrieval.services import index_documents
from apps.spaces.models import Space
from tests.knowledge.conftest import Person
from tests.knowledge.conftest import World as SmallWorld
from tests.support.filestore import use_fresh_store
from tests.support.kit import work_all


class World(SmallWorld):
    """`owner` has a personal space with the base `own_base`; `api` and the families give addresses; `parse` does a worker's part."""

    def __init__(self) -> None:
        super().__init__()
        user = User.objects.create_user("pia@example.com", "pw", username="pia", language="en")  # their personal space comes along
        space = Space.objects.get(owner=user, kind=Space.Kind.PERSONAL)
        self.owner = Person(user, space, "admin")
        self.own_base = self.make_base(space, "Handbook")

    @property
    def organization(self) -> str:
        return f"/v1/tenants/{self.space.pk}/knowledge"

    def parse(self) -> None:
        """What a worker does with all that waits, vectors included."""
        work_all()

    def indexed(self, *documents: Document) -> None:
        """Rows that were made by hand are in the index, too."""
        with unscoped("test data"):
            index_documents(documents[0].space_id, [document.pk for document in documents])

    def set(self, row: Any, **values: Any) -> None:
        """The row as if it had become so by itself."""
        with unscoped("test data"):
            type(row).objects.filter(pk=row.pk).update(**values)

    def search(self, query: str, base: KnowledgeBase | None = None, **body: Any) -> Any:
        """`data` of a hybrid search by the member."""
        url = f"knowledge-bases/{(base or self.base).uid}/hybrid-search"
        answer = self.member.post(url, {"query_text": query, "skip_context_enrichment": True, **body})
        assert answer.status_code == 200, answer.content
        return answer.json()["data"]

    def write(self, title: str, content: str, status: str = "publish") -> dict[str, Any]:
        url = f"knowledge-bases/{self.base.uid}/knowledge/manual"
        return dict(data(self.member.post(url, {"title": title, "content": content, "status": status})))

    def document(self, uid: Any) -> dict[str, Any]:
        return dict(data(self.member.get(f"knowledge/{uid}")))


def data(answer: Any, status: int = 200) -> Any:
    """`data` of an answer that must have this status."""
    assert answer.status_code == status, (answer.status_code, answer.content[:500])
    return answer.json().get("data")


def code(answer: Any) -> tuple[int, int]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["error"]["code"]


def bytes_of(answer: Any) -> io.BytesIO:
    assert answer.status_code == 200, answer.content
    return io.BytesIO(answer.getvalue())


@pytest.fixture
def world(transactional_db: Any, settings: Any, tmp_path: Path) -> Iterator[World]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    use_fresh_store(settings, tmp_path)
    forget_engine()
    yield World()
    forget_engine()


@pytest.fixture
def words_only(settings: Any) -> None:
    """No vectors are made: a document is completed once its words are in the index."""
    settings.EMBEDDER = "none"
