"""PDF: positions, scans, unreadable layers, locks, damage, tables, forms."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from apps.ingestion.plugins.parsers.pdf_lines import is_garbled
from apps.ingestion.plugins.protocol import ParseFailure, reason_if_empty
from tests.ingestion import builders as make


def pike(data: bytes):
    import pikepdf

    return pikepdf.open(io.BytesIO(data))


def saved(pdf, **options: object) -> bytes:
    out = io.BytesIO()
    pdf.save(out, **options)
    return out.getvalue()


def test_a_line_knows_its_page_and_place(tmp_path: Path) -> None:
    pages = [[(72, 742, f"页 {n:04d} 编号 K-{n:04d}")] for n in range(1, 41)]
    document = make.read_bytes(tmp_path, "a.pdf", make.pdf(pages, title="设备手册"))
    place = make.place_of(document, "K-0037")
    assert place.page == 37
    left, top, right, bottom = place.bbox
    assert left == pytest.approx(72 / 595, abs=0.01)
    assert top < (842 - 742) / 842 < bottom + 0.005 and bottom - top < 0.03 and left < right < 0.5
    assert document.counts == {"pages": 40}
    assert document.title == "设备手册"


def test_lines_of_a_chinese_paragraph_are_joined_without_blanks(tmp_path: Path) -> None:
    lines = ["设备在连续运行七百二十小时之后必须停机检查轴承温度并记录全部", "读数，超过限值时应立即更换。"]
    document = make.read_bytes(tmp_path, "a.pdf", make.pdf([[(72, 740 - 16 * i, text) for i, text in enumerate(lines)]]))
    assert "".join(lines) in document.text


def test_headings_come_from_font_size(tmp_path: Path) -> None:
    from reportlab.pdfgen import canvas

    out = io.BytesIO()
    page = canvas.Canvas(out)
    page.setFont("Helvetica-Bold", 22)
    page.drawString(72, 780, "Operating manual")
    page.setFont("Helvetica-Bold", 15)
    page.drawString(72, 740, "Safety rules")
    page.setFont("Helvetica", 10)
    for i in range(12):
        page.drawString(72, 700 - 14 * i, f"Body line number {i} has enough words to weigh more than any heading does.")
    page.save()
    document = make.read_bytes(tmp_path, "a.pdf", out.getvalue())
    assert document.text.startswith("# Operating manual\n\n## Safety rules\n\n")
    assert [b.level for b in document.blocks if b.kind == "heading"] == [1, 2]


def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = [(50, 740 - 14 * i, f"left {i}") for i in range(10)]
    right = [(320, 740 - 14 * i, f"right {i}") for i in range(10)]
    text = make.read_bytes(tmp_path, "a.pdf", make.pdf([left + right])).text
    assert text.index("left 9") < text.index("right 0")


def test_running_heads_stay_once_and_page_numbers_go(tmp_path: Path) -> None:
    pages = [[(72, 815, "机密 设备部"), (72, 500, f"正文内容第{n}部分"), (290, 20, str(n))] for n in range(1, 7)]
    document = make.read_bytes(tmp_path, "a.pdf", make.pdf(pages))
    assert document.text.count("机密 设备部") == 1
    assert [line for line in document.text.split("\n") if line.strip().isdigit()] == []
    assert all(f"正文内容第{n}部分" in document.text for n in range(1, 7))


@pytest.mark.parametrize("garbage", ["(cid:12)(cid:34)(cid:56)", "".join(chr(0xE000 + i) for i in range(40)), "\ufffd" * 30])
def test_garbled_text_is_told(garbage: str) -> None:
    assert is_garbled(garbage)
    assert is_garbled("编号" + garbage)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "设备编号 TH-7781 每季度校准一次",
        "4,755,785.11 | 5,699,227.63 | -16.55%",
        "Größe übermäßig",
        "ゾルゲと尾崎",
        "□ 适用 √ 不适用",
        "\uf0b7 item of a list in Word",
    ],
)
def test_readable_text_is_not_called_garbled(text: str) -> None:
    assert not is_garbled(text)


def test_unreadable_pages_are_named_and_left_out(tmp_path: Path) -> None:
    good = "第三页是正常的中文内容"
    data = make.pdf(
        [[(72, 700, "(cid:12)(cid:34)(cid:56)(cid:78)")], [(72, 700, "(cid:21)(cid:43)"), (72, 680, "(cid:99)")], [(72, 700, good)]]
    )
    document = make.read_bytes(tmp_path, "a.pdf", data)
    assert document.unreadable_pages == [1, 2]
    assert document.text == good
    assert make.place_of(document, good).page == 3
    assert [w.code for w in document.warnings] == ["page_unreadable", "page_unreadable"]


def test_only_unreadable_pages_is_a_reason(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.pdf", make.pdf([[(72, 700, "(cid:12)(cid:34)(cid:56)")]]))
    assert reason_if_empty(document) == "unreadable_text"


def test_a_scan_needs_ocr(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.pdf", make.scan_pdf(2))
    assert document.needs_ocr_pages == [1, 2]
    assert reason_if_empty(document) == "needs_ocr"


def test_a_blank_page_is_not_called_a_scan(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.pdf", make.pdf([[], []]))
    assert document.needs_ocr_pages == [] and reason_if_empty(document) == "empty"


def test_locked_and_unlocked(tmp_path: Path) -> None:
    import pikepdf

    data = make.pdf([[(72, 700, "内部资料 K-0001")]])
    locked = saved(pike(data), encryption=pikepdf.Encryption(user="s3cret", owner="boss"))
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, "a.pdf", locked)
    assert caught.value.reason == "locked"
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, "a.pdf", locked, password="wrong-one")
    assert caught.value.reason == "wrong_password" and "wrong-one" not in caught.value.message
    assert make.read_bytes(tmp_path, "a.pdf", locked, password="s3cret").text == "内部资料 K-0001"
    limited = pikepdf.Permissions(extract=False, modify_other=False, print_highres=False)
    open_to_all = saved(pike(data), encryption=pikepdf.Encryption(user="", owner="boss", allow=limited))
    assert make.read_bytes(tmp_path, "a.pdf", open_to_all).text == "内部资料 K-0001"


@pytest.mark.parametrize("locked", [False, True])
def test_a_damaged_page_is_named_and_the_rest_is_read(locked: bool, tmp_path: Path) -> None:
    import pikepdf

    pdf = pike(make.pdf([[(72, 700, "第一页 K-0001")], [(72, 700, "第二页")], [(72, 700, "第三页 K-0003")]]))
    pdf.pages[1].Contents = pikepdf.Stream(pdf, b"\x9c\x01broken bytes that inflate to nothing" * 3)
    pdf.pages[1].Contents.write(b"x\x9c" + b"\x55\xaa" * 60, filter=pikepdf.Name.FlateDecode)
    keep = {"stream_decode_level": pikepdf.StreamDecodeLevel.none, "compress_streams": False}
    data = saved(pdf, **({"encryption": pikepdf.Encryption(user="pw", owner="o")} if locked else keep))
    document = make.read_bytes(tmp_path, "a.pdf", data, password="pw" if locked else "")
    assert "K-0001" in document.text and "K-0003" in document.text
    found = [(w.code, w.position and w.position.page) for w in document.warnings]
    assert found == [*([("opened_with_password", None)] if locked else []), ("page_damaged", 2)]


def test_too_many_pages_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, "a.pdf", make.pdf([[(72, 700, "x")]] * 6), max_pages=5)
    assert caught.value.reason == "too_many_pages" and caught.value.details == {"pages": 6}


def test_a_ruled_table_becomes_rows_with_merged_cells_filled(tmp_path: Path) -> None:
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.platypus import SimpleDocTemplate, Table

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    rows = [["地区", "城市", "金额"], ["华东", "上海", "1,200"], ["", "南京", "800"], ["", "杭州", "950"]]
    style = [("GRID", (0, 0), (-1, -1), 1, "black"), ("SPAN", (0, 1), (0, 3)), ("FONTNAME", (0, 0), (-1, -1), "STSong-Light")]
    out = io.BytesIO()
    SimpleDocTemplate(out, pagesize=A4).build([Table(rows, style=style)])
    document = make.read_bytes(tmp_path, "a.pdf", out.getvalue())
    assert "| 华东 | 杭州 | 950 |" in document.text
    table = next(b for b in document.blocks if b.kind == "table")
    assert table.header == "| 地区 | 城市 | 金额 |\n| --- | --- | --- |\n"
    assert len(table.rows) == 3 and table.rows[2][2].page == 1
    assert document.text.count("杭州") == 1


def test_filled_form_fields_are_text(tmp_path: Path) -> None:
    from reportlab.pdfgen import canvas

    out = io.BytesIO()
    page = canvas.Canvas(out)
    page.drawString(72, 720, "Request form")
    page.acroForm.textfield(name="serial", value="TH-7781", x=72, y=680, width=200, height=20)
    page.save()
    document = make.read_bytes(tmp_path, "a.pdf", out.getvalue())
    assert "serial: TH-7781" in document.text


def test_a_rotated_page_keeps_boxes_on_the_page(tmp_path: Path) -> None:
    pdf = pike(make.pdf([[(72, 700, "Rotated words")]]))
    pdf.pages[0].Rotate = 90
    document = make.read_bytes(tmp_path, "a.pdf", saved(pdf))
    left, top, right, bottom = make.place_of(document, "Rotated words").bbox
    assert left == pytest.approx(700 / 842, abs=0.02)  # turned clockwise: what was high stands at the right
    assert 0 <= top < bottom <= 1 and bottom - top > right - left


@pytest.mark.ocr
def test_ocr_reads_a_scan_and_names_its_page(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.pdf", make.scan_pdf(1, "Device TH-7781 calibrated"), ocr=True)
    assert "TH-7781" in document.text
    assert make.place_of(document, "TH-7781").page == 1
    assert document.needs_ocr_pages == [] and document.details["ocr_pages"] == [1]
