"""XLS, XLSB and ODS: values as the cells show them, at the places they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingestion import builders as make
from tests.ingestion.spreadsheets import ods_of, xls_of, xlsb_of

SHOWN = ("| 率 | 11.11% |", "| 日 | 2020年1月1日 |", "| 价 | ¥1,234.50 |", "| 整 | 7 |", "| 负 | (1,200) |", "| 码 | 0042 |")
CELLS: dict[tuple[int, int], tuple[str | float, str]] = {
    (1, 1): ("名", "General"), (1, 2): ("值", "General"), (2, 1): ("率", "General"), (2, 2): (0.1111, "0.00%"),
    (3, 1): ("日", "General"), (3, 2): (43831.0, 'yyyy"年"m"月"d"日"'), (4, 1): ("价", "General"), (4, 2): (1234.5, '"¥"#,##0.00'),
    (5, 1): ("整", "General"), (5, 2): (7.0, "General"), (6, 1): ("负", "General"), (6, 2): (-1200.0, "#,##0;(#,##0)"),
    (7, 1): ("码", "General"), (7, 2): (42.0, "0000"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "data"), [("a.xls", xls_of(dict(CELLS))), ("a.xlsb", xlsb_of(CELLS))])
def test_numbers_of_binary_workbooks_are_shown_as_the_cell_shows_them(tmp_path: Path, name: str, data: bytes) -> None:
    document = make.read_bytes(tmp_path, name, data)
    assert "## 表" in document.text and "| 名 | 值 |" in document.text
    assert [row for row in SHOWN if row not in document.text] == []
    assert make.place_of(document, "¥1,234.50").cells == "B5:C5"


def _cell(kind: str, value: str, shown: str, more: str = "") -> str:
    name = {"date": "date-value", "time": "time-value"}.get(kind, "value")
    return f'<table:table-cell office:value-type="{kind}" office:{name}="{value}" {more}><text:p>{shown}</text:p></table:table-cell>'


def _word(text: str) -> str:
    return f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'


def test_cells_of_an_ods_show_what_the_file_says_they_show(tmp_path: Path) -> None:
    rows = [
        _word("名") + _word("值"),
        _word("率") + _cell("percentage", "0.1111", "11.11%"),
        _word("日") + _cell("date", "2020-01-01", "2020年1月1日"),
        _word("价") + _cell("currency", "1234.5", "¥1,234.50"),
        _word("整") + _cell("float", "7", "7"),
        _word("负") + _cell("float", "-1200", "(1,200)"),
        _word("码") + _cell("float", "42", "00<text:span>42</text:span>"),
    ]
    table = '<table:table-row table:number-rows-repeated="1"><table:table-cell table:number-columns-repeated="9"/></table:table-row>'
    table += "".join(f"<table:table-row><table:table-cell/>{row}</table:table-row>" for row in rows)
    document = make.read_bytes(tmp_path, "a.ods", ods_of(table))
    assert [row for row in SHOWN if row not in document.text] == []
    assert make.place_of(document, "¥1,234.50").cells == "B5:C5"


def test_repeated_cells_of_an_ods_are_all_shown_and_comments_are_not(tmp_path: Path) -> None:
    noted = (
        '<table:table-cell office:value-type="percentage" office:value="0.5"><office:annotation><text:p>NOTE-1</text:p></office:annotation>'
        "<text:p>50%</text:p></table:table-cell>"
    )
    table = (
        f"<table:table-row>{_word('a')}{_word('b')}{_word('c')}</table:table-row>"
        f'<table:table-row table:number-rows-repeated="2">{_word("x")}{_cell("percentage", "0.25", "25%", "table:number-columns-repeated=" + chr(34) + "2" + chr(34))}'
        f"</table:table-row><table:table-row>{_word('y')}{noted}{noted}</table:table-row>"
    )
    text = make.read_bytes(tmp_path, "a.ods", ods_of(table)).text
    assert text.count("| x | 25% | 25% |") == 2
    assert "| y | 50% | 50% |" in text and "NOTE-1" not in text


def test_a_formula_of_an_ods_without_a_value_is_said(tmp_path: Path) -> None:
    rows = f'<table:table-row>{_word("合计")}<table:table-cell table:formula="of:=1+1"/></table:table-row>'
    rows += f"<table:table-row>{_word('后')}{_word('x')}</table:table-row>"
    document = make.read_bytes(tmp_path, "a.ods", ods_of(rows))
    assert "未计算 (not calculated)" in document.text
    assert [(w.code, w.position.cells) for w in document.warnings] == [("formula_not_calculated", "B1")]


def test_days_counted_from_1904_and_values_packed_in_hundredths(tmp_path: Path) -> None:
    import io

    import xlwt

    book = xlwt.Workbook()
    book.dates_1904 = True
    sheet = book.add_sheet("S")
    sheet.write(0, 0, "日")
    sheet.write(0, 1, 0.0, xlwt.easyxf(num_format_str="yyyy-mm-dd"))
    sheet.write(1, 0, "价")
    sheet.write(1, 1, 12.34, xlwt.easyxf(num_format_str="0.000"))
    out = io.BytesIO()
    book.save(out)
    text = make.read_bytes(tmp_path, "a.xls", out.getvalue()).text
    assert "1904-01-01" in text and "12.340" in text


@pytest.mark.parametrize("name", ["a.xls", "a.xlsb"])
def test_a_binary_workbook_cut_off_anywhere_is_read_or_refused(tmp_path: Path, name: str) -> None:
    from apps.ingestion.plugins.protocol import ParseFailure

    data = xls_of(dict(CELLS)) if name == "a.xls" else xlsb_of(CELLS)
    for size in range(0, len(data), len(data) // 12):
        try:
            make.read_bytes(tmp_path, name, data[:size])
        except ParseFailure as failure:
            assert failure.reason in ("corrupt", "empty", "unsupported_type")


def test_a_first_column_that_is_empty_does_not_shift_the_cells(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.xlsx", make.xlsx({"B1": "率", "C1": 0.5, "B2": "二", "C2": 1}, formats={"C1": "0.0%"}))
    assert "50.0%" in document.text
    assert make.place_of(document, "二").cells == "B2:C2"
