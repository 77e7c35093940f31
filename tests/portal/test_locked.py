"""A locked file on its pages: the way to enter the password stands beside the reason, wherever the reason stands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.knowledge.models import Document
from tests.support.kit import work_all
from tests.support.library import Library
from tests.support.locked import encrypted_office, locked_pdf
from tests.support.shelf import HTMX

SECRET = "open-Sesame-4711"


@pytest.fixture
def locked(library: Library) -> Document:
    return library.add("secret.pdf", locked_pdf("Internal K-0001", "Page two", password=SECRET, damaged=2))


def list_page(library: Library) -> str:
    return library.page(f"/s/{library.space.pk}/bases/{library.base.uid}/")


def enter(library: Library, document: Document, password: str) -> Any:
    return library.client.post(library.url(document, "password"), {"password": password}, headers=HTMX)


def test_the_password_is_asked_for_beside_the_reason(library: Library, locked: Document) -> None:
    address = library.url(locked, "password")
    pages = {
        "list": list_page(library),
        "menu": library.client.get(library.url(locked, "menu"), headers=HTMX).content.decode(),
        "reader": library.page(library.url(locked)),
        "details": library.page(library.url(locked, "details")),
        "pipeline": library.page(library.url(locked, "pipeline")),
    }
    for name, html in pages.items():
        assert f'hx-get="{address}"' in html and "Enter password…" in html, name
        if name != "menu":
            assert "The file is protected by a password" in html, name
            assert "Enter the password: it is used once and not kept." in html, name
    dialog = library.client.get(address, headers=HTMX).content.decode()
    assert 'type="password"' in dialog and 'name="password"' in dialog and 'autocomplete="off"' in dialog
    assert "does not open" not in dialog


def test_a_wrong_password_is_said_and_asked_for_again(library: Library, locked: Document) -> None:
    answer = enter(library, locked, "wrong-1234")
    assert json.loads(answer.headers["HX-Trigger"])["toast"]["text"] == "“secret.pdf” is being opened and parsed."
    work_all("parse")
    for html in (list_page(library), library.page(library.url(locked))):
        assert "The password does not open the file" in html and "Enter password…" in html and "wrong-1234" not in html
    dialog = library.client.get(library.url(locked, "password"), headers=HTMX).content.decode()
    assert "The password tried last does not open the file." in dialog and "wrong-1234" not in dialog
    enter(library, locked, SECRET)
    work_all("parse")
    assert library.reload(locked).parse_status == "finalizing"
    assert SECRET not in library.page(library.url(locked, "pipeline"))


def test_what_is_left_out_is_named_and_parsing_again_asks_for_the_password(library: Library, locked: Document) -> None:
    enter(library, locked, SECRET)
    work_all("parse", "embed")
    left_out = "Damaged and left out: page 2"
    assert left_out in list_page(library) and left_out in library.page(library.url(locked))
    for tail in ("pipeline", "details"):
        html = library.page(library.url(locked, tail))
        assert "A damaged page was left out · Page 2" in html and "It was opened with a password" in html, tail
    head = library.page(library.url(locked))
    assert f'hx-get="{library.url(locked, "password")}"' in head and f'hx-post="{library.url(locked, "reparse")}"' not in head
    refused = library.client.post(library.url(locked, "reparse"), headers=HTMX)
    assert refused.status_code == 400 and "was opened with a password" in refused.content.decode()
    assert library.reload(locked).parse_status == "completed"


@pytest.mark.parametrize(("password", "words"), [("", "required"), ("x" * 1025, "at most 1024")])
def test_what_cannot_be_a_password_is_refused_beside_the_field(library: Library, locked: Document, password: str, words: str) -> None:
    answer = enter(library, locked, password)
    assert answer.status_code == 422
    assert words in answer.content.decode() and "x" * 1025 not in answer.content.decode()
    assert library.reload(locked).parse_status == "failed"


def test_an_encrypted_office_file_is_told_to_come_without_its_password(library: Library) -> None:
    document = library.add("plan.docx", encrypted_office())
    for html in (list_page(library), library.page(library.url(document))):
        assert "Save a copy without the password and upload that." in html and "Enter password…" not in html
    answer = enter(library, document, "anything")
    assert answer.status_code == 422 and "Only PDF files can be opened with a password here." in answer.content.decode()
