"""Lines T1 to T12 of the contract's second checklist (content 14): question pairs."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract_checklist.conftest import code, data
from tests.faq.conftest import FaqWorld
from tests.faq.test_files import send
from tests.support.filestore import use_fresh_store
from tests.support.kit import work_all

HEADER = (
    "\ufeff分类(必填),问题(必填),相似问题(选填-多个用##分隔),反例问题(选填-多个用##分隔),机器人回答(必填-多个用##分隔),"
    "是否全部回复(选填-默认FALSE),是否停用(选填-默认FALSE),是否禁止被推荐(选填-默认False 可被推荐)"
)


@pytest.fixture
def faq(transactional_db: Any, tmp_path: Path, settings: Any) -> Iterator[FaqWorld]:
    settings.EMBEDDER = "none"
    use_fresh_store(settings, tmp_path)
    yield FaqWorld()


def entry(question: str = "Q", *answers: str, **more: Any) -> dict[str, Any]:
    return {"standard_question": question, "answers": list(answers or ("A",)), **more}


def create(faq: FaqWorld, question: str = "Q", *answers: str, **more: Any) -> dict[str, Any]:
    return dict(data(faq.member.post(faq.path("entry"), entry(question, *answers, **more))))


def tag(faq: FaqWorld, name: str) -> int:
    return int(data(faq.member.post(f"knowledge-bases/{faq.faq.uid}/tags", {"name": name}))["seq_id"])


ROUTES = [
    ("GET", "entries", None), ("GET", "entries/export", None), ("GET", "entries/7", None), ("POST", "entry", entry()),
    ("PUT", "entries/7", entry()), ("POST", "entries/7/similar-questions", {"similar_questions": ["x"]}), ("PUT", "entries/fields", {}),
    ("PUT", "entries/tags", {"updates": {"7": 1}}), ("DELETE", "entries", {"ids": [7]}), ("POST", "search", {"query_text": "x"}),
    ("POST", "entries", {"mode": "append", "entries": [entry()]}), ("PUT", "import/last-result/display", {"display_status": "open"}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "tail", "body"), ROUTES)
def test_line_t1_a_base_of_documents_has_no_pairs(faq: FaqWorld, method: str, tail: str, body: Any) -> None:
    assert code(faq.member.call(method, faq.path(tail, faq.base), body)) == (400, 1000)


def test_line_t2_a_new_base_lists_nothing(faq: FaqWorld) -> None:
    assert data(faq.member.get(faq.path("entries"))) == {"total": 0, "page": 1, "page_size": 20, "data": []}
    assert data(faq.member.get(faq.path("entries?tag_id=12345")))["total"] == 0, "tags are looked at once there is a home for entries"


def test_line_t3_page_sizes(faq: FaqWorld) -> None:
    for size in ("1001", "-1"):
        assert code(faq.member.get(faq.path(f"entries?page_size={size}")))[0] == 400
    assert data(faq.member.get(faq.path("entries?page_size=0")))["page_size"] == 20


WRONG = [
    entry(""), entry(" \n"), {"standard_question": "New", "answers": []}, {"standard_question": "New"}, entry("New", answer_strategy="some"),
    entry("New", similar_questions=["New"]), entry("New", similar_questions=["a", "a2", "A"]), entry("New", negative_questions=["New"]),
    entry("New", similar_questions=["a"], negative_questions=["a"]), entry("New", negative_questions=["n", "N"]), entry("Taken"),
    entry("Also"), entry("New", similar_questions=["Taken"]), entry("New", similar_questions=["Also"]),
]  # fmt: skip


@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_line_t4_what_cannot_be_created(faq: FaqWorld, body: dict[str, Any]) -> None:
    create(faq, "Taken", similar_questions=["Also"])
    assert code(faq.member.post(faq.path("entry"), body)) == (400, 1000)
    assert [each["standard_question"] for each in faq.entries()] == ["Taken"]


def test_line_t4_of_two_creations_of_one_question_one_is_a_conflict(faq: FaqWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import connection

    from apps.faq.services import entries as service

    gate, checked, answers = threading.Barrier(2), service._check_taken, []

    def both_checked(*args: Any, **kwargs: Any) -> None:
        checked(*args, **kwargs)
        gate.wait(10)

    def ask(person: Any) -> None:
        answers.append(person.post(faq.path("entry"), entry("Same")))
        connection.close()

    monkeypatch.setattr(service, "_check_taken", both_checked)
    threads = [threading.Thread(target=ask, args=(person,)) for person in (faq.member, faq.admin)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    created, refused = sorted(answers, key=lambda answer: answer.status_code)
    assert (created.status_code, code(refused)) == (200, (409, 1005))


def test_line_t5_an_update_without_a_tag_clears_it_and_leaves_flags(faq: FaqWorld) -> None:
    made = create(faq, tag_name="T", is_enabled=False, is_recommended=False, answer_strategy="random")
    changed = data(faq.member.put(faq.path(f"entries/{made['id']}"), entry("Other", "B", tag_name="ignored")))
    assert (changed["standard_question"], changed["answers"], changed["tag_id"], changed["tag_name"]) == ("Other", ["B"], 0, "")
    assert (changed["is_enabled"], changed["is_recommended"], changed["answer_strategy"]) == (False, False, "random")


def test_line_t6_entries_of_another_base(faq: FaqWorld) -> None:
    other = faq.add("Elsewhere", base=faq.second_faq)
    path = faq.path(f"entries/{other.seq_id}")
    assert code(faq.member.get(path)) == (404, 1003)
    assert code(faq.member.put(path, entry("Mine"))) == (403, 1002)
    assert [each["standard_question"] for each in faq.entries(faq.second_faq)] == ["Elsewhere"]
    hidden = faq.add("Hidden", base=faq.other_faq)
    assert code(faq.member.put(faq.path(f"entries/{hidden.seq_id}"), entry("Mine"))) == (404, 1003), "of another space: as if it never was"


def test_line_t7_batch_fields(faq: FaqWorld) -> None:
    one, two, three = (create(faq, name, tag_name="T") for name in ("One", "Two", "Three"))
    path, number = faq.path("entries/fields"), one["tag_id"]
    body = {
        "by_tag": {str(number): {"is_enabled": False, "is_recommended": False}},
        "by_id": {str(one["id"]): {"is_enabled": True, "tag_id": 0}, "99": {"is_enabled": False}},
        "exclude_ids": [three["id"]],
    }
    assert faq.member.put(path, body).json() == {"success": True}
    found = {each["standard_question"]: (each["is_enabled"], each["is_recommended"], each["tag_id"]) for each in faq.entries()}
    assert found == {"One": (True, False, 0), "Two": (False, False, number), "Three": (True, True, number)}
    assert faq.member.put(path, {}).json() == {"success": True}
    assert code(faq.member.put(path, {"by_tag": {"987654": {"is_enabled": True}}}))[0] == 404
    assert code(faq.member.put(path, {"by_id": {str(two["id"]): {"tag_id": 987654}}}))[0] == 404


def test_line_t8_a_batch_that_cannot_be_deleted_whole_is_not_deleted(faq: FaqWorld) -> None:
    """Decided: all or none, where upstream leaves half."""
    one, two = create(faq, "One"), create(faq, "Two")
    foreign = faq.add("Elsewhere", base=faq.second_faq)
    assert code(faq.member.delete(faq.path("entries"), {"ids": [one["id"], 98765]}))[0] == 404
    assert code(faq.member.delete(faq.path("entries"), {"ids": [one["id"], foreign.seq_id]}))[0] == 400
    assert len(faq.entries()) == 2
    assert faq.member.delete(faq.path("entries"), {"ids": [0, -1, one["id"], two["id"]]}).json() == {"success": True}
    assert faq.entries() == []
    assert code(faq.member.delete(faq.path("entries"), {"ids": []}))[0] == 400


def test_line_t9_matching(faq: FaqWorld) -> None:
    first = create(faq, "Invoice one", tag_name="A")
    create(faq, "Invoice two", tag_name="B", negative_questions=["Invoice for a friend"])
    create(faq, "Invoice three", tag_name="C", is_enabled=False)
    for number in range(60):
        create(faq, f"Receipt {number}")

    def ask(query: str, **more: Any) -> list[dict[str, Any]]:
        return list(data(faq.member.post(faq.path("search"), {"query_text": query, **more})))

    assert {hit["standard_question"] for hit in ask("Invoice", vector_threshold=0)} == {"Invoice one", "Invoice two"}, "not the disabled"
    assert {hit["standard_question"] for hit in ask(" invoice for a FRIEND ")} == {"Invoice one"}, "its negative question says so"
    assert (len(ask("Receipt", match_count=0)), len(ask("Receipt", match_count=-1)), len(ask("Receipt", match_count=500))) == (10, 10, 50)
    assert ask("nothing of the kind") == []
    assert all("match_type" not in hit and hit["chunk_type"] == "faq" for hit in ask("Invoice"))
    other = next(each["tag_id"] for each in faq.entries() if each["tag_name"] == "B")
    ordered = ask("Invoice", first_priority_tag_ids=[other], second_priority_tag_ids=[first["tag_id"]])
    assert [hit["tag_name"] for hit in ordered] == ["B", "A"]
    assert len(ask("Invoice", first_priority_tag_ids=[987654])) == 2, "unknown tags narrow nothing"
    assert code(faq.member.post(faq.path("search"), {}))[0] == 400


def test_line_t10_importing(faq: FaqWorld) -> None:
    path = faq.path("entries")
    assert code(faq.member.post(path, {"mode": "append", "entries": []}))[0] == 400
    assert code(faq.member.post(path, {"entries": [entry()]}))[0] == 400
    task = data(faq.member.post(path, {"mode": "append", "entries": [entry("Running")]}))["task_id"]
    second = faq.member.post(path, {"mode": "append", "entries": [entry("Second")]})
    assert code(second) == (400, 1000) and task in second.json()["error"]["message"]
    work_all("faq_import")
    create(faq, "Old", "old", similar_questions=["Older"], tag_name="Kept")
    before = faq.entries()
    rows = [entry("Old", "new", similar_questions=["Oldest"], tag_name="Lost"), entry("New"), entry(""), entry("Running", "A")]
    dry = faq.run_import(rows, dry_run=True)
    assert (dry["dry_run"], dry["merge_entry_indices"], dry["valid_entry_indices"]) == (True, [0], [0, 1, 3])
    assert faq.entries() == before, "a dry run changes nothing"
    real = faq.run_import(rows)
    counted = (real["success_count"], real.get("partial_failed_count", 0), real["skipped_count"], real["failed_count"])
    assert (counted, sum(counted)) == ((2, 0, 1, 1), real["total"])
    assert (real["merged_count"], real["added_count"]) == (1, 1)
    merged = next(each for each in faq.entries() if each["standard_question"] == "Old")
    assert (merged["similar_questions"], merged["answers"], merged["tag_name"]) == (["Older", "Oldest"], ["new"], "Kept")
    assert next(each for each in faq.entries() if each["standard_question"] == "New")["is_recommended"] is False
    assert [each["index"] for each in real["success_entries"]] == [0, 1]
    faq.run_import([entry("New"), entry("Only")], "replace")
    assert [each["standard_question"] for each in faq.entries()] == ["New", "Only"]
    assert code(faq.outsider.get(f"faq/import/progress/{real['task_id']}")) == (404, 1003)
    assert code(faq.member.get("faq/import/progress/x"))[0] == 400


def test_line_t10_failed_rows_are_listed_corrected_and_tried_again_under_their_task(faq: FaqWorld) -> None:
    done = faq.run_import([entry("One"), entry("Two", "")])
    listed = faq.member.get(f"faq/import/failures/{done['task_id']}").json()
    assert (listed["total"], listed["entries"][0]["rowNumber"], listed["entries"][0]["reasonCode"]) == (1, 2, "answers_blank")
    again = faq.run_import([{**listed["entries"][0]["rawEntry"], "answers": ["B"]}], task_id=done["task_id"])
    assert (again["task_id"], again["total"], again["added_count"], again["failed_count"]) == (done["task_id"], 1, 1, 0)
    assert [each["answers"] for each in faq.entries()] == [["A"], ["B"]]


def test_line_t11_exports(faq: FaqWorld) -> None:
    assert faq.member.get(faq.path("entries/export")).content.decode() == HEADER + "\n"
    assert faq.member.get(faq.path("entries/export?format=JSON")).json() == []
    create(faq, 'Say "hi", twice', "one\ntwo", "three", similar_questions=["a", "b"], tag_name="T", is_enabled=False)
    create(faq, "Plain", answer_strategy="random")
    answer = faq.member.get(faq.path("entries/export"))
    assert answer["Content-Type"] == "text/csv; charset=utf-8" and 'filename="faq_export.csv"' in answer["Content-Disposition"]
    text = answer.content.decode()
    assert text.startswith(HEADER) and '"Say ""hi"", twice"' in text
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[1] == ["T", 'Say "hi", twice', "a##b", "", "one\ntwo##three", "TRUE", "TRUE", "FALSE"]
    body = faq.member.get(faq.path("entries/export?format=json"))
    assert isinstance(body.json(), list) and "negative_questions" not in body.json()[0]
    before = [{name: value for name, value in each.items() if name in rows_of(each)} for each in faq.entries()]
    for name, content in (("faq.csv", answer.content), ("faq.json", body.content)):
        started = send(faq, name, content, base=faq.second_faq, mode="replace")
        assert started.status_code == 200, started.content
        work_all("faq_import")
        after = [{name: value for name, value in each.items() if name in rows_of(each)} for each in faq.entries(faq.second_faq)]
        assert after == before, name


def rows_of(each: dict[str, Any]) -> tuple[str, ...]:
    return ("standard_question", "similar_questions", "negative_questions", "answers", "answer_strategy", "tag_name", "is_enabled")


@pytest.mark.parametrize(("field", "length", "status"), [("q", 8000, 200), ("q", 8001, 400), ("a", 8000, 200), ("a", 8001, 400)])
def test_line_t12_length_of_texts(faq: FaqWorld, field: str, length: int, status: int) -> None:
    body = entry("x" * length) if field == "q" else entry("Q", "y", "x" * length)
    assert faq.member.post(faq.path("entry"), body).status_code == status


def test_line_t12_size_of_imports(faq: FaqWorld) -> None:
    assert code(faq.member.post(faq.path("entries"), {"mode": "append", "entries": [entry()] * 5001})) == (400, 1000)
    room = 10 * 1024 * 1024
    pair = json.dumps([entry("Big")]).encode()
    for size, status in ((room, 200), (room + 1, 400)):
        answer = send(faq, "faq.json", pair + b" " * (size - len(pair)), mode="append")
        assert answer.status_code == status, answer.content
    work_all("faq_import")
    assert faq.member.post(faq.path("entries"), {"mode": "append", "entries": [entry()] * 5000}).status_code == 200
