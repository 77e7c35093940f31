"""Files of entries: every encoding and format gives the same rows, and what was exported comes back as it was."""

from __future__ import annotations

import io
import json
from typing import Any

import openpyxl
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.faq.exporting import HEADERS
from apps.faq.files import boolean_of, cell_of, escaped, field_of, texts_of, unescaped
from tests.faq.conftest import FaqWorld
from tests.faq.test_entries_api import refused
from tests.ingestion import builders as make
from tests.support.kit import work_all

GREETING = [(f"问题{n}：如何办理第{n}项业务", f"请到{n}号窗口办理，带上身份证。") for n in range(1, 21)]
HEADER = "分类(必填),问题(必填),相似问题(选填-多个用##分隔),机器人回答(必填-多个用##分隔),是否停用(选填-默认FALSE)"


def send(faq: FaqWorld, name: str, data: bytes, *, tail: str = "import/file", base: Any = None, **fields: Any) -> Any:
    address = f"/api/v1/{faq.path(tail, base)}"
    parts = {"file": SimpleUploadedFile(name, data), **fields}
    return faq.member.client.post(address, parts, headers={"X-Tenant-ID": str(faq.space.pk)})


def preview(faq: FaqWorld, name: str, data: bytes, **fields: Any) -> dict[str, Any]:
    answer = send(faq, name, data, tail="import/preview", **fields)
    assert answer.status_code == 200, answer.content
    return answer.json()["data"]


def imported(faq: FaqWorld, name: str, data: bytes, *, mode: str = "append", base: Any = None, **fields: Any) -> dict[str, Any]:
    answer = send(faq, name, data, mode=mode, base=base, **fields)
    assert answer.status_code == 200, answer.content
    work_all("faq_import")
    return faq.progress(answer.json()["data"]["task_id"])


def export(faq: FaqWorld, kind: str, base: Any = None) -> bytes:
    answer = faq.member.get(faq.path(f"entries/export?format={kind}", base))
    assert answer.status_code == 200, answer.content
    return bytes(answer.content)


@pytest.mark.parametrize("codec", ["gbk", "gb18030", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "big5"])
def test_twenty_rows_are_the_same_in_every_encoding(faq: FaqWorld, codec: str) -> None:
    wanted = GREETING if codec != "big5" else [(_traditional(question), _traditional(answer)) for question, answer in GREETING]
    header = HEADER if codec != "big5" else _traditional(HEADER)
    lines = "\n".join([header, *(f"業務,{question},,{answer},FALSE" for question, answer in wanted)]) + "\n"
    if codec == "gb18030":
        lines += "业务,生僻字㐂𠮷怎么写,,㐂𠮷,FALSE\n"
    data = lines.encode(codec)
    seen = preview(faq, "faq.csv", data)
    assert seen["total"] == (21 if codec == "gb18030" else 20)
    assert (
        seen["encoding"]
        .replace("_", "-")
        .startswith({"gbk": "gb18030", "utf-8-sig": "utf-8"}.get(codec, codec).replace("utf-16-le", "utf-16"))
    )
    assert [column["field"] for column in seen["columns"]] == [
        "tag_name",
        "standard_question",
        "similar_questions",
        "answers",
        "is_disabled",
    ]
    assert imported(faq, "faq.csv", data)["added_count"] == seen["total"]
    found = [(entry["standard_question"], entry["answers"]) for entry in faq.entries()][:20]
    assert found == [(question, [answer]) for question, answer in wanted]


def _traditional(text: str) -> str:
    """What Big5 can hold of it."""
    return text.translate(str.maketrans("问题办务请带证类选个机复业号项认", "問題辦務請帶證類選個機復業號項認"))


def test_a_wrong_guess_is_overridden(faq: FaqWorld) -> None:
    data = "question,answers\nmaña,nono\n".encode("cp1252")
    assert preview(faq, "faq.csv", data, encoding="cp1252")["entries"][0]["standard_question"] == "maña"
    refused(send(faq, "faq.csv", data, tail="import/preview", encoding="klingon"))


def sheet(rows: list[list[Any]]) -> bytes:
    book = openpyxl.Workbook()
    page = book.active
    for row in rows:
        page.append(row)
    book.create_sheet("Second").append(["question", "answers"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_the_first_sheet_of_a_workbook_is_read(faq: FaqWorld) -> None:
    data = sheet(
        [
            ["问题", "机器人回答", "相似问题", "是否停用"],
            ["多行", "第一行\n第二行", "一##二", "是"],
            ["数字", 42, None, False],
            ["日期", "2026-01-31", " ", "否"],
            [None, None, None, None],
        ]
    )
    assert imported(faq, "faq.xlsx", data)["added_count"] == 3
    found = {entry["standard_question"]: entry for entry in faq.entries()}
    assert (found["多行"]["answers"], found["多行"]["similar_questions"]) == (["第一行\n第二行"], ["一", "二"])
    assert [found[name]["is_enabled"] for name in ("多行", "数字", "日期")] == [False, True, True]
    assert found["数字"]["answers"] == ["42"]


def test_formulas_give_their_cached_value_and_never_their_text(faq: FaqWorld) -> None:
    rows = [["question", "answers"], ["cached", "=SUM(40,2)"], ["never", "=SUM(1,1)"], ["error", "=1/0"]]
    data = make.with_cached_value(sheet(rows), "SUM(40,2)", "42")
    data = make.with_cached_value(data, "1/0", "#DIV/0!", "e")
    assert imported(faq, "faq.xlsx", data)["added_count"] == 3
    answers = {entry["standard_question"]: entry["answers"][0] for entry in faq.entries()}
    assert answers["cached"] == "42"
    assert "not calculated" in answers["never"]
    assert answers["error"] == "#DIV/0!"
    assert not [answer for answer in answers.values() if answer.startswith("=")]


def test_names_of_columns_are_known_in_chinese_snake_and_camel_case() -> None:
    for names in (
        HEADERS,
        ("tag_name", "standard_question", "similar_questions", "negative_questions", "answers", "answer_all", "is_disabled"),
    ):
        assert "" not in [field_of(name) for name in names]
    assert [field_of(name) for name in ("standardQuestion", "Similar Questions", "标签", "isEnabled", "備註")] == [
        "standard_question", "similar_questions", "tag_name", "is_enabled", "",
    ]  # fmt: skip


def test_yes_and_no_are_read_in_every_way_people_write_them() -> None:
    assert [boolean_of(each) for each in ("TRUE", "1", "是", "yes", " Y ", True)] == [True] * 6
    assert [boolean_of(each) for each in ("FALSE", "0", "否", "NO", False)] == [False] * 5
    assert [boolean_of(each) for each in ("", "maybe", "2")] == [None] * 3


@pytest.mark.parametrize(
    "texts", [[], ["a"], ["a", "b"], ["## Title\ntext", "b"], ["a#", "#b"], ["#"], ['["x"]'], ["a##b"], ["=1+1"], ["'=1"], ['a,"b"\nc']]
)
def test_a_list_in_a_cell_comes_back_as_it_was(texts: list[str]) -> None:
    assert [text for text in texts_of(unescaped(escaped(cell_of(texts)))) if text] == texts


HARD = [
    {"standard_question": "=HYPERLINK(\"http://x\")", "answers": ["=1+1", "+2", "-3", "@sum"], "tag_name": "+tag"},
    {"standard_question": "'=quoted", "answers": ["'+1"], "similar_questions": ["''-x"], "tag_name": "T"},
    {"standard_question": "Commas, \"quotes\"\nand lines", "answers": ["## Heading\n\n- a\n- b", "two"], "tag_name": "T"},
    {"standard_question": "Off", "answers": ["x"], "is_enabled": False, "is_recommended": True, "answer_strategy": "random"},
    {"standard_question": "𠮷野家", "answers": ["ＡＢＣ", "\tindented"], "negative_questions": ["一", "二#"], "similar_questions": ["#a", "b#"]},
    {"standard_question": "007", "answers": ["1.50"], "similar_questions": ["2026-01-31", "TRUE"], "tag_name": "1"},
]  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "xlsx", "json"])
def test_an_export_gives_the_same_entries_and_the_same_bytes(faq: FaqWorld, kind: str) -> None:
    assert faq.run_import(HARD)["added_count"] == len(HARD)
    first = export(faq, kind)
    assert export(faq, kind) == first
    assert imported(faq, f"faq.{kind}", first, base=faq.second_faq)["added_count"] == len(HARD)
    same = (
        "standard_question",
        "similar_questions",
        "negative_questions",
        "answers",
        "answer_strategy",
        "is_enabled",
        "is_recommended",
        "tag_name",
    )
    there, here = faq.entries(faq.second_faq), faq.entries()
    assert [{name: entry[name] for name in same} for entry in there] == [{name: entry[name] for name in same} for entry in here]
    if kind != "json":  # its ids are numbers of the portal, and differ
        assert export(faq, kind, faq.second_faq) == first
    again = imported(faq, f"faq.{kind}", first, mode="replace")
    assert (again["skipped_count"], again["failed_count"]) == (len(HARD), 0)
    assert export(faq, kind) == first


def test_a_csv_begins_with_a_mark_and_the_contracts_columns(faq: FaqWorld) -> None:
    faq.run_import(HARD[2:4])
    answer = faq.member.get(faq.path("entries/export"))
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="faq_export.csv"'
    text = answer.content.decode("utf-8")
    head, first, *_rest = text.split("\n")
    assert head == "\ufeff" + ",".join(HEADERS)
    assert first.startswith('T,"Commas, ""quotes""')
    assert text.endswith("未分类,Off,,,x,FALSE,TRUE,FALSE\n")
    assert export(faq, "anything") == answer.content
    assert export(faq, "csv", faq.second_faq).decode("utf-8") == "\ufeff" + ",".join(HEADERS) + "\n"


def test_no_cell_of_an_export_is_a_formula(faq: FaqWorld) -> None:
    faq.run_import(HARD)
    rows = export(faq, "csv").decode("utf-8-sig").splitlines()
    assert not [cell for row in rows for cell in row.split(",") if cell.strip('"')[:1] in "=+@" and cell.strip('"')]
    book = openpyxl.load_workbook(io.BytesIO(export(faq, "xlsx")))
    kinds = {cell.data_type for row in book.active.iter_rows() for cell in row if cell.value is not None}
    assert kinds == {"s"}
    assert book.active["B2"].value == '=HYPERLINK("http://x")'


def test_json_is_a_bare_list_without_what_is_empty(faq: FaqWorld) -> None:
    faq.run_import(HARD[3:4])
    (entry,) = json.loads(export(faq, "JSON"))
    assert entry == {
        "id": entry["id"],
        "tag_name": "未分类",
        "standard_question": "Off",
        "answers": ["x"],
        "answer_strategy": "random",
        "is_enabled": False,
        "is_recommended": True,
    }


def test_camel_case_files_of_other_programs_keep_their_flags(faq: FaqWorld) -> None:
    data = [{"standardQuestion": "A", "answers": "x##y", "isEnabled": False}, {"问题": "B", "机器人回答": ["z"], "disabled": "yes"}]
    imported(faq, "faq.json", json.dumps({"entries": data}).encode())
    csv = "standardQuestion,answers,isDisabled\nC,c,TRUE\nD,d,\n"
    imported(faq, "faq.tsv", csv.replace(",", "\t").encode())
    assert [(entry["standard_question"], entry["is_enabled"]) for entry in faq.entries()] == [
        ("A", False),
        ("B", False),
        ("C", False),
        ("D", True),
    ]
    assert faq.entries()[0]["answers"] == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b"name,age\nx,1\n", "no_columns"),
        ("a.csv", b"question,answers\n", "no_rows"),
        ("a.json", b'{"a": 1}', "not_a_list"),
        ("a.json", b"[1, 2", "corrupt"),
        ("a.json", b"[" * 100_000, "too_large"),
        ("a.pdf", b"%PDF-1.4\n%%EOF", "unsupported_type"),
        ("a.xlsx", b"PK\x03\x04nonsense", "corrupt"),
        ("a.csv", b"question,answers\n" + b"q,a\n" * 5001, "too_many_rows"),
        ("a.csv", b"question,answers\n" + b"x" * (10 * 1024 * 1024), "file_too_large"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_imported_say_why(faq: FaqWorld, name: str, data: bytes, reason: str) -> None:
    for tail, fields in (("import/preview", {}), ("import/file", {"mode": "append"})):
        error = refused(send(faq, name, data, tail=tail, **fields))
        assert error["details"]["reason"] == reason
    assert faq.entries() == []


def test_five_thousand_rows_of_a_file_are_seen(faq: FaqWorld) -> None:
    assert preview(faq, "a.csv", b"question,answers\n" + b"q,a\n" * 5000)["total"] == 5000


def test_a_cell_too_long_for_a_spreadsheet_is_said_before_anything_is_lost(faq: FaqWorld) -> None:
    faq.run_import([{"standard_question": "Long", "answers": [f"{n}" + "x" * 7999 for n in range(5)]}])
    assert refused(faq.member.get(faq.path("entries/export?format=xlsx")))["details"]["reason"] == "cell_too_long"
    assert len(export(faq, "csv")) > 40_000
