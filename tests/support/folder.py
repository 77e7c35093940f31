"""A folder of real files in Chinese and English, one of each kind, each with a word of its own to be found by."""

from __future__ import annotations

import io
import json
import zipfile
from email.message import EmailMessage

import docx
import openpyxl
from pptx import Presentation
from pptx.util import Inches
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen import canvas

#: file -> (a question, what stands in the passage it must find, where that passage stands)
FACTS: dict[str, tuple[str, str, dict[str, object]]] = {
    "手册/维修手册.pdf": ("QX-7781 扭矩", "QX-7781", {"page": 2}),
    "手册/安装说明.docx": ("泄压", "泄压阀", {}),
    "培训/training.pptx": ("forklift certificate", "forklift", {"slide": 2}),
    "价格/备件价格.xlsx": ("AB-1234/56-X", "AB-1234/56-X", {"sheet": "华东"}),
    "价格/故障代码.csv": ("ERR-4021", "ERR-4021", {}),
    "notes.md": ("what does the gateway log at midnight", "midnight", {}),
    "page.html": ("return period in days", "thirty days", {}),
    "会议.txt": ("交接", "交接班", {}),
    "book.epub": ("lighthouse keeper", "lighthouse", {}),
    "letter.eml": ("invoice 88-2031", "88-2031", {}),
    "config.json": ("max_retry_count", "max_retry_count", {}),
}


def _pdf() -> bytes:
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    out = io.BytesIO()
    page = canvas.Canvas(out)
    for lines in (
        ["维修手册", "第一章 概述", "本手册适用于全部型号。"],
        ["第二章 紧固", "型号 QX-7781 的螺栓扭矩为 45 牛米。", "紧固之后复查一次。"],
    ):
        page.setFont("STSong-Light", 14)
        for number, line in enumerate(lines):
            page.drawString(72, 760 - 30 * number, line)
        page.showPage()
    page.save()
    return out.getvalue()


def _docx() -> bytes:
    document = docx.Document()
    document.add_heading("安装说明", 1)
    document.add_paragraph("安装之前先打开泄压阀，确认压力归零。")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _pptx() -> bytes:
    deck = Presentation()
    for title, text in (("Safety training", "Welcome to the course."), ("Warehouse", "A forklift may be driven only with a certificate.")):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
        slide.shapes.add_textbox(Inches(1), Inches(2), Inches(6), Inches(1)).text_frame.text = text
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def _xlsx() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "华东"
    for row in (["地区", "编号", "价格"], ["上海", "AB-1234/55-X", 120], ["杭州", "AB-1234/56-X", 135]):
        sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _epub() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        )
        archive.writestr(
            "book.opf",
            '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Coast</dc:title><dc:identifier id="id">x</dc:identifier></metadata>'
            '<manifest><item id="one" href="one.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="one"/></spine></package>',
        )
        archive.writestr(
            "one.xhtml",
            '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>One</title></head><body><h1>One</h1>'
            "<p>The lighthouse keeper counted the ships every evening.</p></body></html>",
        )
    return out.getvalue()


def _eml() -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.com", "b@example.com", "Payment"
    message.set_content("Please pay invoice 88-2031 until the end of the month.\n")
    return message.as_bytes()


def files() -> dict[str, bytes]:
    """{path inside the folder: bytes}; every file of FACTS."""
    return {
        "手册/维修手册.pdf": _pdf(),
        "手册/安装说明.docx": _docx(),
        "培训/training.pptx": _pptx(),
        "价格/备件价格.xlsx": _xlsx(),
        "价格/故障代码.csv": "代码,含义,处理\nERR-4020,电压低,检查电源\nERR-4021,过热保护,断电冷却十分钟\n".encode("gbk"),
        "notes.md": b"# Gateway\n\nThe gateway writes its log at midnight and keeps thirty files.\n",
        "page.html": b"<!doctype html><title>Returns</title><h1>Returns</h1><p>Goods may be returned within thirty days of delivery.</p>",
        "会议.txt": "会议纪要\n\n夜班与早班的交接班时间改为七点，值班长签字确认。\n".encode("gb18030"),
        "book.epub": _epub(),
        "letter.eml": _eml(),
        "config.json": json.dumps({"gateway": {"max_retry_count": 5, "host": "10.0.12.7"}}).encode(),
    }


def sign_png(text: str) -> bytes:
    """A picture of a sign with one line of large text."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (900, 260), "white")
    font = ImageFont.truetype("/usr/share/fonts/opentype/noto/NotoSansCJK-Bold.ttc", 96)
    ImageDraw.Draw(image).text((60, 70), text, fill="black", font=font)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
