"""The FAQ tab: list, editor, many entries at once, match test, import wizard, settings."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.common.scope import unscoped
from apps.faq.models import FaqEntry, FaqImportRun
from apps.knowledge.models import KnowledgeBase
from tests.faq.conftest import FaqWorld
from tests.support.kit import work_all

HTMX = {"HX-Request": "true", "HX-Target": "dialog-slot"}


def page(faq: FaqWorld, tail: str = "", *, base: KnowledgeBase | None = None, person: Any = None, **headers: str) -> Any:
    address = f"/s/{faq.space.pk}/bases/{(base or faq.faq).uid}/faq{tail}"
    return (person or faq.member).client.get(address, headers={"Accept-Language": "en", **headers})


def post(faq: FaqWorld, tail: str, data: dict[str, Any] | None = None, *, person: Any = None, **headers: str) -> Any:
    address = f"/s/{faq.space.pk}/bases/{faq.faq.uid}/faq{tail}"
    return (person or faq.member).client.post(address, data or {}, headers={"Accept-Language": "en", **HTMX, **headers})


def text(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def toast(answer: Any) -> str:
    return str(json.loads(answer["HX-Trigger"])["toast"]["text"])


def test_an_empty_base_says_what_to_do(faq: FaqWorld) -> None:
    answer = page(faq)
    assert answer.status_code == 200
    assert "No entries yet" in text(answer) and "Import…" in text(answer)
    assert faq.member.client.get(f"/s/{faq.space.pk}/bases/{faq.faq.uid}/").url.endswith("/faq")
    assert page(faq, base=faq.base).status_code == 400


def test_rows_show_questions_marks_and_tags(faq: FaqWorld) -> None:
    faq.add("Reset password", "Use the link", similar_questions=("Forgot it",), negative_questions=("Router",), tag_name="Accounts")
    faq.add("Off", is_enabled=False, is_recommended=True)
    shown = text(page(faq))
    for words in ("Reset password", "Use the link", "Forgot it", "Router", "Accounts", "Disabled", "Recommended", "2 entries"):
        assert words in shown
    assert "Off" not in text(page(faq, "?enabled=yes&q=Reset&field=standard_question")).split("Disabled 1")[-1]
    assert "Nothing matches" in text(page(faq, "?q=nothing"))


def test_the_list_asks_the_same_however_many_rows_it_has(faq: FaqWorld, django_assert_num_queries: Any) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    faq.add("First", tag_name="T")
    faq.add("Second", tag_name="T")
    page(faq)
    with CaptureQueriesContext(connection) as few:
        page(faq)
    for number in range(10):
        faq.add(f"More {number}", tag_name="T")
    with CaptureQueriesContext(connection) as many:
        page(faq)
    assert len(many) == len(few)


def test_an_entry_is_written_and_changed(faq: FaqWorld) -> None:
    sent = {
        "standard_question": "Q?",
        "answer": ["A", " "],
        "similar": ["S", ""],
        "negative": ["N"],
        "tag": "new",
        "tag_name": "Fresh",
        "is_enabled": "on",
    }
    assert toast(post(faq, "/new", sent)) == "Entry added."
    (entry,) = faq.entries()
    assert (entry["answers"], entry["similar_questions"], entry["negative_questions"], entry["tag_name"]) == (["A"], ["S"], ["N"], "Fresh")
    assert (entry["is_enabled"], entry["is_recommended"]) == (True, False)
    form = page(faq, f"/{entry['id']}", **HTMX).content.decode()
    assert ">\nS</textarea>" in form and 'name="version" value="1"' in form
    changed = {"standard_question": "Q!", "answer": ["B"], "version": "1", "tag": "", "is_recommended": "on", "strategy": "random"}
    assert toast(post(faq, f"/{entry['id']}", changed)) == "Entry saved."
    (entry,) = faq.entries()
    assert (entry["standard_question"], entry["answers"], entry["similar_questions"], entry["tag_name"]) == ("Q!", ["B"], None, "")
    assert (entry["is_enabled"], entry["is_recommended"], entry["answer_strategy"]) == (False, True, "random")


def test_errors_stand_beside_what_was_typed(faq: FaqWorld) -> None:
    faq.add("Taken")
    sent = {"standard_question": "Mine", "answer": ["x" * 8001], "similar": ["Other"]}
    answer = post(faq, "/new", sent)
    assert answer.status_code == 422
    assert "8,001 characters; at most 8,000 are allowed." in text(answer) and "Mine" in text(answer)
    answer = post(faq, "/new", {"standard_question": "Mine", "answer": ["A"], "similar": ["Other", "taken?"]})
    assert answer.status_code == 422
    html = answer.content.decode()
    assert re.search(r'id="f-similar-1"[^>]*aria-invalid="true"', html) and not re.search(r'id="f-similar-0"[^>]*aria-invalid', html)
    assert "Write an answer." in text(post(faq, "/new", {"standard_question": "Mine"}))
    assert len(faq.entries()) == 1


def test_someone_elses_change_is_shown_and_not_lost(faq: FaqWorld) -> None:
    entry = faq.add("Old", "A")
    post(faq, f"/{entry.seq_id}", {"standard_question": "Theirs", "answer": ["A"], "version": "1", "is_enabled": "on"})
    answer = post(
        faq, f"/{entry.seq_id}", {"standard_question": "Mine", "answer": ["A"], "version": "1", "is_enabled": "on"}, person=faq.admin
    )
    assert answer.status_code == 409
    assert "Theirs" in text(answer) and "Mine" in text(answer)
    assert faq.entries()[0]["standard_question"] == "Theirs"
    again = {"standard_question": "Mine", "answer": ["A"], "version": "2", "is_enabled": "on"}
    assert toast(post(faq, f"/{entry.seq_id}", again, person=faq.admin)) == "Entry saved."


def test_many_entries_at_once(faq: FaqWorld) -> None:
    one, two, three = (faq.add(name) for name in ("One", "Two", "Three"))
    ids = {"ids": [one.seq_id, two.seq_id]}
    assert toast(post(faq, "/bulk?do=disable", ids)) == "2 entries disabled: they are not found any more."
    assert toast(post(faq, "/bulk?do=recommend&enabled=no", {"all": "1"})) == "2 entries recommended."
    assert [(entry["is_enabled"], entry["is_recommended"]) for entry in faq.entries()] == [(False, True), (False, True), (True, False)]
    tag = faq.member.post(f"knowledge-bases/{faq.faq.uid}/tags", {"name": "T"}).json()["data"]["seq_id"]
    assert toast(post(faq, "/bulk/tag", {**ids, "tag": tag})) == "Tags saved."
    assert [entry["tag_name"] for entry in faq.entries()] == ["T", "T", "未分类"]
    assert "Delete 2 entries?" in text(page(faq, f"/bulk/delete?ids={one.seq_id}&ids={two.seq_id}", **HTMX))
    assert toast(post(faq, "/bulk/delete", ids)) == "2 entries deleted."
    assert [entry["id"] for entry in faq.entries()] == [three.seq_id]


@pytest.mark.django_db(transaction=True)
def test_the_match_test_shows_score_question_and_kind(faq: FaqWorld) -> None:
    faq.add("Reset the password", "Use the link.", similar_questions=("Forgot my password",), negative_questions=("Reset the router",))
    work_all("embed")
    shown = text(page(faq, "/match?q=forgot+my+password", **HTMX))
    assert "Reset the password" in shown and "Question met: “Forgot my password”" in shown and "Use the link." in shown
    assert "By words and meaning" in shown
    assert re.search(r"0\.\d{3}", shown)
    shown = text(page(faq, "/match?q=reset+my+router", **HTMX))
    assert "No entry answers this" in shown and "Kept out by a negative question" in shown


def send_file(faq: FaqWorld, tail: str, data: bytes, name: str = "faq.csv", **fields: str) -> Any:
    return post(faq, tail, {"file": SimpleUploadedFile(name, data), **fields})


CSV = "问题,机器人回答,备注\n一,答一,x\n,没有问题,\n二,,\n三,答三,\n".encode("gb18030")


def test_a_file_is_previewed_checked_and_imported(faq: FaqWorld) -> None:
    assert "Choose a file" in text(page(faq, "/import", **HTMX))
    shown = text(send_file(faq, "/import/preview", CSV))
    for words in ("4 rows", "read as gb18030", "问题 Standard question", "备注 not read", "答一"):
        assert words in shown
    assert "more than" not in shown
    wrong = text(send_file(faq, "/import/preview", b"a,b\n1,2\n"))
    assert "No column of questions" in wrong and "Import" not in wrong.replace("Importing", "")
    checked = send_file(faq, "/import", CSV, mode="append", do="check")
    assert "Waiting for its turn" in text(checked)
    work_all("faq_import")
    with unscoped("test"):
        run = FaqImportRun.objects.get()
    shown = text(page(faq, f"/import/{run.task_id}", **HTMX))
    assert "Nothing has been changed yet" in shown and "Import the others" in shown
    assert faq.entries() == []
    post(faq, f"/import/{run.task_id}/start")
    work_all("faq_import")
    with unscoped("test"):
        run = FaqImportRun.objects.latest("pk")
    assert len(faq.entries()) == 2
    shown = text(page(faq, f"/import/{run.task_id}", **HTMX))
    for words in ("Rows 4", "Added 2", "Failed 2", "The standard question is blank.", "There is no answer.", "Retry corrected rows"):
        assert words in shown
    reasons = json.loads(page(faq, f"/import/{run.task_id}/reasons").content)
    assert [(row["rowNumber"], row["reasonCode"]) for row in reasons] == [(2, "question_blank"), (3, "answers_blank")]
    sent = {
        "take-1": "on",
        "standard_question-1": "四",
        "answers-1": "没有问题",
        "take-2": "on",
        "standard_question-2": "二",
        "answers-2": "答二##又答",
    }
    post(faq, f"/import/{run.task_id}/retry", sent)
    work_all("faq_import")
    assert {entry["standard_question"]: entry["answers"] for entry in faq.entries()} == {
        "一": ["答一"], "三": ["答三"], "四": ["没有问题"], "二": ["答二", "又答"],
    }  # fmt: skip
    assert "Everything was imported." in text(page(faq, f"/import/{run.task_id}", **HTMX))
    assert "Last import" in text(page(faq))
    post(faq, "/result/hide")
    assert "Last import" not in text(page(faq))


def test_an_import_under_way_is_found_again_and_stopped(faq: FaqWorld) -> None:
    send_file(faq, "/import", CSV, mode="append", do="run")
    assert "Entries are being imported." in text(page(faq))
    assert "Waiting for its turn" in text(page(faq, "/import", **HTMX))
    with unscoped("test"):
        run = FaqImportRun.objects.get()
    polled = page(faq, f"/import/{run.task_id}", **{"HX-Request": "true", "HX-Target": "faq-run"})
    assert "data-poll=" in polled.content.decode()
    assert "Stopped." in text(post(faq, f"/import/{run.task_id}/stop"))
    assert "data-poll=" not in page(faq, f"/import/{run.task_id}", **HTMX).content.decode()


def test_settings_say_what_entries_are_found_by(faq: FaqWorld) -> None:
    faq.add("One", similar_questions=("Two",))
    address = f"/s/{faq.space.pk}/bases/{faq.faq.uid}/settings"
    shown = text(faq.member.client.get(address, headers={"Accept-Language": "en"}))
    assert "What entries are found by" in shown and "How documents are split" not in shown
    sent = {"name": "Support", "words": "on", "vectors": "on", "index_mode": "question_only", "question_index_mode": "separate"}
    assert faq.member.client.post(address, sent).status_code == 403
    assert faq.admin.client.post(address, sent).status_code == 302
    with unscoped("test"):
        assert KnowledgeBase.objects.get(pk=faq.faq.pk).options["faq_config"] == {
            "index_mode": "question_only",
            "question_index_mode": "separate",
        }
    assert work_all("faq_index") == 1


def test_a_base_of_entries_is_made_in_the_dialog(faq: FaqWorld) -> None:
    answer = faq.admin.client.post(f"/s/{faq.space.pk}/bases/new", {"name": "Fresh", "type": "faq"}, headers=HTMX)
    assert answer["HX-Redirect"].endswith("/faq")
    assert "0 entries" in text(faq.admin.client.get(f"/s/{faq.space.pk}/", headers={"Accept-Language": "en"}))


def test_an_entry_that_is_quoted_opens_in_its_list(faq: FaqWorld) -> None:
    entry = faq.add("Quoted")
    faq.add("Other")
    answer = faq.member.client.get(reverse("document-reader", args=[faq.space.pk, entry.document.uid]))
    assert answer.status_code == 302
    shown = text(faq.member.client.get(answer.url, headers={"Accept-Language": "en"}))
    assert "Quoted" in shown and "Other" not in shown


def test_no_page_of_it_is_for_outsiders(faq: FaqWorld) -> None:
    entry = faq.add("One")
    for tail in ("", "/new", f"/{entry.seq_id}", "/match", "/import", "/part"):
        assert page(faq, tail, person=faq.outsider).status_code in (403, 404)
    with unscoped("test"):
        assert FaqEntry.objects.count() == 1


def test_moderators_list_entries_and_read_their_texts_only_for_a_reason(faq: FaqWorld) -> None:
    entry = faq.add("如何重设密码", "打开登录页面。", similar_questions=("忘记密码",), is_recommended=True)
    faq.add("Switched off", "B", is_enabled=False)
    faq.add("Elsewhere", "C", base=faq.other_faq)
    user = faq.outsider.user
    user.is_staff = True
    user.save()

    def page(tail: str) -> str:
        answer = faq.outsider.client.get(f"/admin/faq/faqentry/{tail}", headers={"Accept-Language": "en"})
        assert answer.status_code == 200, answer.content[:500]
        return str(answer.content.decode())

    listed = page("")
    assert all(word in listed for word in ("如何重设密码", "Switched off", "Elsewhere", "Support"))
    assert "打开登录页面" not in listed and "忘记密码" not in listed
    assert ("Switched off" in page("?state=off"), "如何重设密码" in page("?state=off")) == (True, False)
    assert ("如何重设密码" in page("?state=best"), "Switched off" in page("?state=best")) == (True, False)
    assert ("Elsewhere" in page(f"?space={faq.space.pk}"), "Elsewhere" in page("?q=elsewhere")) == (False, True)
    shown = page(f"{entry.pk}/change/")
    assert "忘记密码" not in shown and "打开登录页面" not in shown and str(entry.seq_id) in shown
    asked = faq.outsider.client.get(f"/admin/contents/{entry.document_id}/")
    assert asked.status_code == 302 and f"/admin/open/{faq.space.pk}/" in asked["Location"]
    faq.member.delete(faq.path("entries"), {"ids": [entry.seq_id]})
    assert ("如何重设密码" in page(""), "如何重设密码" in page("?state=gone")) == (False, True)
