"""Small files of every format, made in code."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from email.message import EmailMessage
from pathlib import Path

from apps.ingestion.plugins.parsers import parse
from apps.ingestion.plugins.protocol import ParsedDocument, ParseRequest, Position

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def silent(done: int, total: int, unit: str) -> None:
    return None


def read(path: Path, name: str = "", **fields: object) -> ParsedDocument:
    """Parse in this process."""
    return parse(ParseRequest(path, name or path.name, **fields), silent)  # type: ignore[arg-type]


def read_bytes(folder: Path, name: str, data: bytes, **fields: object) -> ParsedDocument:
    path = folder / "upload.bin"
    path.write_bytes(data)
    return read(path, name, **fields)


def place_of(document: ParsedDocument, words: str) -> Position:
    """The position of the narrowest span that holds the words: a table row before its block."""
    at = document.text.index(words)
    for block in document.blocks:
        for start, end, position in block.rows:
            if start <= at < end:
                return position
        if block.start <= at < block.end:
            return block.position
    raise AssertionError(f"{words!r} stands in no block")


def block_of(document: ParsedDocument, words: str):
    at = document.text.index(words)
    return next(b for b in document.blocks if b.start <= at < b.end)


def check_spans(document: ParsedDocument) -> None:
    """Blocks stand in order inside the text, do not overlap, hold something; table rows stand inside their block and complete its header."""
    before = 0
    for block in document.blocks:
        assert before <= block.start < block.end <= len(document.text)
        assert document.text[before : block.start].strip() == ""
        assert document.text[block.start : block.end].strip()
        before = block.end
        if block.kind == "heading":
            assert 1 <= block.level <= 6
            assert document.text[block.start : block.end].startswith("#" * block.level + " ")
            assert "\n" not in document.text[block.start : block.end]
        if block.kind == "table":
            assert (document.text[block.start : block.end] + "\n").startswith(block.header)
            columns = block.header.split("\n")[1].count("---")
            row_before = block.start
            for start, end, _ in block.rows:
                assert row_before <= start < end <= block.end
                row = document.text[start:end]
                assert "\n" not in row and row.replace("\\|", "").count("|") == columns + 1
                row_before = end
    assert document.text[before:].strip() == ""
    assert all(0 <= image.at <= len(document.text) for image in document.images)
    assert not any(c in document.text for c in "\x00\u202e\u200b\ufeff\ufffe")


def pdf(pages: Iterable[Iterable[tuple[float, float, str]]], *, size: int = 12, title: str = "") -> bytes:
    """A PDF of lines (x, y from the bottom, text) per page, in a font that holds Chinese."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfgen import canvas

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    out = io.BytesIO()
    page = canvas.Canvas(out, pagesize=(595, 842))
    if title:
        page.setTitle(title)
    for lines in pages:
        page.setFont("STSong-Light", size)
        for x, y, text in lines:
            page.drawString(x, y, text)
        page.showPage()
    page.save()
    return out.getvalue()


def picture(text: str = "", size: tuple[int, int] = (900, 120)) -> bytes:
    """A PNG, with a line of ASCII text when given."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", size, "white")
    if text:
        ImageDraw.Draw(image).text((20, 30), text, fill="black", font=ImageFont.load_default(40))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def scan_pdf(pages: int = 2, text: str = "") -> bytes:
    """Pages that are only a picture."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen import canvas

    out = io.BytesIO()
    page = canvas.Canvas(out, pagesize=(595, 842))
    for _ in range(pages):
        page.drawImage(ImageReader(io.BytesIO(picture(text))), 40, 700, 500, 67)
        page.showPage()
    page.save()
    return out.getvalue()


def docx(body: str, *, parts: dict[str, str] | None = None, styles: str = "", numbering: str = "") -> bytes:
    """A Word file with this XML inside w:body; `parts` are further files by name."""
    kinds = {"styles": styles, "numbering": numbering}
    overrides, rels = "", ""
    files = dict(parts or {})
    for name, xml in kinds.items():
        if xml:
            files[f"word/{name}.xml"] = f'<?xml version="1.0"?><w:{name} {W}>{xml}</w:{name}>'
    for name in files:
        stem = name.removeprefix("word/").removesuffix(".xml")
        kind = stem.rstrip("0123456789")
        overrides += (
            f'<Override PartName="/{name}" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}+xml"/>'
        )
        rels += f'<Relationship Id="r-{stem}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{stem}.xml"/>'
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<?xml version="1.0"?><Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-'
            'package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" '
            f'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>{overrides}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<?xml version="1.0"?><Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
        )
        archive.writestr(
            "word/_rels/document.xml.rels", f'<?xml version="1.0"?><Relationships xmlns="{package}/relationships">{rels}</Relationships>'
        )
        archive.writestr(
            "word/document.xml",
            f'<?xml version="1.0"?><w:document {W} xmlns:r="{office}" xmlns:v="urn:schemas-microsoft-com:vml" '
            'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
            'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
            f'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><w:body>{body}</w:body></w:document>',
        )
        for name, xml in files.items():
            archive.writestr(name, xml)
    return out.getvalue()


def paragraph(text: str, properties: str = "") -> str:
    return f'<w:p>{f"<w:pPr>{properties}</w:pPr>" if properties else ""}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def xlsx(rows: dict[str, object], *, merge: Iterable[str] = (), formats: dict[str, str] | None = None, sheet: str = "Sheet1") -> bytes:
    """A workbook of one sheet out of cells by name."""
    import openpyxl

    book = openpyxl.Workbook()
    page = book.active
    page.title = sheet
    for name, value in rows.items():
        page[name] = value
    for name, code in (formats or {}).items():
        page[name].number_format = code
    for area in merge:
        page.merge_cells(area)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def with_cached_value(data: bytes, formula: str, value: str, kind: str = "") -> bytes:
    """The workbook with a cached value written beside one formula, as Excel does when it calculates."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                text = part.decode()
                before = f"<f>{formula}</f><v></v>" if f"<f>{formula}</f><v></v>" in text else f"<f>{formula}</f><v />"
                assert before in text
                text = text.replace(before, f"<f>{formula}</f><v>{value}</v>")
                if kind:
                    at = text.rindex("<c ", 0, text.index(f"<f>{formula}</f>"))
                    text = text[:at] + f'<c t="{kind}" ' + text[at + 3 :]
                part = text.encode()
            new.writestr(name, part)
    return out.getvalue()


def pptx() -> bytes:
    """Two slides: title, bullets, a table with a merged cell, a group, notes."""
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "设备巡检"
    first.placeholders[1].text = "每日检查\n每周校准"
    first.notes_slide.notes_text_frame.text = "讲稿：先停机"
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "参数表"
    table = second.shapes.add_table(3, 2, Inches(1), Inches(2), Inches(4), Inches(2)).table
    for r, row in enumerate([["型号", "功率"], ["M-150", "75 kW"], ["", "90 kW"]]):
        for c, text in enumerate(row):
            table.cell(r, c).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    group = second.shapes.add_group_shape()
    box = group.shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1))
    box.text_frame.text = "组内文字"
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def epub() -> bytes:
    """Two chapters whose spine order is not their order in the archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "OEBPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>山海</dc:title>'
            '<dc:language>zh</dc:language></metadata><manifest><item id="b" href="b.xhtml" media-type="application/xhtml+xml"/>'
            '<item id="a" href="a%20a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>',
        )
        page = "<!DOCTYPE html><html xmlns='http://www.w3.org/1999/xhtml'><head><title>{0}</title></head><body><h1>{0}</h1><p>{1}</p></body></html>"
        archive.writestr("OEBPS/b.xhtml", page.format("第二章", "海经"))
        archive.writestr("OEBPS/a a.xhtml", page.format("第一章", "山经"))
    return out.getvalue()


def eml() -> bytes:
    """HTML and plain alternatives, a text attachment, an inline picture."""
    message = EmailMessage()
    message["From"] = "张三 <zhang@example.org>"
    message["To"] = "ops@example.org"
    message["Subject"] = "停机通知 ERR-4021"
    message["Date"] = "Mon, 30 Nov 2026 10:00:00 +0800"
    message.set_content("纯文本正文")
    message.add_alternative("<html><body><p>今晚 <b>22:00</b> 停机</p><img src='cid:logo'></body></html>", subtype="html")
    html_part = message.get_payload()[1]
    html_part.add_related(picture(), "image", "png", cid="<logo>")
    message.add_attachment("附件里的步骤\n第一步".encode(), maintype="text", subtype="plain", filename="步骤.txt")
    message.add_attachment(b"\x00\x01\x02", maintype="application", subtype="octet-stream", filename="固件.bin")
    return message.as_bytes()


def mhtml() -> bytes:
    body = "<html><head><title>存档页</title></head><body><h1>存档页</h1><p>正文一段</p></body></html>".encode("gb18030")
    import base64

    return (
        b"From: <Saved by Blink>\r\nSnapshot-Content-Location: https://example.org/a\r\nSubject: a\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/related; type="text/html"; boundary="b"\r\n\r\n--b\r\nContent-Type: text/html\r\n'
        b"Content-Transfer-Encoding: base64\r\nContent-Location: https://example.org/a\r\n\r\n"
        + base64.encodebytes(body)
        + b"\r\n--b--\r\n"
    )


def html() -> bytes:
    return (
        "<html><head><title>页面标题</title><script>var secret=1</script></head><body><nav>导航</nav><h1>标题</h1>"
        "<p>前<b>中</b><a href='https://example.org/x'>后</a>句</p><table><tr><th rowspan=2>地区</th><th colspan=2>金额</th></tr>"
        "<tr><th>一月</th><th>二月</th></tr><tr><td>华东</td><td>1</td><td>2</td></tr></table></body></html>"
    ).encode()


def ods() -> bytes:
    """One sheet with a merged cell, a date and a percentage."""
    ns = (
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    )
    cell = '<table:table-cell office:value-type="string"{1}><text:p>{0}</text:p></table:table-cell>'
    rows = (
        "<table:table-row>" + cell.format("地区", "") + cell.format("日期", "") + "</table:table-row>",
        "<table:table-row>"
        + cell.format("华东", ' table:number-rows-spanned="2" table:number-columns-spanned="1"')
        + '<table:table-cell office:value-type="date" office:date-value="2026-11-30"><text:p>2026/11/30</text:p></table:table-cell></table:table-row>',
        "<table:table-row><table:covered-table-cell/>" + cell.format("未定", "") + "</table:table-row>",
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "META-INF/manifest.xml",
            '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
            'manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/></manifest:manifest>',
        )
        archive.writestr(
            "content.xml",
            f'<?xml version="1.0"?><office:document-content {ns}><office:body><office:spreadsheet><table:table table:name="表">{"".join(rows)}'
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    return out.getvalue()
