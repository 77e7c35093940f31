"""What a person sees when something is wrong around the portal: a busy database, a full disk, a form sent twice, a page open too long."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client

from apps.common.scope import unscoped
from apps.knowledge.models import Document, KnowledgeBase
from apps.spaces.models import ApiKey, Invitation, Space
from tests.support.racing import run_together
from tests.support.shelf import HTMX, Shelf
from tests.support.world import PASSWORD, World, build_world

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shelf() -> Shelf:
    cache.clear()
    return Shelf()


@contextmanager
def locked_database() -> Iterator[None]:
    """Another process holds the write lock; this connection gives up after a moment instead of after 30 seconds."""
    if connection.vendor != "sqlite":
        pytest.skip("SQLite's one write lock")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout=100")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout=30000")


EN = {"Accept-Language": "en"}


def quiet(client: Client) -> Client:
    client.raise_request_exception = False
    return client


def documents() -> int:
    with unscoped("test look"):
        return Document.objects.count()


@pytest.mark.parametrize(("language", "words"), [("zh-CN", "数据库正忙"), ("en", "The database is busy")])
def test_a_locked_database_is_said_over_rest_with_a_time_to_come_back(language: str, words: str) -> None:
    world: World = build_world()
    client = quiet(world.client("admin"))
    body = {"title": "Note", "content": "Text."}
    url = f"/api/v1/knowledge-bases/{world.ids['home']['kb_id']}/knowledge/manual"
    before = documents()
    with locked_database():
        answer = client.post(url, body, headers={"Accept-Language": language})
        read = client.get(url.removesuffix("/manual"))
    assert (answer.status_code, answer.headers["Retry-After"], answer.json()["error"]["code"]) == (503, "5", 1008)
    assert answer.json()["error"]["details"]["reason"] == "database_busy" and words in answer.json()["error"]["message"]
    assert read.status_code == 200, "reading goes on"
    assert documents() == before
    assert client.post(url, body).status_code == 200
    assert documents() == before + 1


def test_a_locked_database_is_a_page_with_503_and_never_500(shelf: Shelf) -> None:
    quiet(shelf.admin)
    with locked_database():
        posted = shelf.admin.post(shelf.url("documents/new"), {"title": "Note", "content": "Text."}, headers=EN)
        fragment = shelf.admin.post(shelf.url("documents/new"), {"title": "Note", "content": "Text."}, headers=HTMX)
        opened = shelf.admin.get(f"/s/{shelf.space.pk}/", headers={"Accept-Language": "en"})
        signed_in = quiet(Client()).post("/account/login/", {"login": "ada@example.com", "password": "pw"})
    for answer in (posted, fragment, opened, signed_in):
        assert answer.status_code == 503 and answer.headers["Retry-After"] == "5"
    assert "The database is busy" in posted.content.decode() and "<html" in posted.content.decode()
    assert "<html" not in fragment.content.decode()
    assert shelf.admin.get(f"/s/{shelf.space.pk}/").status_code == 200
    assert documents() == 0


def test_an_error_that_is_none_of_the_database_stays_a_500(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("apps.portal.views.uploads.document_write", broken)
    assert quiet(shelf.admin).post(shelf.url("documents/new"), {"title": "Note", "content": "Text."}).status_code == 500


def test_a_full_disk_refuses_with_what_to_do_and_keeps_what_was_typed(shelf: Shelf, settings: Any) -> None:
    settings.DISK_REFUSE_BYTES = settings.DISK_WARN_BYTES = 2**62
    page = shelf.admin.post(shelf.url("import"), {"url": "https://example.com/handbook", "title": "Typed title"})
    html = page.content.decode()
    assert page.status_code == 422
    assert "Not enough disk space" in html and "Delete documents you no longer need" in html
    assert "https://example.com/handbook" in html and "Typed title" in html
    listed = shelf.admin.get(shelf.url()).content.decode()
    assert "Disk space is running low" in listed, "the list warns before anybody tries"


FRESH = re.compile(r'name="form_once" value="([^"]+)"')


def number_of(shelf: Shelf, address: str) -> str:
    """The hidden number of the form that a page shows."""
    found = FRESH.search(shelf.admin.get(address).content.decode())
    assert found is not None
    return found[1]


def twice(shelf: Shelf, address: str, form: dict[str, Any]) -> list[int]:
    """The statuses of the same form sent by two clicks at the same moment."""
    clients = [quiet(Client()), quiet(Client())]
    for client in clients:
        client.cookies = shelf.admin.cookies
    return [answer.status_code for answer in run_together([lambda c=client: c.post(address, form) for client in clients])]


def rows(model: Any) -> int:
    with unscoped("test look"):
        return int(model.objects.count())


@pytest.mark.parametrize(
    ("tail", "form", "model"),
    [
        ("settings/keys/", {"name": "bot", "access": "full"}, ApiKey),
        ("settings/invitations/", {"by": "link", "role": "member"}, Invitation),
        ("settings/invitations/", {"by": "mail", "email": "new@example.com", "role": "member"}, Invitation),
    ],
)
def test_a_form_of_the_space_sent_twice_at_once_acts_once(shelf: Shelf, tail: str, form: dict[str, Any], model: Any) -> None:
    from django.urls import reverse

    address = reverse("keys-page" if model is ApiKey else "invitations-page", args=[shelf.space.pk])
    number = number_of(shelf, address)
    assert twice(shelf, address, {**form, "form_once": number}) == [302, 302], tail
    assert rows(model) == 1
    assert shelf.admin.post(address, {**form, "form_once": number_of(shelf, address)}).status_code == 302
    assert rows(model) == 2, "the next form is another one"


def test_a_written_document_sent_twice_at_once_is_one(shelf: Shelf) -> None:
    number = number_of(shelf, shelf.url("documents/new"))
    form = {"title": "Note", "content": "Text.", "status": "publish", "form_once": number}
    assert twice(shelf, shelf.url("documents/new"), form) == [302, 302]
    assert documents() == 1


def test_a_refused_form_comes_back_with_a_number_of_its_own(shelf: Shelf) -> None:
    number = number_of(shelf, shelf.url("documents/new"))
    refused = shelf.admin.post(shelf.url("documents/new"), {"title": "Note", "content": " ", "form_once": number})
    assert refused.status_code == 422
    fresh = FRESH.search(refused.content.decode())
    assert fresh is not None and fresh[1] != number
    sent = shelf.admin.post(shelf.url("documents/new"), {"title": "Note", "content": "Text.", "form_once": fresh[1]})
    assert (sent.status_code, documents()) == (302, 1)


def test_an_organization_and_a_base_sent_twice_at_once_are_one_each(shelf: Shelf) -> None:
    import uuid

    from django.urls import reverse

    before = rows(Space)
    form = {"name": "Twin", "form_once": number_of(shelf, reverse("space-new"))}
    assert twice(shelf, reverse("space-new"), form) == [302, 302]
    assert rows(Space) == before + 1
    bases = rows(KnowledgeBase)
    address = reverse("base-create", args=[shelf.space.pk])
    assert twice(shelf, address, {"id": str(uuid.uuid4()), "name": "Twin", "type": "document"}) == [302, 302]
    assert rows(KnowledgeBase) == bases + 1


@pytest.mark.parametrize("tail", ["delete", "reparse", "stop", "rename"])
def test_an_action_on_a_document_sent_twice_at_once_never_fails(shelf: Shelf, tail: str) -> None:
    document = shelf.document("a.txt", parse_status="processing" if tail == "stop" else "completed")
    answers = twice(shelf, shelf.document_url(document, tail), {"title": "Renamed.txt"})
    assert set(answers) <= {302, 404, 409, 422} and 302 in answers, answers
    assert documents() == 1, "a tombstone until its clean-up"


@pytest.mark.parametrize("action", ["delete", "folder", "reparse", "tags"])
def test_a_bulk_action_sent_twice_at_once_never_fails(shelf: Shelf, action: str) -> None:
    made = [shelf.document(f"{n}.txt") for n in range(3)]
    answers = twice(shelf, shelf.url(f"bulk/{action}"), {"ids": [str(d.uid) for d in made], "folder_path": "a", "folder": "a"})
    assert max(answers) < 500, answers


def test_revoking_a_key_twice_is_as_good_as_once(shelf: Shelf) -> None:
    from django.urls import reverse

    shelf.admin.post(reverse("keys-page", args=[shelf.space.pk]), {"name": "bot", "access": "full"})
    with unscoped("test look"):
        key = ApiKey.objects.get()
    address = reverse("key-revoke", args=[shelf.space.pk, key.pk])
    assert twice(shelf, address, {}) in ([302, 302], [302, 404], [404, 302])


@pytest.mark.parametrize(("language", "words"), [("zh-CN", "页面打开太久"), ("en", "This page was open too long")])
def test_a_stale_form_is_refused_in_the_readers_language_with_the_way_back(language: str, words: str) -> None:
    client = Client(enforce_csrf_checks=True, headers={"Accept-Language": language})
    answer = client.post("/account/login/", {"login": "ada@example.com", "password": PASSWORD})
    html = answer.content.decode()
    assert answer.status_code == 403
    assert words in html, re.sub(r"<[^>]+>|\s+", " ", html)[:600]


def test_a_link_to_a_deleted_document_says_deleted_to_its_own_space_only(shelf: Shelf) -> None:
    single, one, two, foreign = (
        shelf.document("a.txt"),
        shelf.document("b.txt"),
        shelf.document("c.txt"),
        shelf.document(base=shelf.foreign),
    )
    assert shelf.admin.post(shelf.document_url(single, "delete")).status_code == 302
    shelf.admin.post(shelf.url("bulk/delete"), {"ids": [str(one.uid), str(two.uid)]})
    for document in (single, one, two):
        answer = shelf.member.get(shelf.document_url(document, ""))
        assert answer.status_code == 404 and "This document was deleted on" in answer.content.decode(), document.title
        assert "deleted on" not in shelf.outsider.get(f"/s/{shelf.other.pk}/documents/{document.uid}/").content.decode()
    assert "deleted on" not in shelf.admin.get(shelf.document_url(foreign, "")).content.decode()
