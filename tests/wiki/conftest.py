"""An organization with a wiki, its twin in another organization, and clients of their people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.common.actor import Actor
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import KnowledgeBase
from apps.spaces.models import Space
from apps.wiki.drafts import PageDraft
from apps.wiki.models import PageLink, WikiPage
from apps.wiki.services import page_create
from tests.knowledge.conftest import Person, World
from tests.support.filestore import use_fresh_store


class WikiWorld(World):
    """`wiki` and `second_wiki` in one space, `other_wiki` in another; pages by `add`."""

    def __init__(self) -> None:
        super().__init__()
        self.colleague = self.person("kim", self.space, "member")
        self.wiki = self.make_wiki(self.space, "Plant")
        self.second_wiki = self.make_wiki(self.space, "Sales")
        self.other_wiki = self.make_wiki(self.other_space, "Plant")

    def make_wiki(self, space: Space, name: str) -> KnowledgeBase:
        base = self.make_base(space, name)
        base.indexing_strategy = {**base.indexing_strategy, "wiki_enabled": True}
        with unscoped("test data"):
            base.save(update_fields=["indexing_strategy"])
        return base

    @property
    def system(self) -> Actor:
        return Actor.system(self.space.pk, "test")

    def add(self, title: str, content: str = "", base: KnowledgeBase | None = None, **values: Any) -> WikiPage:
        """A new page of `wiki` (or `base`), by a person of its space."""
        base = base or self.wiki
        actor = self.member.actor if base.space_id == self.space.pk else self.outsider.actor
        with space_scope(base.space_id):
            return page_create(actor=actor, base=base, draft=PageDraft(title=title, content=content, **values))

    def path(self, tail: str, base: KnowledgeBase | None = None) -> str:
        return f"knowledgebase/{(base or self.wiki).uid}/wiki/{tail}"

    def page(self, slug: str, person: Person | None = None) -> dict[str, Any]:
        answer = (person or self.member).get(self.path(f"pages/{slug}"))
        assert answer.status_code == 200, answer.content
        return answer.json()

    def links(self) -> dict[tuple[str, str], str | None]:
        """{(page, address in its text): page it leads to} of the whole wiki."""
        with space_scope(self.space.pk):
            rows = PageLink.objects.filter(kb=self.wiki)
            return {(page, key): target for page, key, target in rows.values_list("page__title", "key", "target__title")}


@pytest.fixture
def wiki(db: None, tmp_path: Path, settings: Any) -> Iterator[WikiWorld]:
    use_fresh_store(settings, tmp_path)
    yield WikiWorld()
