"""The pages of evaluations."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.evaluation.conftest import Lab
from tests.support.kit import work_all

pytestmark = pytest.mark.django_db


def _at(lab: Lab, path: str = "") -> str:
    return f"/s/{lab.space.pk}/evaluation{path}"


def _text(answer: Any) -> str:
    return str(answer.content.decode())


def test_an_admin_uploads_a_set_runs_it_and_reads_what_came_of_it(lab: Lab) -> None:
    assert "No question set yet" in _text(lab.client.get(_at(lab)))
    bad = lab.client.post(_at(lab, "/sets/new"), {"file": SimpleUploadedFile("q.jsonl", b'{"question": 1}')})
    assert bad.status_code == 422 and "Row 1" in _text(bad) and "A question is missing." in _text(bad)
    good = b'{"question": "How often is the red pump serviced?", "expected_documents": ["pump.md"]}\n{"question": "Who likes jazz?"}'
    made = lab.client.post(_at(lab, "/sets/new"), {"file": SimpleUploadedFile("q.jsonl", good), "name": "Pumps"})
    assert made.status_code == 302 and "How often is the red pump serviced?" in _text(lab.client.get(made["Location"]))
    set_id = made["Location"].rpartition("/")[2]
    started = lab.client.post(_at(lab, "/runs/new"), {"set": set_id, "base": str(lab.base.uid), "model": "extractive", "note": "first"})
    waiting = _text(lab.client.get(started["Location"]))
    assert "0 of 2 questions" in waiting and 'hx-trigger="every 2s"' in waiting and ">Stop<" in waiting
    work_all("evaluate")
    done = _text(lab.client.get(started["Location"]))
    assert "Recall@10" in done and "<strong>1.000</strong>" in done and "pump.md" in done and ">Stop<" not in done
    assert 'hx-trigger="every 2s"' not in done
    assert "No question here." in _text(lab.client.get(started["Location"] + "?only=bad"))
    again = lab.client.post(_at(lab, "/runs/new"), {"set": set_id, "base": str(lab.base.uid), "model": ""})
    work_all("evaluate")
    compared = _text(lab.client.get(again["Location"] + "/compare", {"with": started["Location"].rpartition("/")[2]}))
    assert "+0.000" in compared and "Over 2 questions that both runs asked." in compared
    listed = _text(lab.client.get(_at(lab)))
    assert "Pumps → " in listed and "first" in listed


def test_what_is_missing_is_said_in_the_dialog(lab: Lab) -> None:
    assert "Choose a file, or a knowledge base" in _text(lab.client.post(_at(lab, "/sets/new"), {}))
    assert "Choose a question set and a knowledge base." in _text(lab.client.post(_at(lab, "/runs/new"), {}))


def test_a_run_is_stopped_and_deleted_and_a_set_with_it(lab: Lab) -> None:
    set_id = lab.made()
    run_id = lab.started(set_id)
    busy = lab.client.post(_at(lab, f"/runs/{run_id}/delete"))
    assert busy.status_code == 409 and "Stop it first" in _text(busy)
    assert "3 questions go, with 1 run" in _text(lab.client.get(_at(lab, f"/sets/{set_id}/delete")))
    assert lab.client.post(_at(lab, f"/sets/{set_id}/delete")).status_code == 409
    assert lab.client.post(_at(lab, f"/runs/{run_id}/stop")).status_code == 302
    assert "Stopped" in _text(lab.client.get(_at(lab, f"/runs/{run_id}")))
    assert lab.client.post(_at(lab, f"/runs/{run_id}/delete")).status_code == 302
    assert lab.client.post(_at(lab, f"/sets/{set_id}/delete")).status_code == 302
    assert "No question set yet" in _text(lab.client.get(_at(lab)))


def test_members_see_neither_the_pages_nor_the_way_there(lab: Lab) -> None:
    assert lab.member.get(_at(lab)).status_code == 403
    home = _text(lab.member.get(f"/s/{lab.space.pk}/"))
    assert f'href="{_at(lab)}"' not in home and f'href="{_at(lab)}"' in _text(lab.client.get(f"/s/{lab.space.pk}/"))
