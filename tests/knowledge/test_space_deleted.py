"""A deleted space takes its contents with it."""

from __future__ import annotations

import pytest

from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Document, KnowledgeBase
from apps.retrieval.engine import engine
from apps.spaces.services.space import space_delete
from tests.support.kit import make_kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)


def test_documents_files_and_index_entries_follow_their_space() -> None:
    kit = make_kit("Doomed")
    document = kit.upload("note.md", "# Note\n\nThe word XK-55 stands here.\n")
    work_all("parse")
    assert document.pk in engine().revisions(kit.space.pk)
    with space_scope(kit.space.pk):
        space_delete(actor=kit.actor, space=kit.space)
    assert document.pk not in engine().revisions(kit.space.pk)
    work_all()
    with unscoped("tests look at every space"):
        assert not Document.objects.filter(space=kit.space).exists()
        assert not KnowledgeBase.objects.filter(space=kit.space).exists()
