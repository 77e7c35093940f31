"""Markdown, HTML, mail, books, slides, JSON and plain text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.ingestion.plugins.markdown_blocks import plain_inline
from apps.ingestion.plugins.protocol import ParseFailure
from tests.ingestion import builders as make

MARKDOWN = """---
title: 手册
tags:
  - 运维
  - 设备
---

# 第一章 **总则**

正文 [链接](https://example.org/a_b_c) 和 `ERR-4021` 以及 snake_case_id。
第二行

- 一
  - 二

| 型号 | 功率 |
|:--|--:|
| M-150 | `75` kW |

```python
x = [1](2)  # **kept**
```

> 引文
> 两行

[^1]: 脚注文字
<script>alert('boo')</script>
"""


def test_markdown_blocks_and_lines(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.md", MARKDOWN.encode())
    assert [(b.kind, b.position.line, b.position.line_end) for b in document.blocks] == [
        ("heading", 8, 8), ("paragraph", 10, 11), ("list", 13, 14), ("table", 16, 18), ("code", 20, 22), ("quote", 24, 25), ("footnote", 27, 27),
    ]  # fmt: skip
    assert "# 第一章 总则\n\n正文 链接 和 ERR-4021 以及 snake_case_id。\n第二行\n\n- 一\n  - 二" in document.text
    assert "```python\nx = [1](2)  # **kept**\n```" in document.text
    assert "| M-150 | 75 kW |" in document.text
    assert document.title == "手册"
    assert document.details == {"front_matter": {"title": "手册", "tags": "运维, 设备"}, "links": ["https://example.org/a_b_c"]}
    assert "boo" not in document.text


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("**30 日**内", "30 日内"), ("费用发生日起 **30 日内**报销", "费用发生日起 30 日内报销"), ("a_b_c and _it_", "a_b_c and it"), ("2 * 3 * 4", "2 * 3 * 4"), ("~~旧~~新", "旧新"),
        ("[a](b_(c)_d) e", "a e"), ("![图](x.png)后", "图后"), ("[![i](x)](y) z", "i z"), ("<https://e.org/x>", "https://e.org/x"), ("`a*b*c`", "a*b*c"), ("\\*not\\*", "*not*"),
        ("``a`b``", "a`b"), ("AT&amp;T &lt;x&gt;", "AT&T <x>"), ("[t](javascript:alert(1))", "t"), ("a <b>c</b> <br> d", "a c \n d"), ("x < y > z", "x < y > z"), ("*a* **b *c* d**", "a b c d"),
        ("[ref][1] [x]", "ref [x]"), ("C:\\path\\n", "C:\\path\\n"), ("***very***", "very"), ("__init__.py", "__init__.py"),
    ],
)  # fmt: skip
def test_marks_inside_a_sentence_go(marked: str, plain: str) -> None:
    assert plain_inline(marked) == plain


def test_long_unclosed_marks_do_not_hang() -> None:
    for mark in ("**", "[", "`", "![", "<a ", "_", "[a](", "~~"):
        assert len(plain_inline(mark * 20_000)) > 0


def test_a_big_markdown_table_keeps_every_row(tmp_path: Path) -> None:
    rows = "\n".join(f"| M-{i} | {i} kW | 380 V | ¥{i * 10} |" for i in range(1, 201))
    text = f"表 1 电机价格\n\n| 型号 | 功率 | 电压 | 价格 |\n|---|---|---|---|\n{rows}\n\n之后"
    document = make.read_bytes(tmp_path, "a.md", text.encode())
    table = next(b for b in document.blocks if b.kind == "table")
    assert table.header == "| 型号 | 功率 | 电压 | 价格 |\n| --- | --- | --- | --- |\n"
    assert len(table.rows) == 200
    start, end, place = table.rows[149]
    assert document.text[start:end] == "| M-150 | 150 kW | 380 V | ¥1500 |" and place.line == 154


def test_html_without_furniture(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.html", make.html())
    assert document.title == "页面标题"
    assert document.text == ("# 标题\n\n前中后句\n\n| 地区 | 金额 | 金额 |\n| --- | --- | --- |\n| 地区 | 一月 | 二月 |\n| 华东 | 1 | 2 |")


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<h1>标题</h1><script>alert('boo')</script><img src=x onerror=alert(2)><p>正文</p>", "# 标题\n\n正文"),
        ("<p>a<span style='display:none'>b</span>c</p><p hidden>d</p>", "ac"),
        ("<ul><li>一<ul><li>二</li></ul></li><li>三</li></ul>", "- 一\n  - 二\n- 三"),
        ("<ol><li>一</li><li>二</li></ol>", "1. 一\n2. 二"),
        ("<pre><code class='language-js'>a &lt; b\n  c</code></pre>", "```js\na < b\n  c\n```"),
        ("<blockquote><p>引文</p></blockquote>", "> 引文"),
        ("<table><tr><td><table><tr><td>内</td></tr></table></td><td>外</td></tr></table>", "| 内 |\n| --- |\n\n外"),
        ("<p>snake_case_id * x_y * <code>a_b</code></p>", "snake_case_id * x_y * a_b"),
        ("<?xml version='1.0' encoding='gbk'?><html><body>中</body></html>", "中"),
        ("<p>1 &lt; 2 &amp;&amp; 3 &gt; 2</p>", "1 < 2 && 3 > 2"),
        ("<!-- nothing -->", ""),
    ],
)
def test_html_pieces(markup: str, text: str, tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.html", markup.encode())
    assert document.text == text


@pytest.mark.parametrize("tag", ["div", "blockquote", "span", "ul><li", "table><tr><td", "em"])
def test_deep_nesting_keeps_the_text(tag: str, tmp_path: Path) -> None:
    first = tag.split("><")[0]
    document = make.read_bytes(tmp_path, "a.html", (f"<{tag}>" * 20_000 + "bottom" + f"</{first}>" * 20_000).encode())
    assert "bottom" in document.text


def test_mhtml(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.mhtml", make.mhtml())
    assert (document.title, document.text, document.encoding) == ("存档页", "# 存档页\n\n正文一段", "gb18030")


def test_mail(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.eml", make.eml())
    assert document.title == "停机通知 ERR-4021"
    assert document.text == (
        "# 停机通知 ERR-4021\n\nFrom: 张三 <zhang@example.org>\nTo: ops@example.org\nDate: Mon, 30 Nov 2026 10:00:00 +0800\n\n"
        "今晚 22:00 停机\n\n## 步骤.txt\n\n附件里的步骤\n第一步\n\n## 固件.bin"
    )
    assert make.place_of(document, "第一步").part == "步骤.txt"
    assert [w.code for w in document.warnings] == ["attachment_not_read"]
    assert document.details["attachments"] == ["步骤.txt", "固件.bin"]


def test_mail_nested_too_deep_is_told(tmp_path: Path) -> None:
    head = "".join(f'Content-Type: multipart/mixed; boundary="b{i}"\r\n\r\n--b{i}\r\n' for i in range(2000))
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(
            tmp_path,
            "a.eml",
            f"From: a@b.cn\r\nSubject: x\r\nMIME-Version: 1.0\r\n{head}Content-Type: text/plain\r\n\r\nbottom\r\n".encode(),
        )
    assert caught.value.reason == "too_large"


def test_epub_follows_the_spine(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.epub", make.epub())
    assert document.text == "# 第一章\n\n山经\n\n# 第二章\n\n海经"
    assert (document.title, document.language, document.counts) == ("山海", "zh", {"parts": 2})
    assert make.place_of(document, "海经").part == "第二章"


def test_slides(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.pptx", make.pptx())
    assert document.text.startswith("## 设备巡检\n\n- 每日检查\n- 每周校准\n\n> 讲稿：先停机\n\n## 参数表")
    assert "| M-150 | 75 kW |\n| M-150 | 90 kW |" in document.text
    assert make.place_of(document, "组内文字").slide == 2
    assert make.block_of(document, "先停机").kind == "note"
    assert document.counts == {"slides": 2}


def test_json_paths_and_tables(tmp_path: Path) -> None:
    value = {"title": "配置", "server": {"host": "10.0.12.7", "ports": [80, 443]}, "rows": [{"k": "a", "v": 1}, {"k": "b", "v": None}]}
    document = make.read_bytes(tmp_path, "a.json", json.dumps(value).encode())
    assert (
        document.text
        == "title: 配置\n\nserver.host: 10.0.12.7\nserver.ports: 80, 443\n\n## rows\n\n| k | v |\n| --- | --- |\n| a | 1 |\n| b |  |"
    )
    assert make.place_of(document, "10.0.12.7").part == "server"
    assert document.title == "配置"


def test_json_lines_and_no_json_at_all(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.jsonl", b'{"id": 1}\n{"id": 2, "tag": "x"}\n')
    assert document.text == "id: 1\n\nid: 2\ntag: x" and make.place_of(document, "tag").line == 2
    document = make.read_bytes(tmp_path, "a.json", b"{oops")
    assert document.text == "{oops" and [w.code for w in document.warnings] == ["invalid_json"]


def test_json_nested_beyond_reason(tmp_path: Path) -> None:
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, "a.json", b"[" * 200_000 + b"]" * 200_000)
    assert caught.value.reason == "too_large"


def test_plain_text_lines_and_unseen_characters(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.txt", "第一段\r\n第二行\r\n\r\n可见\u202e文字\u200b结束\x00".encode())
    assert document.text == "第一段\n第二行\n\n可见文字结束"
    assert [(b.position.line, b.position.line_end) for b in document.blocks] == [(1, 2), (4, 4)]


def test_a_log_without_blank_lines_is_cited_narrowly(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.log", "\n".join(f"line {i}" for i in range(1, 201)).encode())
    place = make.place_of(document, "line 150\n")
    assert place.line <= 150 <= place.line_end and place.line_end - place.line < 30
    assert document.text.count("\n") == 199


@pytest.mark.ocr
def test_a_picture_is_read_by_ocr(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.png", make.picture("Device TH-7781"), ocr=True)
    assert "TH-7781" in document.text and document.needs_ocr_pages == []


def test_a_picture_without_ocr_needs_it_and_a_huge_one_is_refused(tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, "a.png", make.picture())
    assert document.needs_ocr_pages == [1] and document.counts == {"pages": 1}
    import struct
    import zlib

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    huge = (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", struct.pack(">IIBBBBB", 40_000, 40_000, 1, 0, 0, 0, 0))
        + part(b"IDAT", zlib.compress(b"\0"))
        + part(b"IEND", b"")
    )
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, "a.png", huge)
    assert caught.value.reason == "too_large"
