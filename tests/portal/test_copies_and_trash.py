"""Copying and emptying bases, following copies, and the trash, as people see them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from apps.common.scope import unscoped
from apps.knowledge.models import CleanupRun, CopyRun, Document, KnowledgeBase
from tests.support.kit import work_all
from tests.support.shelf import HTMX, Shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def text_of(response: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())).strip()


def toast_of(response: Any) -> Any:
    return json.loads(response["HX-Trigger"])["toast"]


def space_url(shelf: Shelf, tail: str = "") -> str:
    return f"/s/{shelf.space.pk}/{tail}"


def names(shelf: Shelf) -> list[str]:
    with unscoped("test look"):
        return sorted(
            KnowledgeBase.objects.filter(space=shelf.space, deleted_at__isnull=True, is_hidden=False).values_list("name", flat=True)
        )


def test_the_menu_offers_to_admins_what_members_are_told_they_may_not(shelf: Shelf) -> None:
    admin, member = (client.get(shelf.url("menu"), headers=HTMX) for client in (shelf.admin, shelf.member))
    assert "Copy…" in text_of(admin) and "Deleted documents" in text_of(admin)
    assert "Only admins of the space may" in member.content.decode() and "Deleted documents" not in text_of(member)
    assert shelf.member.get(shelf.url("copy")).status_code == 403


def test_copy_of_the_settings_opens_the_new_base(shelf: Shelf) -> None:
    asked = shelf.admin.get(shelf.url("copy?way=settings"), headers=HTMX)
    assert 'value="Handbook Copy"' in asked.content.decode() and "Documents and tags are not copied" in text_of(asked)
    made = shelf.admin.post(shelf.url("copy"), {"way": "settings", "name": "Second"}, headers=HTMX)
    assert made.status_code == 204 and "/bases/" in made["HX-Redirect"] and names(shelf) == ["Handbook", "Second"]
    wrong = shelf.admin.post(shelf.url("copy"), {"way": "settings", "name": "x" * 300}, headers=HTMX)
    assert wrong.status_code == 422 and names(shelf) == ["Handbook", "Second"]


def test_a_copy_is_shown_with_its_progress_until_it_ends_and_then_said(shelf: Shelf) -> None:
    for number in range(3):
        shelf.document(f"{number}.txt", storage_path="")
    started = shelf.admin.post(shelf.url("copy"), {"way": "contents", "target": "", "name": "Twin"}, headers=HTMX)
    assert toast_of(started)["text"].startswith("The copy has started.")
    listed = shelf.member.get(space_url(shelf))
    assert "Being copied: “Twin”" in text_of(listed) and "Waiting: no worker is running" in text_of(listed)
    assert names(shelf) == ["Handbook"] and "every 2s" in listed.content.decode()
    with unscoped("test look"):
        run = CopyRun.objects.get()
    work_all("copy")
    followed = shelf.admin.get(space_url(shelf, f"copies?watched={run.pk}"), headers=HTMX)
    assert toast_of(followed) == [{"kind": "success", "text": "“Twin” is copied: 3 documents."}]
    assert "kb:changed" in json.loads(followed["HX-Trigger"]) and "every 2s" not in followed.content.decode()
    assert names(shelf) == ["Handbook", "Twin"]
    assert "HX-Trigger" not in shelf.admin.get(space_url(shelf, "copies?watched=x,999,,"), headers=HTMX)


def test_a_mirror_says_before_what_is_lost_and_can_be_stopped(shelf: Shelf) -> None:
    target = shelf.make_base("Target")
    shelf.document("same.txt", file_hash="1" * 32)
    shelf.document("new.txt", file_hash="2" * 32)
    shelf.document("same.txt", base=target, file_hash="1" * 32)
    shelf.document("old.txt", base=target, file_hash="3" * 32)
    asked = text_of(shelf.admin.get(shelf.url(f"copy?way=contents&target={target.uid}"), headers=HTMX))
    assert "“Target” becomes a mirror of this base" in asked and "1 document is copied" in asked
    assert "1 document that this base does not have is deleted there" in asked
    shelf.admin.post(shelf.url("copy"), {"way": "contents", "target": str(target.uid)}, headers=HTMX)
    again = shelf.admin.post(shelf.url("copy"), {"way": "contents", "target": str(target.uid)}, headers=HTMX)
    assert again.status_code == 422 and "being copied into this knowledge base already" in text_of(again)
    with unscoped("test look"):
        run = CopyRun.objects.get()
    stopped = shelf.admin.post(space_url(shelf, f"copies/{run.task_id}/stop"), headers=HTMX)
    assert toast_of(stopped)["text"] == "The copy is being stopped."
    with unscoped("test look"):
        assert CopyRun.objects.get().state == "cancelled" and Document.objects.filter(kb=target, deleted_at__isnull=True).count() == 2


def test_emptying_asks_for_the_name(shelf: Shelf) -> None:
    document = shelf.document("a.txt")
    wrong = shelf.admin.post(shelf.url("clear"), {"confirm": "Handbok"}, headers=HTMX)
    assert wrong.status_code == 422 and shelf.fresh(document).deleted_at is None
    done = shelf.admin.post(shelf.url("clear"), {"confirm": "Handbook"}, headers=HTMX)
    assert toast_of(done)["text"] == "1 document deleted." and "for 30 days" in toast_of(done)["detail"]
    assert shelf.fresh(document).deleted_at is not None and names(shelf) == ["Handbook"]


def test_a_deletion_is_undone_from_its_toast_by_who_may(shelf: Shelf) -> None:
    document = shelf.document("a.txt")
    asked = text_of(shelf.admin.get(shelf.document_url(document, "delete"), headers=HTMX))
    assert "An admin can bring it back from the trash for 30 days" in asked
    toast = toast_of(shelf.admin.post(shelf.document_url(document, "delete"), headers=HTMX))
    assert toast["text"] == "“a.txt” was deleted."
    back = shelf.admin.post(toast["undo_url"], headers=HTMX)
    assert toast_of(back)["text"] == "1 document brought back." and shelf.fresh(document).deleted_at is None
    assert "undo_url" not in toast_of(shelf.member.post(shelf.document_url(document, "delete"), headers=HTMX)), "members ask an admin"
    assert shelf.fresh(document).deleted_at is not None


def test_the_trash_of_a_base_brings_back_and_removes(shelf: Shelf) -> None:
    documents = [shelf.document(f"{n}.txt") for n in range(3)]
    for document in documents:
        shelf.member.post(shelf.document_url(document, "delete"), headers=HTMX)
    assert shelf.member.get(shelf.url("trash")).status_code == 403
    page = shelf.admin.get(shelf.url("trash"))
    assert [row.title for row in page.context["trash_page"]] == ["2.txt", "1.txt", "0.txt"]
    assert "Handbook" in text_of(shelf.admin.get(space_url(shelf, "trash"))) and "3 documents" in text_of(
        shelf.admin.get(space_url(shelf, "trash"))
    )
    shelf.admin.post(shelf.url("trash/restore"), {"ids": str(documents[0].uid)}, headers=HTMX)
    gone = shelf.admin.post(shelf.url("trash/purge"), {"ids": str(documents[1].uid)}, headers=HTMX)
    assert toast_of(gone)["text"] == "1 document being removed for good."
    assert shelf.fresh(documents[0]).deleted_at is None and shelf.fresh(documents[1]).purge_at is None
    emptied = shelf.admin.post(shelf.url("trash/purge"), {"all": "1"})
    assert emptied.status_code == 302
    with unscoped("test look"):
        assert sorted(pk for refs in CleanupRun.objects.values_list("document_refs", flat=True) for pk in refs) == [
            d.pk for d in documents[1:]
        ]
    assert "Nothing was deleted" in text_of(shelf.admin.get(shelf.url("trash")))


def test_a_deleted_base_comes_back_from_the_toast_and_from_the_page(shelf: Shelf) -> None:
    shelf.document("a.txt")
    toast = toast_of(shelf.admin.post(shelf.url("delete"), {"confirm": "Handbook", "from": "list"}, headers=HTMX))
    assert "for 30 days" in toast["detail"] and names(shelf) == []
    assert toast_of(shelf.admin.post(toast["undo_url"], headers=HTMX))["text"] == "“Handbook” is back." and names(shelf) == ["Handbook"]
    shelf.admin.post(shelf.url("delete"), {"confirm": "Handbook"})
    page = shelf.admin.get(space_url(shelf, "trash"))
    assert "Handbook 1 document" in text_of(page) and "Remove “Handbook” for good?" in text_of(page)
    assert shelf.admin.post(space_url(shelf, f"trash/{shelf.base.uid}/purge")).status_code == 302
    assert "The trash is empty" in text_of(shelf.admin.get(space_url(shelf, "trash")))
    assert shelf.admin.post(space_url(shelf, f"trash/{shelf.base.uid}/restore")).status_code == 404
