"""Imports: what becomes of each row, what progress says, what is kept of a worker that was killed."""

from __future__ import annotations

from typing import Any

import pytest

from apps.common.jobs.claims import claim_next
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.scope import unscoped
from apps.faq import importing
from apps.faq.models import FaqEntry, FaqImportRun
from tests.faq.conftest import FaqWorld
from tests.faq.test_entries_api import refused
from tests.support.kit import work_all


def row(question: str, *answers: str, **values: Any) -> dict[str, Any]:
    return {"standard_question": question, "answers": list(answers or ("A",)), **values}


def failures(faq: FaqWorld, progress: dict[str, Any], query: str = "") -> dict[str, Any]:
    answer = faq.member.get(f"faq/import/failures/{progress['task_id']}{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_rows_are_added_in_their_order(faq: FaqWorld) -> None:
    progress = faq.run_import([row(f"Question {n}", tag_name="T") for n in range(230)])
    assert (progress["status"], progress["progress"], progress["total"], progress["processed"]) == ("completed", 100, 230, 230)
    assert (progress["success_count"], progress["added_count"], progress["failed_count"]) == (230, 230, 0)
    assert [entry["standard_question"] for entry in faq.entries()] == [f"Question {n}" for n in range(230)]
    assert progress["success_entries"][3]["index"] == 3
    assert progress["success_entries"][3]["seq_id"] == faq.entries()[3]["id"]
    assert progress["valid_entry_indices"] == list(range(230))
    assert progress["import_mode"] == "append"
    assert progress["display_status"] == "open"
    assert progress["imported_at"] > "2000"
    assert "dry_run" not in progress and "failed_entries" not in progress


def test_what_cannot_be_started(faq: FaqWorld) -> None:
    path = faq.path("entries")
    refused(faq.member.post(path, {"mode": "append", "entries": []}))
    refused(faq.member.post(path, {"entries": [row("One")]}))
    refused(faq.member.post(path, {"mode": "merge", "entries": [row("One")]}))
    refused(faq.member.post(path, {"mode": "append", "entries": [row("One")] * 5001}))
    refused(faq.member.post(path, {"mode": "append", "entries": [row("One")], "task_id": "mine"}))
    other = f"faq_import_{faq.space.pk}_1700000000000_0123abcd_{faq.second_faq.uid}"
    refused(faq.member.post(path, {"mode": "append", "entries": [row("One")], "task_id": other}))
    with unscoped("test"):
        assert not FaqImportRun.objects.exists()


def test_five_thousand_rows_are_taken(faq: FaqWorld) -> None:
    assert faq.member.post(faq.path("entries"), {"mode": "append", "entries": [row("One")] * 5000}).status_code == 200


def test_one_import_of_a_base_at_a_time(faq: FaqWorld) -> None:
    first = faq.member.post(faq.path("entries"), {"mode": "append", "entries": [row("One")]}).json()["data"]["task_id"]
    error = refused(faq.member.post(faq.path("entries"), {"mode": "append", "entries": [row("Two")]}))
    assert first in error["message"]
    refused(faq.member.post(faq.path("entries"), {"mode": "append", "entries": [row("Two")], "task_id": first}))
    assert faq.member.post(faq.path("entries", faq.second_faq), {"mode": "append", "entries": [row("Two")]}).status_code == 200
    assert faq.progress(first)["status"] == "pending"


def test_progress_of_others_and_of_nothing(faq: FaqWorld) -> None:
    task = faq.run_import([row("One")])["task_id"]
    refused(faq.outsider.get(f"faq/import/progress/{task}"), 404, 1003)
    refused(faq.outsider.get(f"faq/import/failures/{task}"), 404, 1003)
    refused(faq.member.get("faq/import/progress/nonsense"))
    unknown = task.replace(task.split("_")[4], "ffffffff")
    refused(faq.member.get(f"faq/import/progress/{unknown}"), 404, 1003)


def test_every_kind_of_row_is_counted_once_and_failures_say_why(faq: FaqWorld) -> None:
    faq.add("Old", "Old answer", similar_questions=("Ancient",), tag_name="Kept")
    faq.add("Same", "Same answer", similar_questions=("Equal",))
    rows = [
        row("New", "N", similar_questions=["Fresh"]),
        row("", "no question"),
        {"standard_question": "No answer", "answers": []},
        row("NEW?", "again"),
        row("Ancient", "is a similar question of another"),
        row("Old", "Newer answer", similar_questions=["Antique"], negative_questions=["Young"], tag_name="Ignored"),
        row("Same", "Same answer", similar_questions=["equal"]),
        row("Part", "P", similar_questions=["Fresh", "Whole"], negative_questions=["PART", "Nothing"]),
        "just a text",
        row("Flag", "F", is_enabled="maybe"),
        row("Long", "x" * 8001),
        row("Tagged", "T", tag_id=987654),
    ]
    progress = faq.run_import(rows)
    assert progress["total"] == 12
    assert progress["failed_count"] == 8
    assert (progress["added_count"], progress["merged_count"], progress["skipped_count"]) == (2, 1, 1)
    assert (progress["success_count"], progress["partial_failed_count"]) == (2, 1)
    assert progress["success_count"] + progress["partial_failed_count"] + progress["skipped_count"] + progress["failed_count"] == 12
    assert progress["merge_entry_indices"] == [5]
    assert progress["merge_details"] == [
        {"index": 5, "standard_question": "Old", "answer_changed": True, "new_similar_count": 1, "new_negative_count": 1}
    ]
    found = failures(faq, progress)
    assert found["total"] == 9
    assert [(each["rowNumber"], each["reasonCode"]) for each in found["entries"]] == [
        (2, "question_blank"),
        (3, "answers_blank"),
        (4, "duplicate_in_batch"),
        (5, "question_is_similar"),
        (8, "parts_removed"),
        (9, "not_an_entry"),
        (10, "bad_boolean"),
        (11, "answer_too_long"),
        (12, "tag_unknown"),
    ]
    assert "1" in found["entries"][2]["reason"]
    assert "Old" in found["entries"][3]["reason"]
    assert found["entries"][1]["rawEntry"] == {"standard_question": "No answer", "answers": []}
    assert [each["rowNumber"] for each in failures(faq, progress, "?limit=2&offset=1")["entries"]] == [3, 4]
    entries = {entry["standard_question"]: entry for entry in faq.entries()}
    assert set(entries) == {"Old", "Same", "New", "Part"}
    assert entries["Old"]["answers"] == ["Newer answer"]
    assert entries["Old"]["similar_questions"] == ["Ancient", "Antique"]
    assert (entries["Old"]["negative_questions"], entries["Old"]["tag_name"]) == (["Young"], "Kept")
    assert (entries["Part"]["similar_questions"], entries["Part"]["negative_questions"]) == (["Whole"], ["Nothing"])


def test_a_merge_that_would_contradict_itself_fails(faq: FaqWorld) -> None:
    faq.add("Old", negative_questions=("Young",))
    progress = faq.run_import([row("Old", similar_questions=["young"])])
    assert (progress["failed_count"], failures(faq, progress)["entries"][0]["reasonCode"]) == (1, "negatives_clash")
    assert faq.entries()[0]["similar_questions"] is None


def test_flags_are_as_the_rows_say(faq: FaqWorld) -> None:
    faq.run_import([row("Off", is_enabled=False), row("Best", is_recommended=True), row("Plain"), row("Camel", isEnabled=False)])
    found = {entry["standard_question"]: (entry["is_enabled"], entry["is_recommended"]) for entry in faq.entries()}
    assert found == {"Off": (False, False), "Best": (True, True), "Plain": (True, False), "Camel": (False, False)}
    faq.run_import([row("Off"), row("Best", is_recommended=False)])
    found = {entry["standard_question"]: (entry["is_enabled"], entry["is_recommended"]) for entry in faq.entries()}
    assert (found["Off"], found["Best"]) == ((False, False), (True, False))


def test_a_dry_run_says_what_would_happen_and_changes_nothing(faq: FaqWorld) -> None:
    faq.add("Old")
    progress = faq.run_import([row("Old", "B"), row("New"), row("")], dry_run=True)
    assert (progress["status"], progress["dry_run"], progress["total"]) == ("completed", True, 3)
    assert (progress["success_count"], progress["merged_count"], progress["added_count"], progress["failed_count"]) == (2, 1, 1, 1)
    assert (progress["valid_entry_indices"], progress["merge_entry_indices"]) == ([0, 1], [0])
    assert "success_entries" not in progress
    assert [entry["answers"] for entry in faq.entries()] == [["An answer."]]
    refused(faq.member.put(faq.path("import/last-result/display"), {"display_status": "close"}), 404, 1003)


def test_replacing_removes_what_is_missing_and_leaves_what_is_the_same(faq: FaqWorld) -> None:
    same = faq.add("Same", "A", tag_name="T")
    flag = faq.add("Flag", "A", tag_name="T")
    faq.add("Changed", "Old", tag_name="Gone")
    faq.add("Removed", "A")
    progress = faq.run_import(
        [row("Same", tag_name="T"), row("Flag", is_enabled=False), row("Changed", "New", tag_name="T"), row("Added")], "replace"
    )
    assert (progress["skipped_count"], progress["merged_count"], progress["added_count"], progress["failed_count"]) == (1, 1, 2, 0)
    entries = {entry["standard_question"]: entry for entry in faq.entries()}
    assert set(entries) == {"Same", "Flag", "Changed", "Added"}
    assert (entries["Same"]["id"], entries["Flag"]["id"]) == (same.seq_id, flag.seq_id)
    assert (entries["Flag"]["is_enabled"], entries["Flag"]["tag_name"]) == (False, "T")
    assert entries["Changed"]["answers"] == ["New"]
    tags = faq.member.get(f"knowledge-bases/{faq.faq.uid}/tags").json()["data"]["data"]
    assert sorted(tag["name"] for tag in tags) == ["T", "未分类"]


def test_replacing_looks_at_the_rows_alone(faq: FaqWorld) -> None:
    faq.add("Old", similar_questions=("Shared",))
    progress = faq.run_import([row("Shared"), row("New", similar_questions=["Old"])], "replace")
    assert (progress["added_count"], progress["failed_count"]) == (2, 0)
    assert [entry["standard_question"] for entry in faq.entries()] == ["Shared", "New"]


def test_corrected_rows_run_again_under_the_same_task(faq: FaqWorld) -> None:
    first = faq.run_import([row("One"), row("")])
    again = faq.run_import([row("Two")], task_id=first["task_id"])
    assert again["task_id"] == first["task_id"]
    assert (again["total"], again["added_count"], again["failed_count"]) == (1, 1, 0)
    assert [entry["standard_question"] for entry in faq.entries()] == ["One", "Two"]


def test_the_last_result_is_put_away_and_shown_again(faq: FaqWorld) -> None:
    progress = faq.run_import([row("One")])
    path = faq.path("import/last-result/display")
    assert faq.member.put(path, {"display_status": "close"}).json() == {"success": True}
    assert faq.progress(progress["task_id"])["display_status"] == "close"
    refused(faq.member.put(path, {"display_status": "maybe"}))


def test_an_import_is_stopped_and_says_so(faq: FaqWorld) -> None:
    task = faq.member.post(faq.path("entries"), {"mode": "append", "entries": [row("One")]}).json()["data"]["task_id"]
    stopped = faq.member.post(f"faq/import/cancel/{task}").json()["data"]
    assert stopped["status"] == "failed"
    assert work_all("faq_import") == 0
    assert faq.entries() == []
    assert faq.run_import([row("Two")])["added_count"] == 1


def test_deleting_the_base_ends_its_import(faq: FaqWorld) -> None:
    faq.member.post(faq.path("entries"), {"mode": "append", "entries": [row("One")]})
    assert faq.admin.delete(f"knowledge-bases/{faq.faq.uid}").status_code == 200
    assert work_all("faq_import") == 0
    with unscoped("test"):
        assert (FaqImportRun.objects.get().state, FaqEntry.objects.count()) == ("cancelled", 0)


class Killed(BaseException):
    """The process is gone: nothing it does from here on happens."""


@pytest.mark.parametrize("mode", ["append", "replace"])
@pytest.mark.parametrize("at", range(1, 7))
def test_a_worker_killed_anywhere_leaves_every_row_done_once(faq: FaqWorld, monkeypatch: pytest.MonkeyPatch, mode: str, at: int) -> None:
    """The calls of one import are counted; in each run another one kills the worker, before or after its transaction."""
    faq.add("Question 3", "Old", similar_questions=("kept",))
    faq.add("Left over", "Old")
    calls = {"n": 0}
    true_write, true_check = importing._write, importing._check

    def dying(inner: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls["n"] += 1
            if calls["n"] == at and at % 2:
                raise Killed
            inner(*args, **kwargs)
            if calls["n"] == at:
                raise Killed

        return call

    monkeypatch.setattr(importing, "SLICE", 4)
    monkeypatch.setattr(importing, "_write", dying(true_write))
    monkeypatch.setattr(importing, "_check", dying(true_check))
    rows = [row(f"Question {n}", f"A{n}") for n in range(10)] + [row("Question 1"), row("")]
    task = faq.member.post(faq.path("entries"), {"mode": mode, "entries": rows}).json()["data"]["task_id"]
    claim = claim_next(job_kinds.get("faq_import"))
    assert claim is not None
    try:
        work(claim)
    except Killed:
        with unscoped("the lease of a dead worker"):
            FaqImportRun.objects.update(lease_until="2000-01-01T00:00:00Z")
    work_all("faq_import")
    progress = faq.progress(task)
    assert (progress["status"], progress["failed_count"]) == ("completed", 2)
    counted = (progress["added_count"], progress.get("merged_count", 0))
    assert counted == ((9, 1) if mode == "append" else (10, 0))
    questions = sorted(entry["standard_question"] for entry in faq.entries())
    assert questions == sorted([f"Question {n}" for n in range(10)] + (["Left over"] if mode == "append" else []))


def test_a_question_added_while_the_import_ran_fails_its_row_alone(faq: FaqWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    true_check = importing._check

    def check_and_add(work_: Any) -> None:
        true_check(work_)
        faq.add("Question 1")

    monkeypatch.setattr(importing, "_check", check_and_add)
    progress = faq.run_import([row(f"Question {n}") for n in range(3)])
    assert (progress["added_count"], progress["failed_count"]) == (2, 1)
    assert failures(faq, progress)["entries"][0]["reasonCode"] == "changed_meanwhile"


def test_an_import_leaves_a_trace_in_the_activity(faq: FaqWorld) -> None:
    faq.run_import([row("One"), row("")])
    rows = faq.admin.get(f"knowledge-bases/{faq.faq.uid}/activity").json()["data"]
    actions = [each["action"] for each in (rows if isinstance(rows, list) else rows["data"])]
    assert "faq.import_started" in actions and "faq.import_completed" in actions


@pytest.mark.parametrize("kept", [0, 1, 2])
@pytest.mark.parametrize("mode", ["append", "replace"])
def test_a_worker_killed_while_it_keeps_its_verdicts_decides_again_and_alike(
    faq: FaqWorld, monkeypatch: pytest.MonkeyPatch, mode: str, kept: int
) -> None:
    """Some rows know what becomes of them when the worker dies, the rest do not; all are told the same as by one that lived."""
    rows = [
        row("One", "A", similar_questions=["Eins", "one?", "Uno"], negative_questions=["EINS", "Two"]),
        row("One", "again"),
        row("Three", similar_questions=["Uno", "Tres"]),
        row(""),
        {"standard_question": "Flag", "answers": ["A"], "is_enabled": "maybe"},
        row("Old", "B", similar_questions=["Olden"]),
    ]
    for base in (faq.faq, faq.second_faq):
        faq.add("Old", base=base)
    undisturbed = faq.run_import(rows, mode, base=faq.second_faq)
    monkeypatch.setattr(importing, "VERDICTS", 2)
    true_save, calls = importing._save, {"n": 0}

    def dying(given: Any) -> None:
        calls["n"] += 1
        if calls["n"] == kept + 1:
            raise Killed
        true_save(given)

    monkeypatch.setattr(importing, "_save", dying)
    task = faq.member.post(faq.path("entries"), {"mode": mode, "entries": rows}).json()["data"]["task_id"]
    claim = claim_next(job_kinds.get("faq_import"))
    assert claim is not None
    with pytest.raises(Killed):
        work(claim)
    assert (faq.progress(task)["status"], len(faq.entries())) == ("processing", 1), "nothing was taken yet"
    with unscoped("the lease of a dead worker"):
        FaqImportRun.objects.update(lease_until="2000-01-01T00:00:00Z")
    work_all("faq_import")

    def told(progress: dict[str, Any]) -> Any:
        own = ("task_id", "kb_id", "knowledge_id", "created_at", "updated_at", "imported_at", "processing_time", "failed_entries_url")
        same = {name: value for name, value in progress.items() if name not in own}
        for entry in same["success_entries"]:
            entry.pop("seq_id"), entry.pop("tag_id", None)
        return same, failures(faq, progress)

    assert told(faq.progress(task)) == told(undisturbed)
    mine, other = faq.entries(), faq.entries(faq.second_faq)
    texts = ("standard_question", "similar_questions", "negative_questions", "answers", "tag_name", "is_enabled")
    assert [[entry[name] for name in texts] for entry in mine] == [[entry[name] for name in texts] for entry in other]


def test_rows_that_failed_are_a_file_and_the_base_keeps_its_last_result(faq: FaqWorld) -> None:
    progress = faq.run_import(
        [row("One", "A"), row("One", "=1+1", "second", similar_questions=["Eins"], tag_name="T", is_enabled=False), row("Plain", "")]
    )
    assert "failed_entries" not in progress
    assert progress["failed_entries_url"] == f"/api/v1/faq/import/failures/{progress['task_id']}/csv"
    answer = faq.member.get(f"faq/import/failures/{progress['task_id']}/csv")
    assert (answer["Content-Type"], answer["Content-Disposition"]) == (
        "text/csv; charset=utf-8",
        'attachment; filename="faq_import_failures.csv"',
    )
    lines = answer.content.decode("utf-8").split("\n")
    assert lines[0] == "\ufeff错误原因,分类(必填),问题(必填),相似问题(选填-多个用##分隔),反例问题(选填-多个用##分隔)," + (
        "机器人回答(必填-多个用##分隔),是否全部回复(选填-默认FALSE),是否停用(选填-默认FALSE)"
    )
    assert lines[1:] == [
        "Row 1 has the same standard question.,T,One,Eins,,'=1+1##second,true,true",
        "There is no answer.,,Plain,,,,true,false",
        "",
    ]
    refused(faq.outsider.get(f"faq/import/failures/{progress['task_id']}/csv"), 404, 1003)

    def kept() -> Any:
        return faq.member.get(f"knowledge/{progress['knowledge_id']}").json()["data"]["last_faq_import_result"]

    result = kept()
    assert result.pop("imported_at") == progress["imported_at"]
    assert result == {
        "total_entries": 3, "success_count": 1, "failed_count": 2, "partial_failed_count": 0, "skipped_count": 0, "merged_count": 0,
        "added_count": 1, "import_mode": "append", "task_id": progress["task_id"], "display_status": "open",
        "processing_time": progress.get("processing_time", 0), "failed_entries_url": progress["failed_entries_url"],
    }  # fmt: skip
    faq.member.put(faq.path("import/last-result/display"), {"display_status": "close"})
    faq.run_import([row("Two")], dry_run=True)
    assert (kept()["task_id"], kept()["display_status"]) == (progress["task_id"], "close"), "a dry run is no result"


def test_an_import_that_is_under_way_or_was_stopped_names_its_failures_inline(faq: FaqWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row("One", similar_questions=["Eins"]), row("Two", "B", similar_questions=["EINS", "Zwei"]), row("", "C")]
    task = faq.member.post(faq.path("entries"), {"mode": "append", "entries": rows}).json()["data"]["task_id"]
    claim = claim_next(job_kinds.get("faq_import"))
    assert claim is not None
    monkeypatch.setattr(importing, "_write", lambda *_args: (_ for _ in ()).throw(Killed))
    with pytest.raises(Killed):
        work(claim)
    progress = faq.progress(task)
    assert (progress["status"], "failed_entries_url" in progress) == ("processing", False)
    assert progress["failed_entries"] == [
        {
            "index": 1, "reason": "Taken without 1 of its questions, which other entries have already.", "failure_type": "pre_validation",
            "is_partial_failure": True, "standard_question": "Two", "similar_questions": ["Zwei"], "answers": ["B"], "answer_all": True,
            "removed_similar_questions": ["EINS"],
        },
        {
            "index": 2, "reason": "The standard question is blank.", "failure_type": "pre_validation", "standard_question": "",
            "answers": ["C"], "answer_all": True,
        },
    ]  # fmt: skip
