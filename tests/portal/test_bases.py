"""The list of knowledge bases and their settings, as people see them."""

from __future__ import annotations

import json
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.common import storage
from apps.common.scope import unscoped
from apps.knowledge.models import BaseVisit, Document, KnowledgeBase, Pin
from tests.support.shelf import HTMX, Shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def text_of(response: Any) -> str:
    """What a reader sees: markup gone, blanks folded."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())).strip()


def groups_of(response: Any) -> list[tuple[str, list[str]]]:
    return [(group["title"], [card.base.name for card in group["cards"]]) for group in response.context["groups"]]


def home(shelf: Shelf, query: str = "") -> str:
    return f"/s/{shelf.space.pk}/{query}"


def test_bases_are_grouped_pinned_recent_all_and_recent_leaves_pinned_ones_out(shelf: Shelf) -> None:
    bases = [shelf.base, *(shelf.make_base(f"Base {n}") for n in range(4))]
    with unscoped("test data"):
        user = shelf.admin.session["_auth_user_id"]
        Pin.objects.create(space=shelf.space, user_id=user, kb=bases[1])
        for age, base in enumerate(bases[1:3]):
            BaseVisit.objects.create(space=shelf.space, user_id=user, kb=base, visited_at=timezone.now() - timedelta(hours=age))
    page = shelf.admin.get(home(shelf))
    assert groups_of(page) == [
        ("Pinned", ["Base 0"]),
        ("Recent", ["Base 1"]),
        ("All", ["Base 0", "Base 3", "Base 2", "Base 1", "Handbook"]),
    ]
    assert groups_of(shelf.member.get(home(shelf))) == [("All", ["Base 3", "Base 2", "Base 1", "Base 0", "Handbook"])], "pins are personal"


def test_a_card_counts_documents_those_being_read_and_those_failed(shelf: Shelf) -> None:
    shelf.document("a.txt")
    shelf.document("b.txt", parse_status="processing")
    shelf.document("c.txt", parse_status="failed", reason="corrupt")
    shown = text_of(shelf.admin.get(home(shelf)))
    assert "Handbook" in shown and "3 documents" in shown and "1 being read" in shown and "1 failed" in shown
    assert "Secret" not in shown, "a base of another space"


@pytest.mark.parametrize(("query", "names"), [("HAND", ["Handbook"]), ("ｈａｎｄ", ["Handbook"]), ("invoices", ["Sales"]), ("nothing", [])])
def test_search_looks_in_names_and_descriptions(shelf: Shelf, query: str, names: list[str]) -> None:
    shelf.make_base("Sales", description="Offers and invoices")
    page = shelf.admin.get(home(shelf), {"q": query})
    assert [name for _title, group in groups_of(page) for name in group] == names
    if not names:
        assert f"No knowledge base has “{query}” in its name or description." in text_of(page)


def test_an_empty_space_names_the_next_step_for_admins_and_says_whom_to_ask_to_members(shelf: Shelf) -> None:
    with unscoped("test data"):
        KnowledgeBase.objects.all().delete()
    assert "Start with a knowledge base" in text_of(shelf.admin.get(home(shelf)))
    seen = text_of(shelf.member.get(home(shelf)))
    assert "Only admins of this space make knowledge bases. Ask one of them; you can then add documents." in seen
    assert "New knowledge base" not in seen


def test_creating_opens_the_new_base_and_sending_the_form_twice_makes_one(shelf: Shelf) -> None:
    form = {"id": str(uuid.uuid4()), "name": "Contracts", "description": "All of them", "type": "document"}
    address = home(shelf, "bases/new")
    first, second = (shelf.admin.post(address, form, headers=HTMX) for _ in range(2))
    with unscoped("test look"):
        base = KnowledgeBase.objects.get(name="Contracts")
    assert first["HX-Redirect"] == second["HX-Redirect"] == shelf.url(base=base)
    assert shelf.admin.post(address, {**form, "id": str(uuid.uuid4())}).status_code == 302, "without script too"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "  "}, "Give the knowledge base a name."),
        ({"name": "好" * 201}, "The name may have at most 200 characters."),
        ({"name": "😀" * 101}, "The name may have at most 200 characters."),
        ({"name": "ok", "description": "d" * 4001}, "The description may have at most 4000 characters."),
    ],
)
def test_a_refused_base_keeps_what_was_typed_with_the_error_beside_its_field(shelf: Shelf, values: dict[str, str], message: str) -> None:
    answer = shelf.admin.post(home(shelf, "bases/new"), {"description": "Keep me", **values}, headers=HTMX)
    assert answer.status_code == 422
    field = "description" if "description" in values else "name"
    assert answer.context["form"].errors == {field: [message]}
    assert values.get("description", "Keep me") in answer.content.decode() and 'aria-invalid="true"' in answer.content.decode()
    with unscoped("test look"):
        assert KnowledgeBase.objects.count() == 2


def test_members_cannot_make_change_or_delete_bases(shelf: Shelf) -> None:
    for path in (home(shelf, "bases/new"), home(shelf, "bases/samples"), shelf.url("settings"), shelf.url("delete")):
        assert shelf.member.post(path, {"name": "x", "confirm": "Handbook"}).status_code == 403, path
    assert shelf.fresh(shelf.base).name == "Handbook" and shelf.fresh(shelf.base).deleted_at is None
    menu = text_of(shelf.member.get(shelf.url("menu")))
    assert "Only admins of the space may" in menu


def test_another_spaces_base_is_not_there(shelf: Shelf) -> None:
    for tail in ("", "settings", "menu", "delete", "live", "tags", "import", "documents/new", "uploads/states", "bulk/tags?ids=x"):
        foreign = shelf.url(tail, base=shelf.foreign)
        assert shelf.admin.get(foreign).status_code == 404, tail
        assert shelf.outsider.get(shelf.url(tail)).status_code == 404, tail
    assert shelf.admin.post(shelf.url("pin", base=shelf.foreign)).status_code == 404
    assert shelf.admin.get(shelf.url().replace(str(shelf.base.uid), str(uuid.uuid4()))).status_code == 404


def test_deleting_says_what_goes_and_wants_the_name(shelf: Shelf) -> None:
    shelf.document("a.txt", chunk_count=3, folder_path="x/y")
    shelf.document("b.txt", chunk_count=4)
    asked = text_of(shelf.admin.get(shelf.url("delete"), headers=HTMX))
    assert "2 documents with their originals" in asked and "7 passages and their vectors" in asked and "2 folders" in asked
    wrong = shelf.admin.post(shelf.url("delete"), {"confirm": "Hand"}, headers=HTMX)
    assert wrong.status_code == 422 and "This is not the name of the knowledge base." in text_of(wrong)
    assert shelf.fresh(shelf.base).deleted_at is None
    right = shelf.admin.post(shelf.url("delete"), {"confirm": "Handbook "}, headers=HTMX)
    assert right["HX-Redirect"] == home(shelf)
    assert shelf.admin.get(shelf.url()).status_code == 404


def test_pinning_is_told_by_a_toast_and_toggles(shelf: Shelf) -> None:
    for said, title in (("Pinned for you.", "Pinned"), ("No longer pinned.", "All")):
        answer = shelf.admin.post(shelf.url("pin"), headers=HTMX)
        assert json.loads(answer["HX-Trigger"])["toast"]["text"] == said
        assert groups_of(shelf.admin.get(home(shelf)))[0][0] == title


def test_settings_are_saved_and_unknown_members_of_the_configuration_stay(shelf: Shelf) -> None:
    with unscoped("test data"):
        KnowledgeBase.objects.filter(pk=shelf.base.pk).update(chunking_config={"chunk_size": 512, "languages": ["zh"]})
    form = {
        "name": "Handbook 2", "description": "New", "words": "on", "strategy": "heading", "chunk_size": "800", "chunk_overlap": "0",
        "separators": "\\n\\n\r\n。", "token_limit": "", "parent_chunk_size": "4096", "child_chunk_size": "384",
    }  # fmt: skip
    assert shelf.admin.post(shelf.url("settings"), form).status_code == 302
    base = shelf.fresh(shelf.base)
    assert (base.name, base.description) == ("Handbook 2", "New")
    assert base.indexing_strategy == {"vector_enabled": False, "keyword_enabled": True, "wiki_enabled": False, "graph_enabled": False}
    expected = {"chunk_size": 800, "chunk_overlap": 0, "separators": ["\n\n", "。"], "languages": ["zh"], "strategy": "heading"}
    assert {key: base.chunking_config[key] for key in expected} == expected
    shown = shelf.admin.get(shelf.url("settings")).content.decode()
    assert "\\n\\n\n。</textarea>" in shown


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"chunk_overlap": "900"}, "chunk_overlap", "The overlap must be smaller than the passage size."),
        ({"words": "", "vectors": ""}, "words", "Turn on at least one way of finding: words, vectors, wiki or graph."),
        ({"name": ""}, "name", "Give the knowledge base a name."),
        ({"chunk_size": "many"}, "chunk_size", "Enter a whole number."),
    ],
)
def test_settings_that_cannot_be_are_refused_beside_their_field(shelf: Shelf, change: dict[str, str], field: str, message: str) -> None:
    form = {"name": "Typed", "words": "on", "strategy": "auto", "chunk_size": "800", "chunk_overlap": "80", **change}
    answer = shelf.admin.post(shelf.url("settings"), {key: value for key, value in form.items() if value or key == "name"})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [field]
    assert message in text_of(answer)
    assert shelf.fresh(shelf.base).name == "Handbook"


def test_members_read_the_settings_and_are_told_why_they_cannot_change_them(shelf: Shelf) -> None:
    page = shelf.member.get(shelf.url("settings"))
    assert "You can read these settings. Only admins of the space may change them." in text_of(page)
    body = page.content.decode()
    assert "Save settings" not in body and body.count(" disabled") >= 8


def test_the_preview_splits_with_settings_that_are_not_saved(shelf: Shelf) -> None:
    form = {
        "strategy": "recursive",
        "chunk_size": "40",
        "chunk_overlap": "0",
        "separators": "\\n\\n",
        "sample": "a" * 30 + "\n\n" + "b" * 30,
    }
    shown = text_of(shelf.member.post(shelf.url("settings/preview"), form))
    assert "2 passages" in shown and "split by separators" in shown and "a" * 30 in shown
    bad = text_of(shelf.member.post(shelf.url("settings/preview"), {**form, "chunk_overlap": "50"}))
    assert bad == "The overlap must be smaller than the passage size."
    assert shelf.fresh(shelf.base).chunking_config == {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_samples_come_in_as_documents_once(language: str) -> None:
    shelf = Shelf(language)
    first = shelf.admin.post(home(shelf, "bases/samples"), headers=HTMX)["HX-Redirect"]
    second = shelf.admin.post(home(shelf, "bases/samples"), headers=HTMX)["HX-Redirect"]
    assert first == second
    with unscoped("test look"):
        documents = Document.objects.filter(kb__uid=first.rstrip("/").rpartition("/")[2])
        names = sorted(documents.values_list("file_name", flat=True))
        price = documents.get(file_name="备件价格表.csv")
        assert documents.get(file_name="Field service guide EU.md").folder_path == ""
        assert documents.get(file_name="TH01 温度传感器维护手册.md").folder_path == "设备手册"
        assert "单价（元）".encode("gb18030") in storage.read(price.storage_path).read()
    assert len(names) == 11 and len(set(names)) == 11
    assert ("员工手册.md" in names) == (language == "zh-hans")
    assert ("Employee handbook.md" in names) == (language == "en")


def test_the_list_asks_the_same_number_of_questions_for_two_bases_and_for_twelve(shelf: Shelf) -> None:
    counts = []
    shelf.admin.get(home(shelf))  # the first visit of a session also remembers the space
    for amount in (1, 10):
        for number in range(amount):
            shelf.document(base=shelf.make_base(f"{amount}-{number}"))
        with CaptureQueriesContext(connection) as queries:
            shelf.admin.get(home(shelf))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 20
