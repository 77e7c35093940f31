"""Spreadsheets and CSV: shown values, merged cells, formulas, hidden sheets, cells to cite."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from apps.ingestion.plugins.parsers.delimited import column_letters, find_delimiter
from apps.ingestion.plugins.parsers.number_formats import general, show
from apps.ingestion.plugins.protocol import ParseFailure
from tests.ingestion import builders as make


def test_merged_cells_are_filled_and_rows_cite_their_cells(tmp_path: Path) -> None:
    cells = {"A1": "地区", "C1": "金额", "A2": "华东", "B2": "上海", "C2": 120, "B3": "南京", "C3": 80, "B4": "杭州", "C4": 95}
    document = make.read_bytes(tmp_path, "a.xlsx", make.xlsx(cells, merge=["A1:B1", "A2:A4"], sheet="销售"))
    assert (
        document.text
        == "## 销售\n\n| 地区 | 地区 | 金额 |\n| --- | --- | --- |\n| 华东 | 上海 | 120 |\n| 华东 | 南京 | 80 |\n| 华东 | 杭州 | 95 |"
    )
    place = make.place_of(document, "杭州")
    assert (place.sheet, place.cells) == ("销售", "A4:C4")
    assert make.block_of(document, "杭州").position.cells == "A1:C4"
    assert document.counts == {"sheets": 1}


def test_a_table_without_names_gets_column_letters(tmp_path: Path) -> None:
    cells = {"A1": "华东", "B1": "上海", "C1": 1, "B2": "南京", "C2": 2, "B3": "杭州", "C3": 3}
    document = make.read_bytes(tmp_path, "a.xlsx", make.xlsx(cells, merge=["A1:A3"]))
    assert "| A | B | C |\n| --- | --- | --- |\n| 华东 | 上海 | 1 |" in document.text
    assert make.place_of(document, "杭州").cells == "A3:C3"


def test_titles_over_a_table_are_captions_and_two_rows_of_names_are_one(tmp_path: Path) -> None:
    cells = {"A1": "2026 年销售", "A2": "城市", "B2": "第一季度", "B3": "收入", "C3": "成本", "A4": "上海", "B4": 5, "C4": 3}
    document = make.read_bytes(tmp_path, "a.xlsx", make.xlsx(cells, merge=["A1:C1", "A2:A3", "B2:C2"]))
    assert document.text == "## Sheet1\n\n2026 年销售\n\n| 城市 | 第一季度 收入 | 第一季度 成本 |\n| --- | --- | --- |\n| 上海 | 5 | 3 |"
    assert [b.kind for b in document.blocks] == ["heading", "caption", "table"]


def test_formulas_show_their_value_or_say_that_there_is_none(tmp_path: Path) -> None:
    data = make.xlsx({"A1": "项", "B1": "值", "A2": "合计", "B2": "=SUM(1,2)", "A3": "未算", "B3": "=1+1", "A4": "错", "B4": "=1/0"})
    data = make.with_cached_value(data, "SUM(1,2)", "3")
    data = make.with_cached_value(data, "1/0", "#DIV/0!", "e")
    document = make.read_bytes(tmp_path, "a.xlsx", data)
    assert "| 合计 | 3 |" in document.text
    assert "| 未算 | 未计算 (not calculated) |" in document.text
    assert "| 错 | #DIV/0! |" in document.text
    assert "=1+1" not in document.text and "SUM" not in document.text
    assert [(w.code, w.position.cells, w.count) for w in document.warnings] == [("formula_not_calculated", "B3", 1)]


def test_numbers_are_shown_as_the_cell_shows_them(tmp_path: Path) -> None:
    import datetime as dt

    cells = {
        "A1": "名",
        "B1": "值",
        "A2": "率",
        "B2": 1.1111,
        "A3": "日",
        "B3": dt.date(2020, 1, 1),
        "A4": "价",
        "B4": 1234.5,
        "A5": "整",
        "B5": 7.0,
        "A6": "真",
        "B6": True,
    }
    formats = {"B2": "0.00%", "B3": 'yyyy"年"m"月"d"日"', "B4": "¥#,##0.00"}
    text = make.read_bytes(tmp_path, "a.xlsx", make.xlsx(cells, formats=formats)).text
    for row in ("| 率 | 111.11% |", "| 日 | 2020年1月1日 |", "| 价 | ¥1,234.50 |", "| 整 | 7 |", "| 真 | TRUE |"):
        assert row in text


def test_hidden_sheets_are_read_and_said(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "可见"
    book.active["A1"] = "x"
    hidden = book.create_sheet("底稿")
    hidden["A1"] = "隐藏 HID-7"
    hidden.sheet_state = "hidden"
    book.create_sheet("空")
    out = io.BytesIO()
    book.save(out)
    document = make.read_bytes(tmp_path, "a.xlsx", out.getvalue())
    assert make.place_of(document, "HID-7").sheet == "底稿"
    assert [w.code for w in document.warnings] == ["hidden_sheet"]
    assert document.details["sheets"] == [
        {"name": "可见", "hidden": False, "rows": 1},
        {"name": "底稿", "hidden": True, "rows": 1},
        {"name": "空", "hidden": False, "rows": 0},
    ]


def test_a_sheet_that_starts_far_down_cites_the_right_cells(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.xlsx", make.xlsx({"C10": "名称", "D10": "数", "C11": "泵", "D11": 4}))
    assert "| 名称 | 数 |\n| --- | --- |\n| 泵 | 4 |" in document.text
    assert make.place_of(document, "泵").cells == "C11:D11"


def test_a_sheet_that_spans_everything_is_too_large(tmp_path: Path) -> None:
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, "a.xlsx", make.xlsx({"A1": "x", "XFD1048576": "y"}))
    assert caught.value.reason == "too_large"


def test_pipes_and_line_breaks_stay_inside_their_cell(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.xlsx", make.xlsx({"A1": "a|b", "B1": "n", "A2": "两\n行", "B2": "c"}))
    assert "| a\\|b | n |\n| --- | --- |\n| 两 行 | c |" in document.text


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (1.1111, "0.00%", "111.11%"), (0.05, "0%", "5%"), (1234567.891, "#,##0.00", "1,234,567.89"), (-5, "#,##0;(#,##0)", "(5)"), (0, '0;-0;"-"', "-"),
        (5, "000", "005"), (0.5, "#.##", ".5"), (2.5, "0", "3"), (1.005, "0.00", "1.01"), (1500000, '0.0,,"M"', "1.5M"), (12345.678, "0.00E+00", "1.23E+04"),
        (13800138000, "000-0000-0000", "138-0013-8000"), (1.5, "General", "1.5"), (3, '"第"0"号"', "第3号"), (1.11, '"￥"#,##0.00;"￥"\\-#,##0.00', "￥1.11"),
        (-1.11, '"￥"#,##0.00;"￥"\\-#,##0.00', "￥-1.11"), (1.5, '[$€-407]#,##0.00', "€1.50"), (0.00001, "0.00", "0.00"), (-0.001, "0.00", "0.00"), (7, "0.00_ ", "7.00"),
        (43831, "yyyy-mm-dd", "2020-01-01"), (43831.5, "yyyy/m/d h:mm AM/PM", "2020/1/1 12:00 PM"), (43831.0424, "h:mm:ss", "1:01:03"), (1.5, "[h]:mm", "36:00"),
        (43831, 'yyyy"年"m"月"d"日"', "2020年1月1日"), (43831, '[DBNum1][$-804]m"月"d"日"', "1月1日"), (43831, "aaaa", "星期三"), (43831, "d-mmm-yy", "1-Jan-20"),
        (0.7090277, "mm:ss", "01:00"), (43831.0424, '上午/下午h"时"mm"分"', "上午1时01分"), (59, "yyyy-mm-dd", "1900-02-28"), (1, "yyyy-mm-dd", "1900-01-01"),
    ],
)  # fmt: skip
def test_number_formats(value: float, code: str, shown: str) -> None:
    assert show(value, code) == shown


def test_dates_of_the_other_epoch() -> None:
    assert show(42369, "yyyy-mm-dd", date1904=True) == "2020-01-01"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "1"), (0.1 + 0.2, "0.3"), (6779.07, "6779.07"), (-3.0, "-3"), (1e20, "1e+20"), (123456789012.0, "123456789012")],
)
def test_general_numbers(value: float, shown: str) -> None:
    assert general(value) == shown


@pytest.mark.parametrize(("index", "letters"), [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")])
def test_column_letters(index: int, letters: str) -> None:
    assert column_letters(index) == letters


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n3,5;4,5\n", ";"),
        ("a\tb\n1, x\t2\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ('"x,y";2\n"z,w";3\n', ";"),
        ("one\ntwo\n", ","),
    ],
)
def test_delimiters_are_found(text: str, delimiter: str) -> None:
    assert find_delimiter(text) == delimiter


def test_csv_rows_know_their_lines(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.csv", '型号,说明\nM-150,"两行\n说明"\n\nM-160,一行\n'.encode())
    assert document.text == "| 型号 | 说明 |\n| --- | --- |\n| M-150 | 两行 说明 |\n| M-160 | 一行 |"
    assert (make.place_of(document, "M-150").line, make.place_of(document, "M-150").line_end) == (2, 3)
    assert make.place_of(document, "M-160").line == 5
    assert document.encoding == "utf-8" and document.details == {"delimiter": ",", "rows": 2}


def test_csv_without_a_header_row(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.csv", b"1,2\n3,4\n", header_row=False)
    assert document.text == "| A | B |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"


def test_formulas_in_a_csv_are_only_text(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.csv", '姓名,公式\n张三,"=HYPERLINK(""http://127.0.0.1/"",""x"")"\n'.encode())
    assert '| 张三 | =HYPERLINK("http://127.0.0.1/","x") |' in document.text


def test_a_csv_is_as_wide_as_a_sheet_can_be(tmp_path: Path) -> None:
    row = ",".join(["x"] * 16_384)
    document = make.read_bytes(tmp_path, "a.csv", f"{row}\n{row}\n".encode())
    assert document.details["rows"] == 1 and document.text.count("x") == 2 * 16_384
    with pytest.raises(ParseFailure, match="16385 columns: too many, the limit is 16384") as caught:
        make.read_bytes(tmp_path, "b.csv", f"{row}\n{row},x\n".encode())
    assert caught.value.reason == "too_large"


def test_ods(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.ods", make.ods())
    assert "| 地区 | 日期 |\n| --- | --- |\n| 华东 | 2026/11/30 |" in document.text
    assert make.place_of(document, "未定").cells in ("A3:B3", "B3")
