"""Entries over REST: what they look like, what is refused and how, flags, tags, deletion."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from apps.common.scope import unscoped
from apps.faq.models import FaqEntry, FaqQuestion
from apps.knowledge.models import Document, KnowledgeBase, Tag
from tests.faq.conftest import FaqWorld

ENTRY_KEYS = {
    "id", "chunk_id", "knowledge_id", "knowledge_base_id", "tag_id", "tag_name", "is_enabled", "is_recommended", "standard_question",
    "similar_questions", "negative_questions", "answers", "answer_strategy", "index_mode", "created_at", "updated_at", "chunk_type",
    "version",
}  # fmt: skip


def body(question: str = "How do I reset my password?", **values: Any) -> dict[str, Any]:
    return {"standard_question": question, "answers": ["On the sign-in page."], **values}


def create(faq: FaqWorld, question: str = "How do I reset my password?", **values: Any) -> dict[str, Any]:
    answer = faq.member.post(faq.path("entry"), body(question, **values))
    assert answer.status_code == 200, answer.content
    return answer.json()["data"]


def refused(answer: Any, status: int = 400, code: int = 1000) -> dict[str, Any]:
    found = answer.json()
    assert (answer.status_code, found["success"], found["error"]["code"]) == (status, False, code), answer.content
    return found["error"]


def test_every_route_of_a_base_of_documents_is_refused(faq: FaqWorld) -> None:
    calls = [
        ("GET", "entries", None),
        ("GET", "entries/export", None),
        ("GET", "entries/100000001", None),
        ("POST", "entry", body()),
        ("PUT", "entries/100000001", body()),
        ("POST", "entries/100000001/similar-questions", {"similar_questions": ["a"]}),
        ("PUT", "entries/fields", {}),
        ("PUT", "entries/tags", {"updates": {"1": None}}),
        ("DELETE", "entries", {"ids": [1]}),
        ("POST", "search", {"query_text": "a"}),
        ("POST", "entries", {"mode": "append", "entries": [body()]}),
        ("PUT", "import/last-result/display", {"display_status": "open"}),
    ]
    for method, tail, sent in calls:
        refused(faq.member.call(method, faq.path(tail, faq.base), sent))


def test_a_new_base_lists_nothing(faq: FaqWorld) -> None:
    assert faq.member.get(faq.path("entries")).json() == {"success": True, "data": {"total": 0, "page": 1, "page_size": 20, "data": []}}
    assert faq.member.get(faq.path("entries?tag_id=99")).status_code == 200
    assert faq.member.get(faq.path("entries/export?format=json")).json() == []


@pytest.mark.parametrize("size", ["1001", "-1"])
def test_page_sizes_out_of_range_are_refused(faq: FaqWorld, size: str) -> None:
    refused(faq.member.get(faq.path(f"entries?page_size={size}")))


def test_a_page_size_of_zero_is_the_default(faq: FaqWorld) -> None:
    assert faq.member.get(faq.path("entries?page_size=0&page=0")).json()["data"]["page_size"] == 20


def test_a_new_entry_has_the_contracts_shape(faq: FaqWorld) -> None:
    made = create(faq, " How?\t", similar_questions=[" Why? ", "", "Why?"], answers=[" One. ", "Two.\r\nThree."])
    assert set(made) == ENTRY_KEYS
    assert made["standard_question"] == "How?"
    assert made["similar_questions"] == ["Why?"]
    assert made["negative_questions"] is None
    assert made["answers"] == ["One.", "Two.\nThree."]
    assert (made["answer_strategy"], made["index_mode"], made["chunk_type"]) == ("all", "question_answer", "faq")
    assert (made["is_enabled"], made["is_recommended"], made["tag_name"]) == (True, True, "未分类")
    assert made["id"] >= 100_000_000
    assert faq.member.get(faq.path(f"entries/{made['id']}")).json()["data"] == made


def test_entries_are_counted_as_passages_of_their_base_and_never_as_documents(faq: FaqWorld) -> None:
    create(faq, "One")
    create(faq, "Two", similar_questions=["Zwei"])
    base = faq.member.get(f"knowledge-bases/{faq.faq.uid}").json()["data"]
    assert (base["knowledge_count"], base["chunk_count"], base["capabilities"]["faq"]) == (0, 2, True)
    listed = faq.member.get(f"knowledge-bases/{faq.faq.uid}/knowledge").json()
    assert (listed["total"], listed["data"]) == (0, [])
    assert faq.member.get("knowledge/search?keyword=One").json()["data"] == []
    (tag,) = faq.member.get(f"knowledge-bases/{faq.faq.uid}/tags").json()["data"]["data"]
    assert (tag["name"], tag["knowledge_count"], tag["chunk_count"]) == ("未分类", 0, 2)


def test_all_entries_of_a_base_have_one_home(faq: FaqWorld) -> None:
    first, second = create(faq, "One"), create(faq, "Two")
    assert first["knowledge_id"] == second["knowledge_id"]
    home = faq.member.get(f"knowledge/{first['knowledge_id']}").json()["data"]
    assert (home["type"], home["title"]) == ("faq", "Support")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"standard_question": " \n "}, "standard_question"),
        ({"standard_question": None}, "standard_question"),
        ({"answers": []}, "answers"),
        ({"answers": None}, "answers"),
        ({"answer_strategy": "some"}, "answer_strategy"),
        ({"similar_questions": ["HOW DO I RESET MY PASSWORD"]}, "similar_questions"),
        ({"similar_questions": ["Why", "why?"]}, "similar_questions"),
        ({"negative_questions": ["How do I reset my password?"]}, "negative_questions"),
        ({"similar_questions": ["Why"], "negative_questions": ["why"]}, "negative_questions"),
        ({"negative_questions": ["no", "No."]}, "negative_questions"),
        ({"id": 100_000_000}, "id"),
    ],
)
def test_what_an_entry_may_not_be_by_itself(faq: FaqWorld, values: dict[str, Any], field: str) -> None:
    error = refused(faq.member.post(faq.path("entry"), body() | values))
    assert error["details"]["field"] == field
    with unscoped("test"):
        assert not FaqEntry.objects.exists()


@pytest.mark.parametrize(
    "values",
    [
        {"standard_question": "重设密码"},
        {"standard_question": "忘记密码"},
        {"standard_question": "重設密碼？"},
        {"standard_question": "重设　密码"},
        {"standard_question": "New", "similar_questions": ["重设密码"]},
        {"standard_question": "New", "similar_questions": ["忘记密码!"]},
    ],
)
def test_a_question_the_base_answers_already_is_refused_and_named(faq: FaqWorld, values: dict[str, Any]) -> None:
    create(faq, "重设密码", similar_questions=["忘记密码"])
    error = refused(faq.member.post(faq.path("entry"), body() | values))
    assert "重设密码" in error["message"]
    assert len(faq.entries()) == 1


def test_negative_questions_may_be_questions_of_other_entries(faq: FaqWorld) -> None:
    create(faq, "Reset the router")
    create(faq, "Reset the password", negative_questions=["Reset the router"])
    assert len(faq.entries()) == 2


def test_two_bases_may_answer_the_same_question(faq: FaqWorld) -> None:
    create(faq, "One")
    assert faq.member.post(faq.path("entry", faq.second_faq), body("One")).status_code == 200


def test_a_number_brought_along_is_kept(faq: FaqWorld) -> None:
    assert create(faq, "One", id=4711)["id"] == 4711
    assert faq.member.get(faq.path("entries/4711")).json()["data"]["standard_question"] == "One"
    assert refused(faq.member.post(faq.path("entry"), body("Two", id=4711)))["details"]["field"] == "id"


def test_tags_by_number_win_over_names(faq: FaqWorld) -> None:
    tag = faq.member.post(f"knowledge-bases/{faq.faq.uid}/tags", {"name": "Accounts"}).json()["data"]
    made = create(faq, "One", tag_id=tag["seq_id"], tag_name="Other")
    assert (made["tag_id"], made["tag_name"]) == (tag["seq_id"], "Accounts")
    assert create(faq, "Two", tag_name="New tag")["tag_name"] == "New tag"
    refused(faq.member.post(faq.path("entry"), body("Three", tag_id=tag["seq_id"] + 999)), 404, 1003)
    assert len(faq.entries()) == 2


@pytest.mark.parametrize(("length", "status"), [(8000, 200), (8001, 400)])
def test_questions_and_answers_have_at_most_8000_characters(faq: FaqWorld, length: int, status: int) -> None:
    long = "长" * length
    for values in ({"standard_question": long}, {"answers": [long]}, {"similar_questions": [long]}, {"negative_questions": [long]}):
        answer = faq.member.post(faq.path("entry"), body("Question", id=None) | values)
        assert answer.status_code == status, answer.content[:200]
        with unscoped("test"):
            for entry in FaqEntry.objects.all():
                entry.document.delete()


def test_the_limit_counts_as_clients_count(faq: FaqWorld) -> None:
    refused(faq.member.post(faq.path("entry"), body("𠮷" * 4001)))


def test_an_update_replaces_all_texts_and_clears_the_tag(faq: FaqWorld) -> None:
    made = create(faq, "One", similar_questions=["Eins"], tag_name="T", is_enabled=False, is_recommended=False, answer_strategy="random")
    changed = faq.member.put(faq.path(f"entries/{made['id']}"), {"standard_question": "Uno", "answers": ["A"], "tag_name": "ignored"})
    found = changed.json()["data"]
    assert (found["standard_question"], found["similar_questions"], found["answers"]) == ("Uno", None, ["A"])
    assert (found["tag_id"], found["tag_name"]) == (0, "")
    assert (found["is_enabled"], found["is_recommended"], found["answer_strategy"]) == (False, False, "random")
    assert (found["id"], found["chunk_id"], found["version"]) == (made["id"], made["chunk_id"], 2)
    assert faq.member.put(faq.path(f"entries/{made['id']}"), body("Uno", is_enabled=True)).json()["data"]["is_enabled"] is True
    assert create(faq, "One")["standard_question"] == "One"  # the old question is free again


def test_an_update_based_on_an_old_version_is_a_conflict_that_shows_the_current_one(faq: FaqWorld) -> None:
    made = create(faq, "One")
    assert faq.member.put(faq.path(f"entries/{made['id']}"), body("Two", expected_version=1)).status_code == 200
    error = refused(faq.admin.put(faq.path(f"entries/{made['id']}"), body("Three", expected_version=1)), 409, 1005)
    assert (error["details"]["current_version"], error["details"]["standard_question"]) == (2, "Two")


def test_entries_of_another_base_are_not_found_and_not_changed(faq: FaqWorld) -> None:
    made = create(faq, "One")
    there = faq.path(f"entries/{made['id']}", faq.second_faq)
    refused(faq.member.get(there), 404, 1003)
    refused(faq.member.put(there, body("Two")), 403, 1002)
    refused(faq.member.delete(faq.path("entries", faq.second_faq), {"ids": [made["id"]]}))
    refused(faq.outsider.put(faq.path(f"entries/{made['id']}", faq.other_faq), body("Two")), 404, 1003)
    assert [entry["standard_question"] for entry in faq.entries()] == ["One"]


@pytest.mark.parametrize("number", ["0", "-3", "abc", "1.5", "9" * 25])
def test_what_is_no_number_of_an_entry_is_refused(faq: FaqWorld, number: str) -> None:
    refused(faq.member.get(faq.path(f"entries/{number}")))


def test_similar_questions_are_added_once(faq: FaqWorld) -> None:
    made, _other = create(faq, "One", similar_questions=["Eins"]), create(faq, "Two")
    path = faq.path(f"entries/{made['id']}/similar-questions")
    found = faq.member.post(path, {"similar_questions": ["Uno", " ", "eins", "ONE?", "Uno"]}).json()["data"]
    assert found["similar_questions"] == ["Eins", "Uno"]
    same = faq.member.post(path, {"similar_questions": ["uno"]}).json()["data"]
    assert (same["similar_questions"], same["version"]) == (["Eins", "Uno"], found["version"])
    refused(faq.member.post(path, {"similar_questions": ["two"]}))
    refused(faq.member.post(path, {"similar_questions": []}))


def test_batch_fields_go_by_tag_first_and_then_by_entry(faq: FaqWorld) -> None:
    one, two, three = (create(faq, name, tag_name="T") for name in ("One", "Two", "Three"))
    free = create(faq, "Four", tag_name="U")
    sent = {
        "by_tag": {str(one["tag_id"]): {"is_enabled": False, "is_recommended": False}},
        "by_id": {str(two["id"]): {"is_enabled": True, "tag_id": 0}, "100999999": {"is_enabled": False}},
        "exclude_ids": [three["id"]],
    }
    assert faq.member.put(faq.path("entries/fields"), sent).json() == {"success": True}
    found = {entry["standard_question"]: entry for entry in faq.entries()}
    assert [found[name]["is_enabled"] for name in ("One", "Two", "Three", "Four")] == [False, True, True, True]
    assert [found[name]["is_recommended"] for name in ("One", "Two", "Three", "Four")] == [False, False, True, True]
    assert [found[name]["tag_name"] for name in ("One", "Two", "Three")] == ["T", "", "T"]
    with unscoped("test"):
        assert Document.objects.filter(type="pair", enabled=False).count() == 1
    assert faq.member.put(faq.path("entries/fields"), {}).json() == {"success": True}
    refused(faq.member.put(faq.path("entries/fields"), {"by_tag": {"999999": {"is_enabled": False}}}), 404, 1003)
    refused(faq.member.put(faq.path("entries/fields"), {"by_id": {str(free["id"]): {"tag_id": 999999}}}), 404, 1003)
    refused(faq.member.put(faq.path("entries/fields"), {"by_id": {"x": {}}}))


def test_batch_tags(faq: FaqWorld) -> None:
    one, two = create(faq, "One", tag_name="T"), create(faq, "Two", tag_name="U")
    path = faq.path("entries/tags")
    assert faq.member.put(path, {"updates": {str(one["id"]): two["tag_id"], str(two["id"]): None, "100999999": None}}).status_code == 200
    assert [entry["tag_name"] for entry in faq.entries()] == ["U", ""]
    with unscoped("test"):
        foreign = Tag.objects.create(space=faq.space, kb=faq.second_faq, name="Foreign")
    refused(faq.member.put(path, {"updates": {str(one["id"]): foreign.pk}}))
    refused(faq.member.put(path, {"updates": {}}))
    assert [entry["tag_name"] for entry in faq.entries()] == ["U", ""]


def test_deleting_takes_all_or_none(faq: FaqWorld) -> None:
    one, two, three = (create(faq, name) for name in ("One", "Two", "Three"))
    refused(faq.member.delete(faq.path("entries"), {"ids": [one["id"], 100_999_999]}), 404, 1003)
    assert len(faq.entries()) == 3
    assert faq.member.delete(faq.path("entries"), {"ids": [0, one["id"], -1, two["id"]]}).json() == {"success": True}
    assert [entry["id"] for entry in faq.entries()] == [three["id"]]
    refused(faq.member.get(faq.path(f"entries/{one['id']}")), 404, 1003)
    refused(faq.member.delete(faq.path("entries"), {"ids": []}))
    assert create(faq, "One")["id"] != one["id"]


def test_what_was_deleted_comes_back_unless_its_question_was_taken(faq: FaqWorld) -> None:
    one, two = create(faq, "One", similar_questions=["Eins"], tag_name="T"), create(faq, "Two")
    faq.member.delete(faq.path("entries"), {"ids": [one["id"], two["id"]]})
    create(faq, "two?")
    trash = faq.admin.get(f"knowledge-bases/{faq.faq.uid}/trash").json()["data"]
    ids = {row["title"]: row["id"] for row in (trash if isinstance(trash, list) else trash["data"])}
    assert faq.admin.post(f"knowledge-bases/{faq.faq.uid}/trash/restore", {"ids": [ids["One"]]}).status_code == 200
    assert faq.admin.post(f"knowledge-bases/{faq.faq.uid}/trash/restore", {"ids": [ids["Two"]]}).status_code == 409
    found = {entry["standard_question"]: entry for entry in faq.entries()}
    assert set(found) == {"One", "two?"}
    assert (found["One"]["id"], found["One"]["similar_questions"], found["One"]["tag_name"]) == (one["id"], ["Eins"], "T")
    refused(faq.member.post(faq.path("entry"), body("eins")))


def test_the_list_is_narrowed_by_words_and_tags(faq: FaqWorld) -> None:
    create(faq, "Reset password", similar_questions=["Forgot it"], answers=["Use the link"], tag_name="A")
    create(faq, "Change e-mail", answers=["In your PROFILE password page"], tag_name="B")
    tags = {row["name"]: row for row in faq.member.get(f"knowledge-bases/{faq.faq.uid}/tags").json()["data"]["data"]}

    def found(query: str) -> list[str]:
        return [entry["standard_question"] for entry in faq.member.get(faq.path(f"entries?{query}")).json()["data"]["data"]]

    assert found("keyword=password") == ["Change e-mail", "Reset password"]
    assert found("keyword=password&search_field=standard_question") == ["Reset password"]
    assert found("keyword=password&search_field=answers") == ["Change e-mail"]
    assert found("keyword=FORGOT&search_field=similar_questions") == ["Reset password"]
    assert found("keyword=profile&search_field=anything") == ["Change e-mail"]
    assert found("sort_order=asc") == ["Reset password", "Change e-mail"]
    assert found(f"tag_id={tags['A']['seq_id']}") == ["Reset password"]
    assert found(f"tag_ids={tags['B']['id']}&tag_id={tags['A']['seq_id']}") == ["Change e-mail"]
    assert found(f"tag_ids={tags['A']['id']},{tags['B']['id']}") == ["Change e-mail", "Reset password"]
    refused(faq.member.get(faq.path("entries?tag_id=x")))
    refused(faq.member.get(faq.path("entries?tag_id=999999")), 404, 1003)


def test_chinese_is_found_in_every_field_of_the_list(faq: FaqWorld) -> None:
    create(faq, "如何重设密码", similar_questions=["忘记口令"], answers=["登录页面"])
    for word in ("重设", "口令", "登录"):
        assert faq.member.get(faq.path(f"entries?keyword={word}")).json()["data"]["total"] == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_that_create_the_same_question_at_once_one_is_told_of_the_other(faq: FaqWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.faq.services import entries as service

    gate, codes = threading.Barrier(2), []
    checked = service._check_taken

    def both_checked(*args: Any, **kwargs: Any) -> None:
        checked(*args, **kwargs)
        gate.wait(10)

    monkeypatch.setattr(service, "_check_taken", both_checked)

    def ask(person: Any) -> None:
        from django.db import connection

        codes.append(person.post(faq.path("entry"), body("Same")).status_code)
        connection.close()

    threads = [threading.Thread(target=ask, args=(person,)) for person in (faq.member, faq.admin)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(codes) == [200, 409]
    with unscoped("test"):
        assert (FaqEntry.objects.count(), FaqQuestion.objects.count()) == (1, 1)


def test_members_write_and_outsiders_find_nothing(faq: FaqWorld) -> None:
    create(faq)
    assert faq.outsider.get(faq.path("entries")).status_code == 404
    assert faq.outsider.post(faq.path("entry"), body("Two")).status_code == 404


def test_used_tags_stay_and_the_default_tag_comes_first(faq: FaqWorld) -> None:
    made = create(faq, "One", tag_name="Used")
    create(faq, "Two")
    tags = f"knowledge-bases/{faq.faq.uid}/tags"
    assert [row["name"] for row in faq.member.get(tags).json()["data"]["data"]] == ["未分类", "Used"]
    refused(faq.member.post(tags, {"name": "Used"}), 409, 1005)
    refused(faq.member.delete(f"{tags}/{made['tag_id']}", {}))
    assert len(faq.entries()) == 2
    faq.member.put(faq.path("entries/tags"), {"updates": {str(made["id"]): None}})
    assert faq.member.delete(f"{tags}/{made['tag_id']}", {}).status_code == 200


def test_passages_of_an_entry_are_changed_with_the_entry_only(faq: FaqWorld) -> None:
    made = create(faq)
    with unscoped("test"):
        document = Document.objects.get(type="pair")
    assert faq.member.put(f"chunks/{document.uid}/{made['chunk_id']}", {"content": "x"}).status_code == 400
    assert faq.member.put(f"knowledge/{document.uid}", {"title": "x"}).status_code == 400
    assert faq.member.delete(f"chunks/{document.uid}").status_code in (400, 405)
    assert faq.entries()[0]["standard_question"] == made["standard_question"]


def test_clearing_a_base_takes_its_entries(faq: FaqWorld) -> None:
    create(faq, "One")
    create(faq, "Two")
    assert faq.admin.call("POST", f"knowledge-bases/{faq.faq.uid}/clear", {}).status_code in (200, 404)
    with unscoped("test"):
        assert KnowledgeBase.objects.filter(pk=faq.faq.pk, deleted_at__isnull=True).exists()
