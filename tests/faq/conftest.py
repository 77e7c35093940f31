"""An organization with an FAQ base, its twin in another organization, and clients of their people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.common.actor import Actor
from apps.common.scope import space_scope
from apps.faq.drafts import Draft
from apps.faq.models import FaqEntry
from apps.faq.services import entry_create
from apps.knowledge.models import KnowledgeBase
from tests.knowledge.conftest import World
from tests.support.filestore import use_fresh_store
from tests.support.kit import work_all


class FaqWorld(World):
    """`faq` and `second_faq` in one space, `other_faq` in another; entries by `add`."""

    def __init__(self) -> None:
        super().__init__()
        self.faq = self.make_base(self.space, "Support", type="faq")
        self.second_faq = self.make_base(self.space, "Sales", type="faq")
        self.other_faq = self.make_base(self.other_space, "Support", type="faq")

    @property
    def system(self) -> Actor:
        return Actor.system(self.space.pk, "test")

    def add(self, question: str, *answers: str, base: KnowledgeBase | None = None, **values: Any) -> FaqEntry:
        """A new entry of `faq` (or `base`)."""
        draft = Draft(question, answers=answers or ("An answer.",), **values)
        with space_scope((base or self.faq).space_id):
            return entry_create(actor=Actor.system((base or self.faq).space_id, "test"), base=base or self.faq, draft=draft)

    def path(self, tail: str, base: KnowledgeBase | None = None) -> str:
        return f"knowledge-bases/{(base or self.faq).uid}/faq/{tail}"

    def run_import(self, rows: list[Any], mode: str = "append", *, base: KnowledgeBase | None = None, **more: Any) -> dict[str, Any]:
        """The progress of an import after its work was done."""
        started = self.member.post(self.path("entries", base), {"entries": rows, "mode": mode, **more})
        assert started.status_code == 200, started.content
        work_all("faq_import")
        return self.progress(started.json()["data"]["task_id"])

    def progress(self, task_id: str) -> dict[str, Any]:
        answer = self.member.get(f"faq/import/progress/{task_id}")
        assert answer.status_code == 200, answer.content
        return answer.json()["data"]

    def entries(self, base: KnowledgeBase | None = None) -> list[dict[str, Any]]:
        """Every entry over REST, oldest first."""
        found = self.member.get(self.path("entries?page_size=1000", base)).json()["data"]["data"]
        return sorted(found, key=lambda entry: entry["id"])


@pytest.fixture
def faq(db: None, tmp_path: Path, settings: Any) -> Iterator[FaqWorld]:
    use_fresh_store(settings, tmp_path)
    yield FaqWorld()
