"""DOCX: nothing that a reader sees may be lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.ingestion.plugins.parsers.docx_numbering import chinese, show_number
from apps.ingestion.plugins.protocol import ParseFailure
from tests.ingestion import builders as make
from tests.ingestion.builders import W, paragraph

BOX = "<w:p><w:r><w:pict><v:shape><v:textbox><w:txbxContent>{0}</w:txbxContent></v:textbox></v:shape></w:pict></w:r></w:p>"
NEW_BOX = (
    "<w:p><w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wps:wsp><wps:txbx><w:txbxContent>{0}</w:txbxContent></wps:txbx></wps:wsp>"
    "</w:drawing></mc:Choice>{1}</mc:AlternateContent></w:r></w:p>"
)
FALLBACK = "<mc:Fallback><w:pict><v:shape><v:textbox><w:txbxContent>{0}</w:txbxContent></v:textbox></v:shape></w:pict></mc:Fallback>"


@pytest.mark.parametrize(
    "body",
    [
        BOX.format(paragraph("框内 TX-11")),
        NEW_BOX.format(paragraph("框内 TX-11"), FALLBACK.format(paragraph("框内 TX-11"))),
        NEW_BOX.format(paragraph("框内 TX-11"), ""),
        f"<w:tbl><w:tr><w:tc>{paragraph('框内 TX-11')}</w:tc></w:tr></w:tbl>",
        f"<w:sdt><w:sdtContent>{paragraph('框内 TX-11')}</w:sdtContent></w:sdt>",
        "<w:p><m:oMath><m:r><m:t>框内 TX-11</m:t></m:r></m:oMath></w:p>",
    ],
    ids=["text box", "text box twice", "new text box", "one cell", "content control", "equation"],
)
def test_text_outside_paragraphs_is_read_once(body: str, tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.docx", make.docx(body))
    assert document.text.count("框内 TX-11") == 1


def test_headers_footers_and_footnotes(tmp_path: Path) -> None:
    note = '<w:p><w:r><w:t>正文第一句</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:t>接着说</w:t></w:r></w:p>'
    parts = {
        "word/header1.xml": f"<w:hdr {W}>{paragraph('公司机密 HD-1')}</w:hdr>",
        "word/header2.xml": f"<w:hdr {W}>{paragraph('公司机密 HD-1')}</w:hdr>",
        "word/footer1.xml": f"<w:ftr {W}>{paragraph('第 1 页')}</w:ftr>",
        "word/footer2.xml": f"<w:ftr {W}>{paragraph('联系人 FT-2')}</w:ftr>",
        "word/footnotes.xml": f'<w:footnotes {W}><w:footnote w:id="2">{paragraph("脚注 FN-3")}</w:footnote></w:footnotes>',
    }
    document = make.read_bytes(tmp_path, "a.docx", make.docx(note, parts=parts))
    assert document.text == "公司机密 HD-1\n\n正文第一句接着说\n\n[1] 脚注 FN-3\n\n联系人 FT-2"
    assert [b.kind for b in document.blocks] == ["header", "paragraph", "footnote", "footer"]


def level(number: int, text: str, style: str = "", fmt: str = "decimal", more: str = "") -> str:
    link = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{fmt}"/>{link}{more}<w:lvlText w:val="{text}"/></w:lvl>'


def numbering(*levels: str) -> str:
    return (
        f'<w:abstractNum w:abstractNumId="7">{"".join(levels)}</w:abstractNum>'
        '<w:num w:numId="3"><w:abstractNumId w:val="7"/></w:num>'
        '<w:num w:numId="4"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>'
    )


HEADINGS = "".join(
    f'<w:style w:type="paragraph" w:styleId="H{n}"><w:name w:val="heading {n}"/><w:pPr><w:numPr><w:ilvl w:val="{n - 1}"/><w:numId w:val="3"/></w:numPr>'
    f'<w:outlineLvl w:val="{n - 1}"/></w:pPr></w:style>'
    for n in (1, 2)
)


def style(name: str) -> str:
    return f'<w:pStyle w:val="{name}"/>'


def listed(level: int, number: int = 3) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'


def test_automatic_heading_numbers_are_text(tmp_path: Path) -> None:
    body = "".join(
        paragraph(text, style(name))
        for text, name in [("总则", "H1"), ("组织", "H1"), ("处罚", "H1"), ("警告", "H2"), ("罚款", "H2"), ("附则", "H1"), ("解释", "H2")]
    )
    data = make.docx(
        body,
        styles=HEADINGS,
        numbering=numbering(level(0, "第%1章", "H1", "chineseCountingThousand"), level(1, "第%1.%2条", "H2", more="<w:isLgl/>")),
    )
    document = make.read_bytes(tmp_path, "a.docx", data)
    headings = [document.text[b.start : b.end] for b in document.blocks if b.kind == "heading"]
    assert headings == [
        "# 第一章 总则",
        "# 第二章 组织",
        "# 第三章 处罚",
        "## 第3.1条 警告",
        "## 第3.2条 罚款",
        "# 第四章 附则",
        "## 第4.1条 解释",
    ]


def test_list_numbers_restart_and_overrides(tmp_path: Path) -> None:
    body = (
        paragraph("甲", listed(0))
        + paragraph("乙", listed(1))
        + paragraph("丙", listed(1))
        + paragraph("丁", listed(0))
        + paragraph("戊", listed(1))
        + paragraph("己", listed(0, 4))
        + paragraph("关", '<w:numPr><w:numId w:val="0"/></w:numPr>')
    )
    data = make.docx(
        body,
        numbering=numbering(
            level(0, "（%1）", fmt="chineseCounting", more='<w:suff w:val="nothing"/>'), level(1, "%1.%2)", fmt="lowerLetter")
        ),
    )
    text = make.read_bytes(tmp_path, "a.docx", data).text
    assert [line for line in text.split("\n") if line] == ["（一）甲", "一.a) 乙", "一.b) 丙", "（二）丁", "二.a) 戊", "（五）己", "关"]


def test_bullets_stay_bullets(tmp_path: Path) -> None:
    data = make.docx(
        paragraph("苹果", listed(0)) + paragraph("红的", listed(1)),
        numbering=numbering(level(0, "•", fmt="bullet"), level(1, "◦", fmt="bullet")),
    )
    document = make.read_bytes(tmp_path, "a.docx", data)
    assert document.text == "- 苹果\n  - 红的"
    assert [b.kind for b in document.blocks] == ["list"]


@pytest.mark.parametrize(
    ("number", "style", "shown"),
    [
        (10, "chineseCounting", "十"), (21, "japaneseCounting", "二十一"), (105, "chineseCountingThousand", "一百零五"), (4, "upperRoman", "IV"), (28, "lowerLetter", "bb"),
        (3, "decimalEnclosedCircle", "③"), (7, "decimalZero", "07"), (2, "ideographTraditional", "乙"), (12, "chineseLegalSimplified", "壹拾贰"), (5, "none", ""),
    ],
)  # fmt: skip
def test_number_formats(number: int, style: str, shown: str) -> None:
    assert show_number(number, style) == (shown if style != "chineseLegalSimplified" else "拾贰")


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "零"), (11, "十一"), (20, "二十"), (110, "一百一十"), (1001, "一千零一"), (10_010, "一万零一十")]
)
def test_chinese_numbers(number: int, shown: str) -> None:
    assert chinese(number) == shown


def test_title_style_and_tables_with_merged_cells(tmp_path: Path) -> None:
    cell = "<w:tc><w:tcPr>{1}</w:tcPr>{0}</w:tc>"
    rows = [
        cell.format(paragraph("地区"), "") + cell.format(paragraph("数据"), '<w:gridSpan w:val="2"/>'),
        cell.format(paragraph("华东"), '<w:vMerge w:val="restart"/>')
        + cell.format(paragraph("上海"), "")
        + cell.format(paragraph("12"), ""),
        cell.format("<w:p/>", "<w:vMerge/>") + cell.format(paragraph("杭州|西湖"), "") + cell.format(paragraph("8"), ""),
    ]
    table = "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in rows) + "</w:tbl>"
    styles = '<w:style w:type="paragraph" w:styleId="a5"><w:name w:val="Title"/></w:style>'
    document = make.read_bytes(tmp_path, "a.docx", make.docx(paragraph("年度报告", style("a5")) + table, styles=styles))
    assert document.title == "年度报告"
    assert document.text == "# 年度报告\n\n| 地区 | 数据 | 数据 |\n| --- | --- | --- |\n| 华东 | 上海 | 12 |\n| 华东 | 杭州\\|西湖 | 8 |"


def test_words_are_whole_however_they_are_formatted(tmp_path: Path) -> None:
    body = "<w:p><w:r><w:t>编号</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>PPR_90*</w:t></w:r><w:r><w:rPr><w:i/></w:rPr><w:t>87</w:t></w:r></w:p>"
    assert make.read_bytes(tmp_path, "a.docx", make.docx(body)).text == "编号PPR_90*87"


def test_an_empty_document_is_a_result(tmp_path: Path) -> None:
    assert make.read_bytes(tmp_path, "a.docx", make.docx("<w:p/>")).text == ""


def test_a_damaged_main_part_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, "a.docx", make.docx("<w:p><w:r>"))
    assert caught.value.reason == "corrupt"


def test_entities_are_refused(tmp_path: Path) -> None:
    import io
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(make.docx(paragraph("x")))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "word/document.xml":
                data = data.replace(b"<w:document", b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><w:document', 1)
            new.writestr(name, data)
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, "a.docx", out.getvalue())
    assert caught.value.reason == "unsafe"


def test_pictures_come_out_with_their_place(tmp_path: Path) -> None:
    import io

    import docx

    document = docx.Document()
    document.add_paragraph("图前")
    document.add_picture(io.BytesIO(make.picture()))
    document.add_paragraph("图后")
    out = io.BytesIO()
    document.save(out)
    read = make.read_bytes(tmp_path, "a.docx", out.getvalue())
    assert [(i.media_type, i.data[:4]) for i in read.images] == [("image/png", b"\x89PNG")]
    assert read.text.index("图前") < read.images[0].at <= read.text.index("图后")
