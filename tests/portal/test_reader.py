"""The document reader: what is highlighted is exactly the passage, wherever it stands, and nothing of a document ever runs."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest
from django.utils import translation

from apps.common.scope import space_scope
from apps.knowledge.models import Chunk, Document
from apps.knowledge.selectors import chunk_get
from apps.knowledge.services import chunk_update, documents_delete
from apps.portal.reader.passages import tidy
from apps.portal.reader.places import place_text as place_text_here
from apps.portal.reader.source import make_source
from tests.support.kit import work_all
from tests.support.library import Library, Runs, bare, chosen_text, pdf_of, slides_of, workbook_of

HTMX = {"HX-Request": "true"}
MANUAL = """# 传感器-温度-TH01 安装说明

安装完成后应在常温下静置三十分钟。snake_case_id 与 a*b*c 保持原样。

## 校准

传感器应**每季度校准一次**。𠮷野家 & <b>标签</b>

- 故障代码 ERR-4021 表示过热
  - 先断电冷却
1. 再复位

| 代码 | 含义 |
|---|---|
| A\\|B-12 | 管道 |
| PPR-9087 | 压力异常 |

> 引用一行
> 再一行

```python
if x < 1: print("hi")
```
"""
LONG = "\n\n".join(f"## 第{n}节\n\n" + f"第{n}节的内容，编号 N-{n:04d}。" * 40 for n in range(1, 61))


def place_text(positions: Any) -> str:
    with translation.override("en"):
        return place_text_here(positions)


def deep_link(library: Library, document: Document, chunk: Chunk, **query: Any) -> str:
    return library.page(library.url(document), chunk=str(chunk.uid), **query)


def assert_exact(library: Library, document: Document, **query: Any) -> None:
    """For every passage: its link highlights its span of the parsed text, no character more or less."""
    text = library.text(document)
    for chunk in library.chunks(document):
        html = deep_link(library, document, chunk, **query)
        assert "".join(chosen_text(html, text).split()) == bare(text[chunk.start_at : chunk.end_at]), chunk.chunk_index
        assert html.count('id="here"') == 1
        assert f'id="passage-{chunk.uid}" data-row data-index="{chunk.chunk_index}"' in html


def test_every_passage_of_a_markdown_file_is_highlighted_exactly(library: Library) -> None:
    document = library.add("手册.md", MANUAL)
    assert_exact(library, document)
    html = library.page(library.url(document))
    assert '<h2 class="doc-block"><span class="run"' in html
    assert "snake_case_id 与 a*b*c 保持原样" in html
    shown = "".join(text for _start, _end, text, _on, _names in Runs(html).found)
    assert "A|B-12" in shown and "𠮷野家 & 标签" in shown
    assert "「" not in shown and "**" not in shown


def test_a_long_text_opens_at_the_part_that_holds_the_passage(library: Library) -> None:
    document = library.add("long.md", LONG)
    chunk = library.chunk_with(document, "N-0055")
    html = deep_link(library, document, chunk)
    text = library.text(document)
    assert "".join(chosen_text(html, text).split()) == bare(text[chunk.start_at : chunk.end_at])
    assert "N-0001" not in html.split('id="passages"')[0]
    first = library.page(library.url(document))
    assert "N-0001" in first.split('id="passages"')[0] and "N-0055" not in first.split('id="passages"')[0]
    more = re.search(r'hx-get="([^"]+more=after)"', first)
    assert more
    part = library.client.get(more[1].replace("&amp;", "&"), headers=HTMX).content.decode()
    assert 'id="part-2"' in part and "<html" not in part


def test_pages_of_a_pdf_and_their_rectangles(library: Library) -> None:
    document = library.add(
        "report.pdf", pdf_of("Alpha page\nfirst code K-0001", "Beta page\nsecond code K-0002", "Gamma page\nthird code K-0003")
    )
    assert_exact(library, document, view="text")
    chunk = library.chunk_with(document, "K-0002")
    html = deep_link(library, document, chunk)
    found = re.search(r'data-highlights="([^"]+)"', html)
    assert found
    boxes = json.loads(found[1].replace("&quot;", '"'))
    text = library.text(document)
    span = text[chunk.start_at : chunk.end_at]
    pages = {n for n, code in ((1, "K-0001"), (2, "K-0002"), (3, "K-0003")) if code in span}
    assert {box["page"] for box in boxes} == pages
    assert all(0 <= box["x"] < box["x"] + box["w"] <= 1 and 0 <= box["y"] < box["y"] + box["h"] <= 1 for box in boxes)
    # a point inside the rectangle of page 2 leads back to the passage
    box = next(box for box in boxes if box["page"] == 2)
    back = library.client.get(library.url(document), {"at": f"2:{box['x'] + box['w'] / 2:.4f}:{box['y'] + box['h'] / 2:.4f}"})
    target = re.search(r"chunk=([0-9a-f-]{36})", back.headers["Location"])
    assert target
    with space_scope(library.space.pk):
        assert "K-0002" in chunk_get(actor=library.actor, chunk_id=target[1]).content
    # without script the page that holds the passage is there as text
    assert "K-0002" in html.split("<noscript>")[1]


def test_the_original_of_a_pdf_comes_in_ranges_from_our_own_address(library: Library) -> None:
    document = library.add("report.pdf", pdf_of("Alpha"))
    found = re.search(r'class="pdf"[^>]*data-src="([^"]+)"', library.page(library.url(document)))
    assert found
    answer = library.client.get(found[1], headers={"Range": "bytes=0-3"})
    assert (answer.status_code, b"".join(answer.streaming_content)) == (206, b"%PDF")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_cells_of_a_sheet_have_their_addresses(library: Library) -> None:
    rows: list[list[Any]] = [["地区", "城市", "金额"], *[["华东", f"城市{n}", 1000 + n] for n in range(2, 260)]]
    document = library.add("表.xlsx", workbook_of(Prices=[["Code", "Price"], ["A-1", 5]], 销售=rows))
    assert_exact(library, document)
    chunk = library.chunk_with(document, "城市200")
    html = deep_link(library, document, chunk)
    assert re.search(r'<td class="grid__no">200</td><td>[^\n]*?华东', html), "the row number beside the row"
    assert '<th class="grid__letter" scope="col">C</th>' in html
    place = place_text(chunk.positions)
    found = re.fullmatch(r"Sheet \S+ A(\d+):C(\d+)", place)
    assert found and int(found[1]) <= 200 <= int(found[2])
    assert '<a class="sheets__item" href=' in html and ">Prices</a>" in html


def test_slides_are_cards(library: Library) -> None:
    document = library.add("deck.pptx", slides_of(("One", "first body"), ("Two", "second body K-77"), ("Three", "third")))
    assert_exact(library, document)
    html = library.page(library.url(document))
    assert html.count('<section class="doc-section doc-section--slide">') == 3
    assert '<div class="doc-section__label">Slide 2</div>' in html


def test_lines_of_a_text_are_numbered(library: Library) -> None:
    document = library.add("server.log", "\n".join(f"2026-01-01 step {n} ok" for n in range(1, 80)))
    assert_exact(library, document)
    html = library.page(library.url(document))
    assert re.search(r'<span class="doc-line__no">42</span><span class="doc-line__text"><span class="run[^>]*>2026-01-01 step 42 ok<', html)
    chunk = library.chunk_with(document, "step 42 ok")
    assert re.fullmatch(r"Lines \d+–\d+", place_text(chunk.positions))


def test_words_that_found_it_are_marked(library: Library) -> None:
    document = library.add("手册.md", MANUAL)
    chunk = library.chunk_with(document, "ERR-4021")
    html = deep_link(library, document, chunk, q="ERR-4021")
    original, passages = html.split('id="passages"')
    assert "<mark>ERR-4021</mark>" in original and "<mark>ERR-4021</mark>" in passages
    text = library.text(document)
    assert "".join(chosen_text(html, text).split()) == bare(text[chunk.start_at : chunk.end_at]), "marks leave the highlight whole"


HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1)) \"quoted' {{ settings.SECRET_KEY }}"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ('"><script>alert(1)<_script>.txt', HOSTILE),
        ("x.csv", f"a,b\n{HOSTILE.replace(',', ' ')},2\n"),
        ("x.json", json.dumps({"<script>alert(1)</script>": HOSTILE})),
        ("x.xlsx", workbook_of(**{"<script>x": [["h", "k"], [HOSTILE, 1]]})),
    ],
)
def test_hostile_names_and_contents_stay_text(library: Library, name: str, data: bytes | str) -> None:
    document = library.add(name, data)
    for tail in ("", "pipeline", "details"):
        html = library.page(library.url(document, tail), q="alert", find="" if tail else "script")
        assert "<script>alert" not in html and "<script>x" not in html
        assert "<img src=x" not in html
        assert 'href="javascript' not in html
    assert_exact(library, document)


def test_the_formatted_view_of_markdown_is_sanitised(library: Library) -> None:
    document = library.write("Note", "# Hi\n\n**bold** <script>alert(1)</script> [x](javascript:alert(1)) [y](https://a.example)\n")
    html = library.page(library.url(document), view="formatted")
    prose = html.split('class="prose')[1].split("</section>")[0]
    assert "<strong>bold</strong>" in prose and 'href="https://a.example"' in prose
    assert "alert(1)" not in prose and "javascript" not in prose


def test_a_web_page_is_shown_formatted_without_anything_that_runs(library: Library) -> None:
    source = (
        "<html><head><title>T</title><script>alert(1)</script></head><body onload='alert(2)'><h1>Pump</h1><p>Checked <b>daily</b>.</p>"
        "<img src='https://elsewhere.example/x.png'><svg onload='alert(3)'></svg><iframe src='https://elsewhere.example'></iframe></body></html>"
    )
    document = library.add("page.html", source)
    assert "view=formatted" in library.page(library.url(document))
    prose = library.page(library.url(document), view="formatted").split('class="prose')[1].split("</section>")[0]
    assert "<b>daily</b>" in prose and "Pump</h1>" in prose
    assert "alert" not in prose and "elsewhere" not in prose and "<svg" not in prose.split("</div>")[0]


def test_the_list_is_filtered_paged_and_leads_to_the_right_page(library: Library) -> None:
    document = library.add("long.md", LONG)
    chunks = library.chunks(document)
    assert len(chunks) > 55
    html = library.page(library.url(document))
    assert html.count("data-row data-index=") == 50
    last = deep_link(library, document, chunks[-1])
    assert f'data-index="{chunks[-1].chunk_index}"' in last and 'data-index="0"' not in last
    narrowed = library.page(library.url(document), find="N-0007")
    wanted = [c for c in chunks if "N-0007" in c.content]
    assert narrowed.count("data-row data-index=") == len(wanted)
    assert "<mark>N-0007</mark>" in narrowed
    assert "No passage fits" in library.page(library.url(document), find="nowhere")
    fragment = library.client.get(library.url(document), {"find": "N-0007"}, headers={**HTMX, "HX-Target": "passages"}).content.decode()
    assert fragment.lstrip().startswith('<section class="passages"')


def test_a_passage_is_edited_and_a_conflict_shows_both_texts(library: Library) -> None:
    document = library.add("手册.md", MANUAL)
    chunk = library.chunk_with(document, "ERR-4021")
    url = library.url(document, f"passages/{chunk.uid}/edit")
    form = library.client.get(url, headers=HTMX).content.decode()
    assert 'name="revision" value="0"' in form and f'data-guard="passage-{chunk.uid}"' in form
    saved = library.client.post(url, {"content": "Mine first", "revision": 0}, headers=HTMX)
    assert saved.status_code == 200 and "Mine first" in saved.content.decode() and "edited" in saved.content.decode()
    late = library.client.post(url, {"content": "Mine second & <b>", "revision": 0}, headers=HTMX)
    text = late.content.decode()
    assert late.status_code == 422
    assert "<del>first</del><ins>second & &lt;b&gt;</ins>" in text.replace("&amp;", "&")
    for way in ("Load theirs, drop mine", "Keep mine on top of theirs", "Copy mine"):
        assert way in text
    assert 'name="revision" value="1"' in text and "Mine second" in text
    assert library.chunks(document)[chunk.chunk_index].content == "Mine first", "nothing was overwritten"
    kept = library.client.post(url, {"content": "Mine second", "revision": 1}, headers=HTMX)
    assert kept.status_code == 200
    assert library.chunks(document)[chunk.chunk_index].content == "Mine second"
    blank = library.client.post(url, {"content": "  ", "revision": 2}, headers=HTMX)
    assert blank.status_code == 422 and "A passage cannot be empty. Turn it off instead." in blank.content.decode()


def test_a_passage_is_turned_off_and_an_earlier_text_comes_back(library: Library) -> None:
    document = library.add("手册.md", MANUAL)
    chunk = library.chunks(document)[0]
    off = library.client.post(library.url(document, f"passages/{chunk.uid}/state"), {"enabled": "0", "revision": 0}, headers=HTMX)
    assert "psg--off" in off.content.decode() and not library.chunks(document)[0].is_enabled
    stale = library.client.post(library.url(document, f"passages/{chunk.uid}/state"), {"enabled": "1", "revision": 0}, headers=HTMX)
    assert stale.status_code == 409 and not library.chunks(document)[0].is_enabled
    with space_scope(library.space.pk):
        chunk_update(actor=library.actor, chunk=chunk, content="changed")
    back = library.client.post(library.url(document, f"passages/{chunk.uid}/revert"), {"revision": 0}, headers=HTMX)
    assert back.status_code == 200
    assert library.chunks(document)[0].content == chunk.content and library.chunks(document)[0].is_enabled
    assert "edited" in back.content.decode()


def test_a_failed_document_says_why_and_what_next(library: Library) -> None:
    document = library.add("broken.pdf", b"%PDF-1.4\nnothing")
    assert document.parse_status == "failed"
    html = library.page(library.url(document))
    assert "The file is damaged" in html and "Open it in its own program, save it again and upload that copy." in html
    pipeline = library.page(library.url(document, "pipeline"))
    assert "Read the file" in pipeline and "waterfall__span--failed" in pipeline and "corrupt" in pipeline


def test_the_pipeline_tells_every_attempt(library: Library) -> None:
    document = library.add("a.txt", "one two three")
    html = library.page(library.url(document, "pipeline"))
    assert "Attempt 1" in html and "passages 1" in html and "reader text" in html
    library.client.post(f"/s/{library.space.pk}/documents/{document.uid}/reparse", headers=HTMX)
    work_all("parse")
    html = library.page(library.url(document, "pipeline"))
    assert "Attempt 2" in html and "attempt=1" in html
    assert "Attempt 1" in library.page(library.url(document, "pipeline"), attempt="1")


def test_a_document_in_flight_asks_for_its_own_news(library: Library) -> None:
    document = library.upload("a.txt", "one two three")
    html = library.page(library.url(document))
    assert 'data-poll="' in html and "Being read" in html
    live = library.client.get(library.url(document, "live"), {"was": "pending"})
    assert "HX-Trigger" not in live.headers
    work_all("parse")
    live = library.client.get(library.url(document, "live"), {"was": "pending"})
    assert json.loads(live.headers["HX-Trigger"]) == {"kb:changed": {}}


def test_deleted_and_foreign_documents_are_not_there(library: Library) -> None:
    document = library.add("a.txt", "one two three")
    stranger = library.person("sam", "member")
    from apps.spaces.models import Membership

    Membership.objects.filter(user__username="sam").delete()
    assert stranger.get(library.url(document)).status_code == 404
    unknown = library.client.get(f"/s/{library.space.pk}/documents/{uuid.uuid4()}/")
    assert unknown.status_code == 404
    gone = library.client.post(f"/s/{library.space.pk}/documents/{document.uid}/delete?reader=1", headers=HTMX)
    assert gone.headers["HX-Redirect"] == f"/s/{library.space.pk}/bases/{library.base.uid}/"
    with space_scope(library.space.pk):
        assert documents_delete(actor=library.actor, base=library.base, documents=[document]).count == 0
    for tail in ("", "pipeline", "details", "live"):
        assert library.client.get(library.url(document, tail)).status_code == 404


def test_a_link_to_a_passage_that_is_gone_says_so(library: Library) -> None:
    document = library.add("a.txt", "one two three")
    html = library.page(library.url(document), chunk=str(uuid.uuid4()))
    assert "The passage of this link is gone" in html and "one two three" in html


def test_details_name_hashes_versions_and_encoding(library: Library) -> None:
    document = library.add("a.txt", "安全生产，人人有责。" * 20)
    html = library.page(library.url(document, "details"))
    assert document.file_hash in html and "UTF-8" in html and "text/plain" in html


def test_positions_in_words() -> None:
    assert place_text([{"page": 12}]) == "Page 12"
    assert place_text([{"page": 12}, {"page": 14}]) == "Pages 12–14"
    assert place_text([{"sheet": "S 1", "cells": "A3:D9"}]) == "Sheet S 1 A3:D9"
    assert place_text([{"slide": 4}]) == "Slide 4"
    assert place_text([{"line": 21, "line_end": 30}]) == "Lines 21–30"
    assert place_text([{"line": 7, "line_end": 7}]) == "Line 7"
    assert place_text([]) == place_text([{}]) == place_text(None) == ""


def test_list_texts_lose_their_marks_but_never_a_word() -> None:
    text = "# Title\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert "".join(piece for piece, _ in tidy(text, ())) == "Title\na | b\n1 | 2"
    assert tidy("## x ERR-1 y", [(5, 10)]) == (("x ", False), ("ERR-1", True), (" y", False))


def test_parts_cover_the_whole_text_in_order() -> None:
    lines = "\n".join(f"| {n} | value {n} |" for n in range(3000))
    text = f"# A\n\n| n | v |\n| --- | --- |\n{lines}\n\n" + "word " * 9000
    table = text.index("| n |")
    end = table + len(f"| n | v |\n| --- | --- |\n{lines}")
    blocks = [
        {"kind": "heading", "start": 0, "end": 3, "position": {}, "level": 1},
        {"kind": "table", "start": table, "end": end, "position": {}},
        {"kind": "paragraph", "start": end + 2, "end": len(text), "position": {}},
    ]
    source = make_source({"text": text, "blocks": blocks})
    assert len(source.parts) > 5
    at = 0
    for part in source.parts:
        assert text[at : part.start].strip() == "" and part.end - part.start < 20_000
        at = part.end
    assert at == len(text)
    assert all(source.part_at(part.start) is part and source.part_at(part.end - 1) is part for part in source.parts)
