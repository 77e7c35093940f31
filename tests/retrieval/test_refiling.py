"""Folders and tags of many documents reach the index without their passages being read again, and never pretend to be newer than they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Document
from apps.knowledge.selectors import documents_get
from apps.knowledge.services import (
    document_update,
    documents_into_folder,
    documents_reparse,
    folder_rename,
    tag_create,
    tag_update,
    tags_replace,
)
from apps.retrieval.engine import engine
from apps.retrieval.search import Options, Scope, search
from apps.retrieval.services import index_documents, index_drift
from tests.support.kit import Kit, make_kit
from tests.support.rows import Filed, make_documents


@pytest.fixture
def kit(transactional_db: Any, settings: Any) -> Kit:
    settings.EMBEDDER = "none"
    return make_kit()


def filed(kit: Kit, count: int, start: int = 0) -> list[Document]:
    """Documents of two passages each, in the index."""
    made = make_documents(kit.base, [Filed(f"report {n}.md", ("pump", f"valve {n}"), (), "a/b") for n in range(start, start + count)])
    with space_scope(kit.space.pk):
        index_documents(kit.space.pk, [document.pk for document in made])
    return made


def fresh(kit: Kit, documents: Sequence[Document]) -> list[Document]:
    return documents_get(actor=kit.actor, base=kit.base, ids=[str(document.uid) for document in documents], field_name="ids")


def find(kit: Kit, words: str, **scope: Any) -> set[int]:
    asked = Scope(kb_uids=(kit.base.uid,), **scope)
    return {hit.document.pk for hit in search(actor=kit.actor, query=words, scope=asked, options=Options(mode="text", limit=50)).hits}


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of documents that were indexed whole."""
    backend, seen = type(engine()), []
    whole = backend.put

    def put(self: Any, documents: Any) -> None:
        given = list(documents)
        seen.extend(document.id for document in given)
        whole(self, given)

    monkeypatch.setattr(backend, "put", put)
    return seen


def test_filters_and_words_follow_and_no_document_is_indexed_whole(kit: Kit, puts: list[int]) -> None:
    documents = filed(kit, 3)
    ids = {document.pk for document in documents}
    puts.clear()
    with space_scope(kit.space.pk):
        red = tag_create(actor=kit.actor, base=kit.base, name="crimson")
        tags_replace(actor=kit.actor, base=kit.base, updates={document.uid: [str(red.uid)] for document in documents})
        assert find(kit, "crimson") == ids and find(kit, "valve", tag_uids=(red.uid,)) == ids
        tag_update(actor=kit.actor, tag=red, name="scarlet")
        assert find(kit, "scarlet") == ids and find(kit, "crimson") == set()
        documents_into_folder(actor=kit.actor, base=kit.base, documents=fresh(kit, documents[:2]), path="c")
        assert find(kit, "scarlet", folder_path="c") == {document.pk for document in documents[:2]}
        folder_rename(actor=kit.actor, base=kit.base, source="c", target="d/e")
        assert find(kit, "valve", folder_path="d") == {document.pk for document in documents[:2]}
        tags_replace(actor=kit.actor, base=kit.base, updates={documents[0].uid: []})
        assert find(kit, "scarlet") == ids - {documents[0].pk}
        assert index_drift(kit.space.pk).total == 0
    assert puts == [] and engine().check() == []


def test_a_document_whose_index_is_behind_is_indexed_whole(kit: Kit, puts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A change the index missed must not be hidden by the next one that reaches it."""
    behind, other = filed(kit, 2)
    puts.clear()
    with space_scope(kit.space.pk):
        with monkeypatch.context() as lost:
            lost.setattr("apps.retrieval.services.index_documents", lambda *_args: None)
            document_update(actor=kit.actor, document=behind, title="renamed zebra")
        documents_into_folder(actor=kit.actor, base=kit.base, documents=fresh(kit, [behind, other]), path="c")
        assert puts == [behind.pk]
        assert find(kit, "zebra") == {behind.pk} and find(kit, "valve", folder_path="c") == {behind.pk, other.pk}
        assert index_drift(kit.space.pk).total == 0


def test_two_changes_in_one_transaction_end_in_the_later_one(kit: Kit) -> None:
    (document,) = filed(kit, 1)
    with space_scope(kit.space.pk):
        with transaction.atomic():
            documents_into_folder(actor=kit.actor, base=kit.base, documents=fresh(kit, [document]), path="c")
            document_update(actor=kit.actor, document=document, title="renamed zebra")
            documents_into_folder(actor=kit.actor, base=kit.base, documents=fresh(kit, [document]), path="d")
        assert find(kit, "zebra", folder_path="d") == {document.pk} and find(kit, "valve", folder_path="c") == set()
        assert index_drift(kit.space.pk).total == 0


def test_what_is_not_to_be_found_stays_out(kit: Kit) -> None:
    draft, live = filed(kit, 2)
    with unscoped("test data"):
        Document.objects.filter(pk=draft.pk).update(enabled=False, parse_status="pending")
    with space_scope(kit.space.pk):
        index_documents(kit.space.pk, [draft.pk])
        documents_into_folder(actor=kit.actor, base=kit.base, documents=fresh(kit, [draft, live]), path="c")
        assert set(engine().revisions(kit.space.pk)) == {live.pk} and index_drift(kit.space.pk).total == 0


@pytest.mark.parametrize("act", ["folder", "rename", "tags", "reparse"])
def test_as_many_statements_for_many_as_for_few(kit: Kit, act: str) -> None:
    counts = []
    with space_scope(kit.space.pk):
        tag = tag_create(actor=kit.actor, base=kit.base, name="red")
        for count in (3, 160):
            documents = filed(kit, count, start=len(counts) * 1000)
            with unscoped("test data"):
                Document.objects.filter(pk__in=[document.pk for document in documents]).update(storage_path="k", folder_path=f"f{count}")
            given = fresh(kit, documents)
            with CaptureQueriesContext(connection) as queries:
                if act == "folder":
                    documents_into_folder(actor=kit.actor, base=kit.base, documents=given, path="c")
                elif act == "rename":
                    folder_rename(actor=kit.actor, base=kit.base, source=f"f{count}", target=f"g{count}")
                elif act == "tags":
                    tags_replace(actor=kit.actor, base=kit.base, updates={document.uid: [str(tag.uid)] for document in given})
                else:
                    documents_reparse(actor=kit.actor, base=kit.base, documents=given)
            # Django gives SQLite 41 new runs a statement, whatever SQLite would take; everything else must be as many.
            counts.append(sum(not each["sql"].startswith("INSERT") for each in queries))
    assert counts[0] == counts[1]
