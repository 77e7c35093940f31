"""Many documents to another base and into an archive: limits told before, results told truthfully after."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from apps.common.jobs.models import RunState
from apps.common.scope import unscoped
from apps.knowledge.models import Document, MoveRun, ParseStatus
from apps.portal.views import bulk
from tests.portal.test_documents import text_of
from tests.support.shelf import HTMX, Shelf

pytestmark = pytest.mark.django_db
MB = 1024 * 1024


@pytest.fixture
def shelf() -> Shelf:
    made = Shelf()
    made.worker()
    return made


def ids_of(*documents: Document) -> list[str]:
    return [str(document.uid) for document in documents]


def test_members_are_not_offered_another_base_and_are_refused(shelf: Shelf) -> None:
    document, target = shelf.document("a.txt"), shelf.make_base("Target")
    assert "bulk/move" not in shelf.member.get(shelf.url("")).content.decode()
    assert "bulk/move" in shelf.admin.get(shelf.url("")).content.decode()
    form = {"ids": ids_of(document), "target": str(target.uid), "mode": "reuse_vectors"}
    assert shelf.member.post(shelf.url("bulk/move"), form, headers=HTMX).status_code == 403
    assert shelf.fresh(document).kb_id == shelf.base.pk


def test_a_move_names_what_stays_and_what_is_lost_and_shows_how_far_it_is(shelf: Shelf) -> None:
    target = shelf.make_base("Target")
    shelf.make_base("Other model", embedding_model_id="openai")
    ready = [shelf.document("a.txt", tags=(shelf.tag("t"),)), shelf.document("b.txt")]
    waiting = shelf.document("c.txt", parse_status=ParseStatus.PENDING)
    asked = shelf.admin.get(shelf.url("bulk/move"), {"ids": ids_of(*ready, waiting)}, headers=HTMX)
    assert asked.context["targets"] == [(str(target.uid), "Target")]
    assert "1 document is not ready and stays here." in text_of(asked) and "1 document loses its tags." in text_of(asked)
    form = {"ids": ids_of(*ready, waiting), "target": str(target.uid), "mode": "reuse_vectors"}
    begun = shelf.admin.post(shelf.url("bulk/move"), form, headers=HTMX)
    assert "0 of 2 moved" in text_of(begun) and "kb:selection-done" in begun["HX-Trigger"]
    with unscoped("test data"):
        run = MoveRun.objects.get()
        assert sorted(run.document_refs) == sorted(document.pk for document in ready)
        MoveRun.objects.update(state=RunState.DONE, progress_done=2, progress_failed=1, error="same_content\tb.txt")
    told = shelf.admin.get(shelf.url(f"bulk/move/{run.task_id}"), headers=HTMX)
    assert "1 of 2 documents moved; 1 stayed where they were." in text_of(told) and "the same content already" in text_of(told)
    assert "data-poll" not in told.content.decode() and "kb:changed" in told["HX-Trigger"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": ""}, "Choose a knowledge base."),
        ({"target": str(uuid.uuid4())}, "Choose a knowledge base."),
        ({"mode": "teleport"}, "Choose what becomes of the vectors."),
    ],
)
def test_a_move_that_makes_no_sense_keeps_the_form(shelf: Shelf, change: dict[str, str], said: str) -> None:
    document, target = shelf.document("a.txt"), shelf.make_base("Target")
    form = {"ids": ids_of(document), "target": str(target.uid), "mode": "reuse_vectors", **change}
    answer = shelf.admin.post(shelf.url("bulk/move"), form, headers=HTMX)
    assert answer.status_code == 422 and said in text_of(answer)
    with unscoped("test look"):
        assert not MoveRun.objects.exists()


def test_a_foreign_base_is_no_target(shelf: Shelf) -> None:
    document, _fits = shelf.document("a.txt"), shelf.make_base("Target")
    form = {"ids": ids_of(document), "target": str(shelf.foreign.uid), "mode": "reparse"}
    assert "Choose a knowledge base." in text_of(shelf.admin.post(shelf.url("bulk/move"), form, headers=HTMX))


def test_an_archive_says_beforehand_what_it_takes_and_leaves_out(shelf: Shelf) -> None:
    documents = [
        shelf.document("a.txt", file_size=3 * MB),
        shelf.document("b.txt", file_size=MB),
        shelf.document("web", storage_path="", type="url"),
    ]
    asked = shelf.member.get(shelf.url("bulk/zip"), {"ids": ids_of(*documents)}, headers=HTMX)
    said = text_of(asked)
    assert "2 originals, 4.0 MB of at most 512.0 MB" in said and "1 document has no original file and is left out." in said
    assert sorted(json.loads(asked.context["archive_ids"])) == sorted(ids_of(*documents))


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([512 * MB], ""),
        ([512 * MB, 1], "An archive takes at most 512.0 MB"),
        ([1] * 201, "An archive takes at most 200 documents; 201 are selected."),
    ],
)
def test_an_archive_that_is_too_much_has_no_button(shelf: Shelf, sizes: list[int], said: str) -> None:
    with unscoped("test data"):
        Document.objects.bulk_create(
            Document(space=shelf.space, kb=shelf.base, title=f"{n}", file_hash=f"{n}", storage_path="x", file_size=size)
            for n, size in enumerate(sizes)
        )
    asked = shelf.member.get(shelf.url("bulk/zip?all=1"), headers=HTMX)
    assert said in text_of(asked)
    assert ("data-archive-url" in asked.content.decode()) is (said == "")


def test_more_than_one_slice_may_be_selected_and_a_stop_half_way_is_told(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "SLICE", 2)
    documents = [shelf.document(f"{n}.txt") for n in range(5)]
    real, calls = bulk.documents_into_folder, []

    def second_fails(**values: Any) -> Any:
        calls.append(values)
        if len(calls) == 2:
            raise bulk.InvalidInput("The disk is full.")
        return real(**values)

    monkeypatch.setattr(bulk, "documents_into_folder", second_fails)
    answer = shelf.member.post(shelf.url("bulk/folder"), {"ids": ids_of(*documents), "folder": "f"}, headers=HTMX)
    assert "Done for 3 of 5." in text_of(answer) and text_of(answer).count("The disk is full.") == 2
    with unscoped("test look"):
        assert Document.objects.filter(folder_path="f").count() == 3


def test_taking_everything_is_offered_up_to_the_limit(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(3):
        shelf.document(f"{n}.txt")
    assert "Select all 3" in text_of(shelf.member.get(shelf.url("")))
    monkeypatch.setattr("apps.portal.views.documents.MOST", 2)
    page = text_of(shelf.member.get(shelf.url("")))
    assert "Select all" not in page and "up to 2 at a time" in page
