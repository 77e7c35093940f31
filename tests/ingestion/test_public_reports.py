"""Public reports of what went wrong in other portals, each with a small file of its kind, from the upload to what is found and cited."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.utils.translation import override

from apps.common.errors import InvalidInput
from apps.common.scope import space_scope, unscoped
from apps.ingestion.parsed import read_parsed
from apps.ingestion.selectors import document_trace
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import Arrival, document_import_url, document_reparse
from apps.retrieval.search import Hit, Options, Scope, search
from tests.ingestion import builders as make
from tests.ingestion import test_word as word
from tests.support.kit import Kit, work_all

FONT = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Bold.ttc")


@pytest.fixture(autouse=True)
def _words_only(settings: Any) -> None:
    settings.EMBEDDER = "none"


def added(kit: Kit, name: str, data: bytes | str, **arrival: Any) -> Document:
    document = kit.upload(name, data, **arrival)
    work_all()
    return kit.reload(document)


def ends(document: Document) -> tuple[str, str]:
    return document.parse_status, document.reason


def find(kit: Kit, words: str) -> list[Hit]:
    with space_scope(kit.space.pk):
        return list(search(actor=kit.actor, query=words, scope=Scope(kb_uids=(kit.base.uid,)), options=Options(mode="text")).hits)


def text_of(document: Document) -> str:
    parsed = read_parsed(document)
    assert parsed is not None
    return str(parsed["text"])


def pieces(kit: Kit, document: Document) -> list[Chunk]:
    with space_scope(kit.space.pk):
        return list(Chunk.objects.filter(document=document, chunk_type="text").order_by("chunk_index"))


def drawn(text: str, turned: int = 0, size: tuple[int, int] = (1000, 160)) -> bytes:
    """A PNG of a line of Chinese, turned counter-clockwise."""
    if not FONT.is_file():
        pytest.skip("the font that draws Chinese (fonts-noto-cjk) is not installed")
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).text((30, 40), text, fill="black", font=ImageFont.truetype(str(FONT), 44))
    out = io.BytesIO()
    image.rotate(turned, expand=True).save(out, "PNG")
    return out.getvalue()


def pages_of_pictures(*pictures: bytes) -> bytes:
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen import canvas

    out = io.BytesIO()
    page = canvas.Canvas(out)
    for data in pictures:
        picture = ImageReader(io.BytesIO(data))
        width, height = picture.getSize()
        page.setPageSize((width / 2, height / 2))
        page.drawImage(picture, 0, 0, width / 2, height / 2)
        page.showPage()
    page.save()
    return out.getvalue()


# BC-01: hundreds of pages (the kill in the middle and the memory are in tests/process/test_big_files.py)


@pytest.mark.parametrize("ocr", [False, pytest.param(True, marks=pytest.mark.ocr)])
def test_hundreds_of_grey_pages_end_truthfully(kit: Kit, settings: Any, ocr: bool) -> None:
    from PIL import Image

    settings.OCR_ENABLED = ocr
    grey = io.BytesIO()
    Image.new("L", (600, 800), 128).save(grey, "PNG")
    document = added(kit, "grey.pdf", pages_of_pictures(*[grey.getvalue()] * (40 if ocr else 400)))
    assert ends(document) == ("failed", "empty" if ocr else "needs_ocr")
    assert document.chunk_count == 0


# BC-02: fonts without a Unicode map


GARBAGE = ("".join(chr(0xE000 + n) for n in range(60)), "(cid:12)(cid:34)(cid:56)(cid:78)" * 4)


def garbled_pdf() -> bytes:
    """Two pages whose text layer is private-use characters and literal (cid:n), and a readable one; fonts are embedded as reportlab does."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfgen import canvas

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    out = io.BytesIO()
    page = canvas.Canvas(out, pagesize=(595, 842))
    for line in (*GARBAGE, "第三页 正常文字 K-3003"):
        page.setFont("STSong-Light", 12)
        page.drawString(72, 700, line)
        page.showPage()
    page.save()
    return out.getvalue()


@pytest.mark.parametrize("ocr", [False, pytest.param(True, marks=pytest.mark.ocr)])
def test_a_garbled_text_layer_is_never_indexed(kit: Kit, settings: Any, ocr: bool) -> None:
    settings.OCR_ENABLED = ocr
    document = added(kit, "fonts.pdf", garbled_pdf())
    assert document.parse_status == "completed"
    assert find(kit, "K-3003")[0].chunk.positions[0]["page"] == 3
    stored = " ".join(chunk.content for chunk in pieces(kit, document))
    if not ocr:
        assert [(w["code"], w["position"]["page"]) for w in document.warnings if w["code"] == "page_unreadable"] == [
            ("page_unreadable", 1),
            ("page_unreadable", 2),
        ]
        assert "cid:" not in stored
        assert find(kit, "cid:12") == []
    assert not any(0xE000 <= ord(sign) <= 0xF8FF for sign in stored)


# BC-03: a scan


@pytest.mark.ocr
@pytest.mark.parametrize("turned", [0, 90, 270])
def test_a_scan_is_read_and_its_page_cited(kit: Kit, turned: int) -> None:
    sentence = "设备编号 TH-7781 每季度校准一次"
    document = added(kit, "scan.pdf", pages_of_pictures(drawn("第一页 目录"), drawn(sentence, turned)))
    assert ends(document) == ("completed", "")
    hit = find(kit, "TH-7781")[0]
    assert hit.document.pk == document.pk and {"page": 2}.items() <= hit.chunk.positions[-1].items()
    assert "季度校准一次" in hit.chunk.content  # OCR reads this bold font with a doubled 每
    with space_scope(kit.space.pk):
        trace = document_trace(actor=kit.actor, document=document)
    assert {node["name"]: node["status"] for node in trace["trace"]["children"]}["multimodal"] == "done"


def test_a_scan_without_ocr_needs_it_and_completes_once_it_is_there(kit: Kit, settings: Any) -> None:
    settings.OCR_ENABLED = False
    document = added(kit, "scan.pdf", make.scan_pdf(2, "DEVICE TH-7781"))
    assert ends(document) == ("failed", "needs_ocr")
    mixed = added(kit, "mixed.pdf", _mixed())
    assert ends(mixed) == ("completed", "needs_ocr")
    assert [(w["code"], w["count"]) for w in mixed.warnings] == [("needs_ocr", 1)]


def _mixed() -> bytes:
    import pikepdf

    whole = pikepdf.open(io.BytesIO(make.pdf([[(72, 700, "文字页 K-0001")]])))
    whole.pages.extend(pikepdf.open(io.BytesIO(make.scan_pdf(1, "SCAN"))).pages)
    out = io.BytesIO()
    whole.save(out)
    return out.getvalue()


# BC-04: a Word file without body paragraphs

FOOTNOTE = {"word/footnotes.xml": f'<w:footnotes {make.W}><w:footnote w:id="2">{make.paragraph("框内 TX-11")}</w:footnote></w:footnotes>'}
HEADER = {"word/header1.xml": f"<w:hdr {make.W}>{make.paragraph('框内 TX-11')}</w:hdr>"}
REFERENCE = '<w:p><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (word.BOX.format(make.paragraph("框内 TX-11")), {}),
        ("", HEADER),
        (f"<w:tbl><w:tr><w:tc>{make.paragraph('框内 TX-11')}</w:tc></w:tr></w:tbl>", {}),
        (f"<w:sdt><w:sdtContent>{make.paragraph('框内 TX-11')}</w:sdtContent></w:sdt>", {}),
        (REFERENCE, FOOTNOTE),
    ],
    ids=["text box", "header", "one cell", "content control", "footnote"],
)
def test_text_outside_the_body_of_a_word_file_is_found(kit: Kit, body: str, parts: dict[str, str]) -> None:
    document = added(kit, "form.docx", make.docx(body, parts=parts))
    assert ends(document) == ("completed", "")
    assert [hit.document.pk for hit in find(kit, "TX-11")] == [document.pk]


def test_a_word_file_without_any_text_says_so(kit: Kit) -> None:
    assert ends(added(kit, "blank.docx", make.docx("<w:p/>"))) == ("failed", "empty")


# BC-05, BC-06: merged cells, formulas


def test_a_row_under_merged_cells_is_found_with_what_it_belongs_to(kit: Kit) -> None:
    cells = {"A1": "地区", "C1": "金额", "A2": "华东", "B2": "上海", "B3": "南京", "B4": "杭州", "C2": 120, "C3": 80, "C4": 95}
    document = added(kit, "sales.xlsx", make.xlsx(cells, merge=["A1:B1", "A2:A4"], sheet="销售"))
    hit = find(kit, "华东 杭州 金额")[0]
    assert "| 华东 | 杭州 | 95 |" in hit.chunk.content
    assert ends(document) == ("completed", "")
    assert hit.chunk.positions == [{"sheet": "销售", "cells": "A2:C4"}]


def test_a_merged_cell_without_names_cites_the_row(kit: Kit) -> None:
    """Many rows, so that the row is cited by itself and not with the whole table."""
    cells: dict[str, object] = {"A1": "华东", "B1": "上海", "B2": "南京", "B3": "杭州", "C1": 11, "C2": 12, "C3": 13}
    added(kit, "plain.xlsx", make.xlsx(cells, merge=["A1:A3"], sheet="明细"))
    hit = find(kit, "华东 杭州")[0]
    assert "| 华东 | 杭州 | 13 |" in hit.chunk.content
    assert hit.chunk.positions[0]["sheet"] == "明细" and hit.chunk.positions[-1]["cells"].endswith("C3")


def test_formulas_show_values_and_uncached_ones_are_said(kit: Kit) -> None:
    data = make.xlsx({"A1": "项", "B1": "值", "A2": "合计", "B2": "=SUM(1,2)", "A3": "未算", "B3": "=1+1", "A4": "错", "B4": "=1/0"})
    data = make.with_cached_value(make.with_cached_value(data, "SUM(1,2)", "3"), "1/0", "#DIV/0!", "e")
    document = added(kit, "figures.xlsx", data)
    content = find(kit, "合计")[0].chunk.content
    assert [row for row in content.split("\n") if row.startswith(("| 合计", "| 未算", "| 错"))] == [
        "| 合计 | 3 |",
        "| 未算 | 未计算 (not calculated) |",
        "| 错 | #DIV/0! |",
    ]
    assert find(kit, "SUM") == []
    assert [(w["code"], w["position"]["cells"]) for w in document.warnings] == [("formula_not_calculated", "B3")]


# BC-07, BC-08: encodings

QUESTIONS = "问题,答案\n" + "".join(f"第{n}个问题：生僻字㐂和𠮷怎么读？,第{n}个答案：查字典。\n" for n in range(1, 21))
PLAIN = QUESTIONS.replace("㐂", "喜").replace("𠮷", "吉")
TRADITIONAL = "問題,答案\n" + "".join(f"第{n}個問題：設備怎麼校準？,第{n}個答案：查說明書。\n" for n in range(1, 21))
ENCODED = {
    "gbk": (PLAIN, "gb18030"), "gb18030": (QUESTIONS, "gb18030"), "utf-8": (QUESTIONS, "utf-8"), "utf-8-sig": (QUESTIONS, "utf-8-sig"),
    "utf-16-le": (QUESTIONS, "utf-16-le"), "big5": (TRADITIONAL, "big5"),
}  # fmt: skip


class _Files(BaseHTTPRequestHandler):
    answers: dict[str, tuple[str, bytes]] = {}

    def do_GET(self) -> None:
        kind, body = self.answers[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        return


@pytest.fixture
def site(settings: Any) -> Iterator[Any]:
    """`site(path, content type, body)` is the address under which a local server answers so."""
    settings.FETCH_ALLOW = ["127.0.0.1"]
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    Thread(target=server.serve_forever, daemon=True).start()

    def put(path: str, kind: str, body: bytes) -> str:
        _Files.answers[path] = (kind, body)
        return f"http://127.0.0.1:{server.server_port}{path}"

    yield put
    server.shutdown()
    server.server_close()


def imported(kit: Kit, url: str) -> Document:
    with space_scope(kit.space.pk):
        document = document_import_url(actor=kit.actor, base=kit.base, url=url, arrival=Arrival()).document
    work_all()
    return kit.reload(document)


@pytest.mark.parametrize("codec", ENCODED)
def test_one_text_whatever_its_encoding_and_the_way_it_came(kit: Kit, site: Any, codec: str) -> None:
    text, shown = ENCODED[codec]
    rows = [tuple(line.split(",")) for line in text.strip().split("\n")[1:]]
    uploaded = added(kit, "faq.csv", text.encode(codec))
    fetched = imported(kit, site(f"/{codec}.csv", "text/csv", text.encode(codec)))
    assert text_of(uploaded) == text_of(fetched)
    assert [line for line in text_of(uploaded).split("\n")[2:] if line] == [f"| {question} | {answer} |" for question, answer in rows]
    assert uploaded.encoding == fetched.encoding == shown


def test_twelve_bytes_of_gbk_and_one_line_at_the_end_of_a_long_file(kit: Kit) -> None:
    short = added(kit, "short.txt", "安全生产规程".encode("gbk"))
    assert (text_of(short), short.encoding) == ("安全生产规程", "gb18030")
    long = added(kit, "long.txt", b"plain line of a log\n" * 5000 + "末行：传感器超温报警".encode("gbk"))
    assert text_of(long).endswith("末行：传感器超温报警") and long.encoding == "gb18030"
    assert find(kit, "超温报警")[0].document.pk == long.pk


def test_a_wrong_guess_is_put_right_by_hand(kit: Kit) -> None:
    document = added(kit, "latin.txt", "Größe: 5 mm; Öl: nein".encode("cp1252"), process_config={"encoding": "gb18030"})
    assert "Größe" not in text_of(document)
    with space_scope(kit.space.pk):
        document_reparse(actor=kit.actor, document=document, process_config={"encoding": "windows-1252"})
    work_all()
    document = kit.reload(document)
    assert (text_of(document), document.encoding) == ("Größe: 5 mm; Öl: nein", "cp1252")
    assert find(kit, "Größe")[0].document.pk == document.pk


@pytest.mark.parametrize(
    ("header", "meta"),
    [("text/html; charset=gbk", ""), ("text/html", "gbk"), ("text/html; charset=iso-8859-1", "utf-8"), ("text/html", "")],
    ids=["header", "meta", "both wrong", "neither"],
)
def test_a_gbk_web_page_is_right_whatever_it_claims(kit: Kit, site: Any, header: str, meta: str) -> None:
    claim = f'<meta charset="{meta}">' if meta else ""
    body = f"<html><head>{claim}<title>传感器说明</title></head><body><article><h1>传感器说明</h1><p>每季度校准一次，编号 TH-7781。</p>"
    document = imported(kit, site("/page", header, (body + "</article></body></html>").encode("gbk")))
    assert ends(document) == ("completed", "")
    assert (document.title, document.encoding) == ("传感器说明", "gb18030")
    assert "每季度校准一次，编号 TH-7781。" in find(kit, "TH-7781")[0].chunk.content


# BC-10: empty files


def _no_pages() -> bytes:
    import pikepdf

    out = io.BytesIO()
    pikepdf.new().save(out)
    return out.getvalue()


def test_empty_files_are_refused_at_the_door_each_with_its_own_words(kit: Kit) -> None:
    said = {}
    for name, data in (("a.txt", b""), ("b.txt", b"  \n\t \r\n"), ("c.pdf", _no_pages()), ("d.docx", b"")):
        with pytest.raises(InvalidInput) as caught, override("en"):
            kit.upload(name, data)
        with override("en"):
            said[name] = str(caught.value)
    assert said["a.txt"] == said["d.docx"] and len(set(said.values())) == 3
    assert "0 bytes" in said["a.txt"] and "blank space" in said["b.txt"] and "no pages" in said["c.pdf"]
    with unscoped("look"):
        assert Document.objects.count() == 0


# BC-12, BC-13: numbering, tables


def test_an_automatic_number_is_found_and_stands_in_the_heading_path(kit: Kit) -> None:
    clauses = [("总则", "H1"), ("组织", "H1"), ("处罚", "H1"), ("警告", "H2"), ("罚款", "H2")]
    body = "".join(make.paragraph(text, word.style(name)) for text, name in clauses) + make.paragraph("罚款由出纳收取，当日入账。")
    levels = word.numbering(word.level(0, "第%1章", "H1", "chineseCountingThousand"), word.level(1, "第%1.%2条", "H2", more="<w:isLgl/>"))
    document = added(kit, "rules.docx", make.docx(body, styles=word.HEADINGS, numbering=levels))
    hit = find(kit, "第3.2条")[0]
    assert hit.document.pk == document.pk and "罚款由出纳收取" in hit.chunk.content
    assert list(hit.chunk.heading_path) in (["第三章 处罚", "第3.2条 罚款"], ["第三章 处罚"])


def test_every_piece_of_a_long_table_opens_with_its_header(kit: Kit) -> None:
    header = "| 型号 | 功率 | 电压 | 价格 |\n| --- | --- | --- | --- |\n"
    rows = [f"| M-{n} | {n}0 W | {200 + n} V | {n * 7} |" for n in range(1, 201)]
    document = added(kit, "table.md", "# 电机\n\n表 1：电机参数一览\n\n" + header + "\n".join(rows) + "\n")
    table = [chunk for chunk in pieces(kit, document) if "| M-" in chunk.content]
    assert len(table) > 3
    assert all(chunk.content.count("型号 | 功率 | 电压 | 价格") == 1 for chunk in table)
    assert [chunk.content.count("电机参数一览") for chunk in table] == [1] + [0] * (len(table) - 1)
    shown = [line for chunk in table for line in chunk.content.split("\n") if line.startswith("| M-")]
    assert shown == rows
    assert "| M-150 | 1500 W | 350 V | 1050 |" in find(kit, "M-150 电压")[0].chunk.content


# archives, names, active content


def test_an_archive_bomb_inside_a_document_ends_with_its_reason(kit: Kit) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(make.docx(make.paragraph("x")))) as small, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as big:
        for name in small.namelist():
            big.writestr(name, small.read(name) if name != "word/document.xml" else b" " * 300_000_000)
    assert ends(added(kit, "bomb.docx", bomb.getvalue())) == ("failed", "too_large")


def test_entities_and_paths_out_of_an_archive_end_with_their_reason(kit: Kit) -> None:
    laughs = '<!DOCTYPE w [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><w:document/>'
    bad = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(make.docx(make.paragraph("x")))) as small, zipfile.ZipFile(bad, "w") as big:
        for name in small.namelist():
            big.writestr(name, laughs if name == "word/document.xml" else small.read(name))
    assert ends(added(kit, "laughs.docx", bad.getvalue())) == ("failed", "unsafe")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../../../../tmp/evil.txt", "x")
    with pytest.raises(InvalidInput) as caught:
        kit.upload("files.zip", out.getvalue())
    assert caught.value.code == "unsupported_type"


def test_a_file_with_two_faces_is_read_as_what_it_is_and_the_name_is_questioned(kit: Kit) -> None:
    document = added(kit, "report.docx", make.pdf([[(72, 700, "其实是 PDF K-0001")]]))
    assert (*ends(document), document.file_type, document.media_type) == ("completed", "", "pdf", "application/pdf")
    assert [w["code"] for w in document.warnings] == ["type_mismatch"]
    assert find(kit, "K-0001")[0].document.pk == document.pk
