"""`manage.py evaluate` as a build uses it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.evaluation.conftest import QUESTIONS, Lab

pytestmark = pytest.mark.django_db


def _evaluate(lab: Lab, *words: str, **more: Any) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    code = 0
    try:
        call_command("evaluate", "--space", str(lab.space.pk), "--base", str(lab.base.uid), *words, stdout=out, stderr=err, **more)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "manuals.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in QUESTIONS), encoding="utf-8")
    return str(path)


def test_a_build_passes_and_fails_on_figures(lab: Lab, file: str) -> None:
    code, out, _err = _evaluate(
        lab, "--set", file, "--model", "extractive", "--at-least", "recall=1", "--at-least", "overlap=0.9", "--json"
    )
    told = json.loads(out)
    assert code == 0 and told["passed"] is True and told["faults"] == [] and told["metrics"]["recall"] == 1.0 and told["questions"] == 3
    harder = Path(file).with_name("harder.csv")
    harder.write_text("question,expected_documents\nHow often is the red pump serviced?,pump.md##gone.md\n", encoding="utf-8")
    code, out, err = _evaluate(lab, "--set", str(harder), "--at-least", "recall=0.9")
    assert code == 1 and "recall is 0.5000, at least 0.9000 is wanted" in err and "recall5" in out
    code, _out, err = _evaluate(lab, "--set", file, "--at-least", "overlap=0.5")
    assert code == 1 and "overlap was not measured" in err


def test_a_build_fails_when_a_figure_falls_against_an_earlier_run(lab: Lab, file: str) -> None:
    earlier = json.loads(_evaluate(lab, "--set", file, "--json")[1])["run"]
    assert _evaluate(lab, "--set", file, "--against", earlier)[0] == 0
    sets = lab.call("get", "evaluation/sets").json()
    assert sets["total"] == 1, "the same file is the same set"
    document = next(d for d in lab.call("get", f"knowledge-bases/{lab.base.uid}/knowledge").json()["data"] if d["file_name"] == "pump.md")
    lab.call("delete", f"knowledge/{document['id']}")
    code, out, _err = _evaluate(lab, "--set", file, "--against", earlier, "--json")
    assert code == 1 and "recall fell from 1.0000 to 0.5000" in json.loads(out)["faults"]
    assert _evaluate(lab, "--set", file, "--against", earlier, "--tolerance", "0.6")[0] == 0


@pytest.mark.parametrize(
    "words", [("--set", "nowhere"), ("--set", "nowhere", "--at-least", "speed=1"), ("--set", "x", "--at-least", "recall")]
)
def test_what_it_cannot_do_it_says_with_code_2(lab: Lab, words: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as said:
        _evaluate(lab, *words)
    assert said.value.returncode == 2
