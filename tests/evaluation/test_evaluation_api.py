"""Sets, runs, results and comparisons over REST."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.common.jobs.claims import claim_next
from apps.common.jobs.models import RunState
from apps.common.jobs.registry import job_kinds
from apps.common.scope import space_scope, unscoped
from apps.evaluation import working
from apps.evaluation.models import EvaluationResult, EvaluationRun
from apps.retrieval.journal import journal
from apps.retrieval.models import RetrievalLog
from tests.evaluation.conftest import PUMP, Lab
from tests.support.chatting import chat_model
from tests.support.kit import work_all

pytestmark = pytest.mark.django_db


def test_a_run_measures_search_and_answer(lab: Lab) -> None:
    run = lab.run(lab.made())
    assert (run["state"], run["done"], run["total"], run["failed"]) == ("done", 3, 3, 0)
    assert run["metrics"]["recall"] == 1.0 and run["metrics"]["mrr"] == 1.0
    assert run["metrics"]["decision"] == 1.0 and run["metrics"]["citation_precision"] == 1.0 and run["metrics"]["overlap"] == 1.0
    first, second, third = lab.results(run["id"])
    assert first["found"][0]["title"] == "传感器-TH01.md" and first["found"][0]["right"] is True
    assert "每季度校准一次" in first["answer"] and first["cited"][0]["right"] is True and first["is_bad"] is False
    assert second["metrics"]["recall1"] == 1.0 and "six months" in second["answer"]
    assert third["metrics"]["recall"] is None and third["metrics"]["decision"] == 1.0 and third["cited"] == []


def test_a_run_without_an_answerer_measures_the_search_alone(lab: Lab) -> None:
    run = lab.run(lab.made(), model_id="")
    assert "recall" in run["metrics"] and "decision" not in run["metrics"]
    assert lab.results(run["id"])[0]["answer"] == "" and lab.results(run["id"])[0]["answer_ms"] is None


def test_what_is_expected_and_not_there_counts_as_not_found_and_is_named(lab: Lab) -> None:
    run = lab.run(lab.made(questions=[{"question": "传感器多久校准一次？", "expected_documents": ["gone.md"]}]))
    (result,) = lab.results(run["id"], only_bad="true")
    assert result["missing"] == ["gone.md"] and result["metrics"]["recall"] == 0.0 and result["is_bad"] is True


def test_a_model_answers_and_its_inventions_are_not_counted_as_cited(lab: Lab) -> None:
    with chat_model(lab, lambda _request: ["校准每季度一次 [1][9]。"]) as (_endpoint, row):
        run = lab.run(lab.made(), model_id=str(row.uid))
    first, _second, third = lab.results(run["id"])
    assert first["answer"] == "校准每季度一次 [1]。" and [cited["title"] for cited in first["cited"]] == ["传感器-TH01.md"]
    assert third["metrics"]["decision"] == 0.0 and third["is_bad"] is True
    assert run["model_id"] == str(row.uid)


def test_a_model_that_says_it_found_nothing_decides_rightly(lab: Lab) -> None:
    with chat_model(lab, lambda _request: ["The sources do not mention this."]) as (_endpoint, row):
        run = lab.run(lab.made(), model_id=str(row.uid))
    assert [result["metrics"]["decision"] for result in lab.results(run["id"])] == [0.0, 0.0, 1.0]


def test_a_model_that_fails_is_told_and_the_built_in_answerer_stands_in(lab: Lab) -> None:
    with chat_model(lab, lambda _request: ["x"]) as (endpoint, row):

        def refuse(_body: object, handler: Any) -> None:
            handler.send_error(401)

        endpoint.behave = refuse
        run = lab.run(lab.made(), model_id=str(row.uid))
    assert run["state"] == "done" and run["failed"] == 2
    assert lab.results(run["id"])[0]["error"].startswith("model_") and "每季度" in lab.results(run["id"])[0]["answer"]


def test_a_run_is_no_turn_of_anybody(lab: Lab) -> None:
    journal.flush()
    with unscoped("test"):
        before = RetrievalLog.objects.count()
    lab.run(lab.made())
    journal.flush()
    with unscoped("test"):
        assert RetrievalLog.objects.count() == before


def test_a_worker_that_dies_loses_nothing_and_no_question_is_asked_twice(lab: Lab, monkeypatch: Any) -> None:
    run_id = lab.started(lab.made())
    asked: list[int] = []
    real = working.measure

    def dying(**values: Any) -> Any:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(values["question"].index)
        return real(**values)

    monkeypatch.setattr(working, "measure", dying)
    claim = claim_next(job_kinds.get("evaluate"))
    assert claim is not None
    with space_scope(lab.space.pk), pytest.raises(KeyboardInterrupt):
        claim.kind.work(claim)
    shown = lab.call("get", f"evaluation/runs/{run_id}").json()["data"]
    assert shown["state"] == "running" and shown["metrics"]["recall"] == 1.0
    with unscoped("test"):
        assert EvaluationResult.objects.count() == 2
        EvaluationRun.objects.update(lease_until="2020-01-01T00:00:00Z")
    asked.clear()
    work_all("evaluate")
    assert asked == [2]
    monkeypatch.undo()
    assert lab.call("get", f"evaluation/runs/{run_id}").json()["data"]["metrics"] == lab.run(lab.made("Again"))["metrics"]


def test_a_run_that_was_stopped_keeps_what_it_has(lab: Lab) -> None:
    run_id = lab.started(lab.made())
    assert lab.call("post", f"evaluation/runs/{run_id}/cancel").json()["data"]["state"] == "cancelled"
    assert lab.call("get", "evaluation", {"task_id": run_id}).json()["data"]["task"]["status"] == 3
    assert lab.call("delete", f"evaluation/runs/{run_id}").json() == {"success": True}
    assert lab.call("get", f"evaluation/runs/{run_id}").status_code == 404


def test_a_base_that_is_deleted_meanwhile_ends_the_run(lab: Lab) -> None:
    run_id = lab.started(lab.made())
    assert lab.call("delete", f"knowledge-bases/{lab.base.uid}").status_code == 200
    work_all("evaluate")
    shown = lab.call("get", f"evaluation/runs/{run_id}").json()["data"]
    assert (shown["state"], shown["reason"]) == ("failed", "deleted")


def test_two_runs_are_compared_question_by_question(lab: Lab) -> None:
    set_id = lab.made()
    before = lab.run(set_id)
    document = next(d for d in lab.call("get", f"knowledge-bases/{lab.base.uid}/knowledge").json()["data"] if d["file_name"] == "pump.md")
    assert lab.call("delete", f"knowledge/{document['id']}").status_code == 200
    after = lab.run(set_id)
    found = lab.call("get", f"evaluation/runs/{after['id']}/compare", {"with": before["id"]}).json()["data"]
    assert found["asked"] == 3 and found["better"] == []
    assert [(row["index"], row["figure"], row["change"]) for row in found["worse"]] == [(1, "decision", -1.0)]
    assert found["figures"]["recall"] == [1.0, 0.5]
    other = lab.run(lab.made("Other"))
    refused = lab.call("get", f"evaluation/runs/{after['id']}/compare", {"with": other["id"]})
    assert refused.status_code == 400 and refused.json()["error"]["details"]["field"] == "with"


def test_the_contracts_routes(lab: Lab) -> None:
    made = lab.call("post", "evaluation", {"dataset_id": "default", "knowledge_base_id": str(lab.base.uid)})
    assert made.status_code == 200
    task = made.json()["data"]["task"]
    assert (task["status"], task["tenant_id"], task["finished"]) == (0, lab.space.pk, 0)
    work_all("evaluate")
    detail = lab.call("get", "evaluation", {"task_id": task["id"]}, client=lab.member).json()["data"]
    assert detail["task"]["status"] == 2 and detail["task"]["finished"] == detail["task"]["total"] == 2
    assert detail["params"]["knowledge_base_ids"] == [str(lab.base.uid)]
    assert set(detail["metric"]["retrieval_metrics"]) == {"precision", "recall", "ndcg3", "ndcg10", "mrr", "map"}
    assert set(detail["metric"]["generation_metrics"]) == {"bleu1", "bleu2", "bleu4", "rouge1", "rouge2", "rougel"}
    assert detail["metric"]["retrieval_metrics"]["recall"] == 1.0
    again = lab.call("post", "evaluation", {}).json()["data"]["task"]
    assert again["dataset_id"] == task["dataset_id"]
    assert lab.call("get", "evaluation").status_code == 400
    assert lab.call("get", "evaluation", {"task_id": "nonsense"}).status_code == 404
    assert lab.call("post", "evaluation", {}, client=lab.member).status_code == 403


def _file(lab: Lab, name: str, content: str | bytes) -> Any:
    data = content.encode() if isinstance(content, str) else content
    return lab.client.post(
        "/api/v1/evaluation/sets/file",
        {"file": SimpleUploadedFile(name, data)},
        headers={"X-Tenant-ID": str(lab.space.pk), "Accept-Language": "en"},
    )


def test_a_file_of_json_lines(lab: Lab) -> None:
    lines = ['{"question": "A?", "expected_documents": "a.md"}', "", '{"query": "B?", "answers": ["x", "y"]}']
    made = _file(lab, "mine.jsonl", "\ufeff" + "\n".join(lines))
    assert made.status_code == 201 and made.json()["data"]["name"] == "mine" and made.json()["data"]["questions"] == 2
    items = lab.call("get", f"evaluation/sets/{made.json()['data']['id']}").json()["data"]["items"]
    assert items[0] == {"question": "A?", "expected_documents": ["a.md"], "expected_passages": [], "expected_answer": []}
    assert items[1]["expected_answer"] == ["x", "y"]


def test_a_csv_of_another_encoding_with_chinese_heads(lab: Lab) -> None:
    made = _file(lab, "集.csv", "问题,期望文档,期望答案\r\n多久校准？,a.md##b.md,每季度\r\n".encode("gb18030"))
    items = lab.call("get", f"evaluation/sets/{made.json()['data']['id']}").json()["data"]["items"]
    assert items == [
        {"question": "多久校准？", "expected_documents": ["a.md", "b.md"], "expected_passages": [], "expected_answer": ["每季度"]}
    ]


def test_every_wrong_row_is_named_and_nothing_is_stored(lab: Lab) -> None:
    rows = ['{"question": "A?"}', "{oops", '{"question": ""}', '{"question": "A?"}', '{"question": "C?", "expected_documents": [1]}', "[]"]
    refused = _file(lab, "bad.jsonl", "\n".join(rows))
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert [(row["row"], row["field"]) for row in error["details"]["rows"]] == [
        (2, "row"),
        (3, "question"),
        (4, "question"),
        (5, "expected_documents"),
        (6, "row"),
    ]
    assert error["message"] == "Row 2, row: This line is not JSON. Each line is one object."
    assert lab.call("get", "evaluation/sets").json()["total"] == 0


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", "\n", "There is no question in it. Each row needs a `question`."),
        ("a.csv", "name,answer\n1,2\n", "The first row has to name the columns; one of them is `question`. It has: name, answer."),
        ("a.csv", 'question\n"open', "The file is not readable as CSV: unexpected end of data."),
        ("a.jsonl", b"\xff\xff\xff\x00", "The text of the file cannot be read. Save it as UTF-8."),
        (
            "a.jsonl",
            "\n".join(json.dumps({"question": f"{n}?"}) for n in range(5001)),
            "There are 5001 questions; a set has at most 5000. Split it.",
        ),
    ],
)
def test_files_that_are_no_question_set(lab: Lab, name: str, content: str | bytes, said: str) -> None:
    refused = _file(lab, name, content)
    assert refused.status_code == 400 and refused.json()["error"]["message"] == said


def test_a_name_is_taken_once_and_a_set_goes_with_its_runs(lab: Lab) -> None:
    set_id = lab.made()
    assert lab.call("post", "evaluation/sets", {"name": "Manuals", "questions": [{"question": "A?"}]}).status_code == 409
    run_id = lab.started(set_id)
    assert lab.call("delete", f"evaluation/sets/{set_id}").status_code == 409
    work_all("evaluate")
    assert lab.call("delete", f"evaluation/sets/{set_id}").status_code == 200
    assert lab.call("get", f"evaluation/runs/{run_id}").status_code == 404
    with unscoped("test"):
        assert EvaluationResult.objects.count() == 0


def test_a_set_drawn_from_a_base_asks_what_its_passages_answer(lab: Lab) -> None:
    made = lab.call("post", "evaluation/sets/draw", {"knowledge_base_id": str(lab.base.uid), "name": "Drawn"}).json()["data"]
    items = lab.call("get", f"evaluation/sets/{made['id']}").json()["data"]["items"]
    assert len(items) == 2 and items[1]["question"] in PUMP
    assert lab.run(made["id"])["metrics"]["recall1"] == 1.0


def test_five_runs_at_a_time(lab: Lab) -> None:
    set_id = lab.made()
    for _n in range(5):
        lab.started(set_id)
    refused = lab.call("post", "evaluation/runs", {"set_id": set_id, "knowledge_base_id": str(lab.base.uid)})
    assert refused.status_code == 409
    with unscoped("test"):
        assert EvaluationRun.objects.filter(state=RunState.QUEUED).count() == 5
