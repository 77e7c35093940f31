"""The tag drawer on tags in use: asked before they are taken off, done in batches, told truthfully when it stops half-way."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from apps.common.models import Activity
from apps.common.scope import unscoped
from apps.knowledge.models import Document, DocumentTag, Tag
from apps.knowledge.services import tags as service
from tests.portal.test_documents import text_of, toast_of
from tests.support.shelf import HTMX, Shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def carried(tag: Tag) -> int:
    with unscoped("test look"):
        return DocumentTag.objects.filter(tag=tag).count()


def send(shelf: Shelf, tag: Tag, do: str) -> Any:
    return shelf.member.post(shelf.url("tags"), {"tag": str(tag.uid), "do": do, "name": tag.name}, headers=HTMX)


def test_a_tag_in_use_is_taken_off_and_deleted_and_the_documents_stay(shelf: Shelf) -> None:
    tag, other = shelf.tag("old"), shelf.tag("kept")
    first = shelf.document("a.txt", tags=(tag, other), folder_path="deep/er")
    shelf.document("b.txt", tags=(tag,))
    asked = send(shelf, tag, "delete")
    assert asked.status_code == 422 and "2 documents carry this tag. Take it off all of them" in text_of(asked)
    assert carried(tag) == 2
    done = send(shelf, tag, "detach")
    assert toast_of(done) == "Tag deleted." and "It was taken off 2 documents." in done["HX-Trigger"]
    assert shelf.fresh(tag) is None
    with unscoped("test look"):
        assert [each.name for each in shelf.fresh(first).tags.all()] == ["kept"]
        assert Document.objects.filter(deleted_at__isnull=True).count() == 2
        acts = list(Activity.objects.order_by("pk").values_list("action", flat=True))
    assert acts[-2:] == ["knowledge.updated", "tag.deleted"]


def test_what_stops_half_way_is_told_and_the_next_press_goes_on(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "BATCH", 2)
    tag = shelf.tag("old")
    for number in range(5):
        shelf.document(f"{number}.txt", tags=(tag,))
    publish, calls = service.publish, []

    def fail_on_second(event: Any) -> None:
        calls.append(event)
        if len(calls) == 2:
            raise OperationalError("disk is full")
        publish(event)

    monkeypatch.setattr(service, "publish", fail_on_second)
    stopped = send(shelf, tag, "detach")
    assert stopped.status_code == 422
    assert "The tag was not taken off everywhere. It was taken off 2 documents. The database did not answer." in text_of(stopped)
    assert (carried(tag), shelf.fresh(tag).name) == (3, "old")
    assert "It was taken off 3 documents." in send(shelf, tag, "detach")["HX-Trigger"]
    assert (carried(tag), shelf.fresh(tag)) == (0, None)


def test_counts_are_those_of_live_documents(shelf: Shelf) -> None:
    tag = shelf.tag("count")
    document = shelf.document("a.txt", tags=(tag,))
    shelf.document("b.txt", tags=(tag,))
    assert "2 documents" in text_of(shelf.member.get(shelf.url("tags"), headers=HTMX))
    shelf.member.post(shelf.url("bulk/delete"), {"ids": [str(document.uid)]}, headers=HTMX)
    assert "1 document" in text_of(shelf.member.get(shelf.url("tags"), headers=HTMX))


def test_a_tag_left_on_a_deleted_document_is_not_counted(shelf: Shelf) -> None:
    tag = shelf.tag("count")
    shelf.document("a.txt", tags=(tag,))
    gone = shelf.document("b.txt", tags=(tag,))
    with unscoped("a tombstone that kept its link"):
        Document.objects.filter(pk=gone.pk).update(deleted_at=timezone.now())
    assert "1 document" in text_of(shelf.member.get(shelf.url("tags"), headers=HTMX))
