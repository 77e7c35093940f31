"""The shared sample files and the hostile ones, each through the sandbox, against the facts that belong to them."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.utils import translation

from apps.ingestion.plugins.protocol import ParseFailure, ParseRequest, reason_if_empty
from apps.ingestion.sandbox import parse_file
from apps.knowledge.reasons import reason_of
from tests.ingestion.builders import check_spans

SAMPLES = Path(os.environ.get("KB_SHARED") or Path(__file__).resolve().parents[3] / "shared") / "samples"
pytestmark = pytest.mark.shared


def entries() -> list[Any]:
    """One parameter per expectation; a single one that skips when the samples are not there."""
    if not (SAMPLES / "expected.json").exists():
        return [pytest.param(None, id="no samples")]
    listed = json.loads((SAMPLES / "expected.json").read_text(encoding="utf-8"))
    found = []
    for index, want in enumerate(listed["files"] + listed["uploads"]):
        needs_ocr = want.get("needs") == "ocr" or "ocr_contain" in want
        name = want["file"] + (f" as upload {index}" if "upload_as" in want else "")
        found.append(pytest.param(want, id=name, marks=[pytest.mark.ocr] if needs_ocr else []))
    return found


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_samples", SAMPLES / "check_samples.py")
    if spec is None or spec.loader is None or not (SAMPLES / "check_samples.py").exists():
        pytest.skip(f"no sample files at {SAMPLES}; set KB_SHARED")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def told(reason: str, language: str) -> str:
    """What the portal tells a reader of the reason."""
    words = reason_of(reason)
    with translation.override(language):
        return f"{words.title}: {words.next}"


def outcome(path: Path, name: str, *, ocr: bool) -> dict[str, Any]:
    """What the sandbox makes of the file, as the checker wants it told."""
    start = time.monotonic()
    try:
        document = parse_file(ParseRequest(path, name, ocr=ocr))
    except ParseFailure as failure:
        return {
            "text": None,
            "message": f"{failure.reason}: {failure.message}",
            "seconds": time.monotonic() - start,
            "reason": failure.reason,
        }
    check_spans(document)
    took = time.monotonic() - start
    return {"text": document.text, "seconds": took, "reason": reason_if_empty(document), "encoding": document.encoding} | document.counts


def misunderstood(want: dict[str, Any], got: dict[str, Any], checker: ModuleType) -> list[str]:
    """What is wrong with the words people get, in either language, where the file cannot be read."""
    if got["text"] is not None:
        return []
    said = [dict(got, message=told(got["reason"], language)) for language in ("en", "zh-hans")]
    return [failure for words in said for failure in checker.judge(want, words)[0]]


@pytest.mark.parametrize("want", entries())
def test_sample(want: dict[str, Any] | None, checker: ModuleType) -> None:
    if want is None:
        pytest.skip(f"no sample files at {SAMPLES}; set KB_SHARED")
    name = want.get("upload_as", Path(want["file"]).name)
    got = outcome(SAMPLES / want["file"], name, ocr="ocr_contain" in want)
    failures, remarks, _ = checker.judge(want, got)
    assert failures == []
    assert misunderstood(want, got, checker) == []
    assert remarks == []  # the soft facts hold as well: do not lose them again
    if "encoding" in want:
        same = {"gbk": "gb18030", "gb2312": "gb18030"}
        assert got["encoding"] == same.get(want["encoding"], want["encoding"])


#: How each hostile file ends here: a reason, or "text" when it is harmless once read.
ENDS = {
    "inflating.docx": "too_large", "inflating.xlsx": "too_large", "nested.zip": "unsupported_type", "many-entries.zip": "unsupported_type",
    "escaping.zip": "unsupported_type", "laughs.docx": "unsafe", "outside-entity.docx": "unsafe", "huge-picture.png": "too_large",
    "many-pages.pdf": "too_many_pages", "page-loop.pdf": "corrupt", "deep.html": "text", "deep.eml": "too_large", "one-line.txt": "text", "wide.csv": "too_large",
    "nul-bytes.txt": "text", "broken-utf8.md": "text", "formulas.csv": "text", "script.html": "text", "script.md": "text", "invisible.txt": "text",
    "two-faces.pdf": "unsupported_type",
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (SAMPLES / "make_hostile.py").exists():
        pytest.skip(f"no sample files at {SAMPLES}; set KB_SHARED")
    folder = tmp_path_factory.mktemp("hostile")
    subprocess.run([sys.executable, str(SAMPLES / "make_hostile.py"), "--out", str(folder), "--mib", "64"], check=True, capture_output=True)
    return folder


def test_hostile_files_are_all_known(hostile: Path) -> None:
    listed = json.loads((hostile / "expected.json").read_text(encoding="utf-8"))["files"]
    assert {want["file"] for want in listed} == set(ENDS)


@pytest.mark.parametrize("name", sorted(ENDS))
def test_hostile(name: str, hostile: Path, checker: ModuleType) -> None:
    want = next(w for w in json.loads((hostile / "expected.json").read_text(encoding="utf-8"))["files"] if w["file"] == name)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    got = outcome(hostile / name, name, ocr=False)
    assert checker.judge(want, got)[0] == []
    assert misunderstood(want, got, checker) == []
    assert ("text" if got["text"] is not None else got["reason"]) == ENDS[name]
    assert got["seconds"] < 30
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak == before or peak < 400_000  # kilobytes
