"""Folders of the documents tab: a tree that grows a level at a time, new, renamed, merged, moved and refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from apps.common.scope import unscoped
from apps.knowledge.models import Document
from apps.portal.folder_tree import SHOWN
from tests.portal.test_documents import text_of, toast_of
from tests.support.shelf import HTMX, Shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    made = Shelf()
    made.worker()
    return made


def folders_of(page: Any) -> list[tuple[str, str]]:
    """(name, count) of every folder a page or fragment draws, in order."""
    html = page.content.decode()
    return re.findall(r'data-drop-folder="[^"]+" data-folder-name="([^"]*)".*?class="tree__count">([^<]*)<', html)


def put(shelf: Shelf, **paths: int) -> None:
    for path, count in paths.items():
        for number in range(count):
            shelf.document(f"{path}{number}.txt", folder_path=path.replace("__", "/"))


def test_closed_branches_are_fetched_when_they_open(shelf: Shelf) -> None:
    put(shelf, a=1, a__b=2, a__b__c=3, ab=1)
    page = shelf.member.get(shelf.url(""))
    assert folders_of(page) == [("a", "6"), ("ab", "1")]
    load = re.search(r'hx-get="([^"]*folder/level[^"]*)"', page.content.decode())
    assert load
    assert folders_of(shelf.member.get(load.group(1).replace("&amp;", "&"))) == [("b", "5")]
    assert folders_of(shelf.member.get(shelf.url("?folder=a/b"))) == [("a", "6"), ("b", "5"), ("c", "3"), ("ab", "1")]
    assert folders_of(shelf.member.get(shelf.url("folder/level?path=gone&start=x"))) == []


def test_a_level_of_many_folders_comes_in_parts_and_the_open_one_is_always_there(shelf: Shelf) -> None:
    with unscoped("test data"):
        Document.objects.bulk_create(
            Document(space=shelf.space, kb=shelf.base, title=f"{n}", file_hash=f"{n}", folder_path=f"f{n:04}") for n in range(SHOWN + 30)
        )
    page = shelf.member.get(shelf.url(f"?folder=f{SHOWN + 7:04}"))
    shown = [name for name, _count in folders_of(page)]
    assert (len(shown), shown[SHOWN - 1], shown[-1]) == (SHOWN + 1, f"f{SHOWN - 1:04}", f"f{SHOWN + 7:04}")
    assert "30 more folders" in text_of(page)
    rest = folders_of(shelf.member.get(shelf.url(f"folder/level?path=&start={SHOWN}")))
    assert [name for name, _count in rest] == [f"f{n:04}" for n in range(SHOWN, SHOWN + 30)]


@pytest.mark.parametrize(
    ("parent", "name", "said"),
    [
        ("", "  ", "Give the folder a name."),
        ("", "..", "Give the folder a name."),
        ("a", "b", "There is a folder of this name here already."),
        ("/".join("d" * 16), "e", "At most 16 folders can lie inside each other."),
    ],
)
def test_a_new_folder_needs_a_name_of_its_own(shelf: Shelf, parent: str, name: str, said: str) -> None:
    put(shelf, a__b=1)
    answer = shelf.member.post(shelf.url("folder/new"), {"parent": parent, "name": name}, headers=HTMX)
    assert answer.status_code == 422 and said in text_of(answer)


def test_a_new_folder_opens_and_is_the_browsers_to_keep(shelf: Shelf) -> None:
    answer = shelf.member.post(shelf.url("folder/new"), {"parent": "a", "name": " b. "}, headers=HTMX)
    assert json.loads(answer["HX-Trigger"]) == {"kb:folder-made": {"path": "a/b"}}
    assert answer["HX-Redirect"] == shelf.url("?folder=a%2Fb")
    shelf.document("other.txt")
    opened = shelf.member.get(shelf.url("?folder=a/b"))
    assert "This folder is empty" in text_of(opened) and folders_of(opened) == []
    assert 'name="folder" value="a/b"' in opened.content.decode()  # uploads go there


def test_an_existing_folder_takes_another_in_only_when_asked(shelf: Shelf) -> None:
    put(shelf, old=1, old__deep=1, new=2)
    form = {"source": "old", "target": "new"}
    asked = shelf.member.post(shelf.url("folder"), form, headers=HTMX)
    assert asked.status_code == 422
    assert "“new” is there already, with 2 documents. Put both folders together?" in text_of(asked)
    assert "2 documents move along." in text_of(asked)
    with unscoped("test look"):
        assert sorted(Document.objects.values_list("folder_path", flat=True)) == ["new", "new", "old", "old/deep"]
    done = shelf.member.post(shelf.url("folder"), {**form, "merge": "1"}, headers=HTMX)
    assert json.loads(done["HX-Trigger"]) == {"kb:folder-moved": {"from": "old", "to": "new"}}
    with unscoped("test look"):
        assert sorted(Document.objects.values_list("folder_path", flat=True)) == ["new", "new", "new", "new/deep"]


def test_a_folder_with_documents_refuses_to_go_and_says_why(shelf: Shelf) -> None:
    put(shelf, full=1, full__deep=2)
    asked = text_of(shelf.member.get(shelf.url("folder/delete?folder=full"), headers=HTMX))
    assert "3 documents lie in it or below" in asked and "Show them" in asked
    refused = shelf.member.post(shelf.url("folder/delete"), {"folder": "full"}, headers=HTMX)
    assert refused.status_code == 422 and "3 documents lie in it or below" in text_of(refused)
    assert folders_of(shelf.member.get(shelf.url(""))) == [("full", "3")]
    gone = shelf.member.post(shelf.url("folder/delete"), {"folder": "full/empty"}, headers=HTMX)
    assert json.loads(gone["HX-Trigger"]) == {"kb:folder-gone": {"path": "full/empty"}}
    assert gone["HX-Redirect"] == shelf.url("?folder=full")


def test_documents_are_dropped_into_folders_and_out_of_them(shelf: Shelf) -> None:
    document = shelf.document("a.txt")
    for folder, said in (("guides", "1 document moved to “guides”."), ("", "1 document moved out of folders.")):
        answer = shelf.member.post(shelf.url("bulk/folder"), {"ids": [str(document.uid)], "folder": folder}, headers=HTMX)
        assert (toast_of(answer), shelf.fresh(document).folder_path) == (said, folder)
