"""How documents of each kind are shown in a browser, with names and contents that mean harm."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.people import Person, signed_in
from tests.ingestion.test_images import docx_with, pdf_with, png, pptx_with
from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.process,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium"),
    pytest.mark.skipif(not (ROOT / "staticfiles" / "staticfiles.json").exists(), reason="no collected static files; run `make static`"),
]
HARM = '"><img src=x onerror="window.harmed=1">'
MARKDOWN = f"""# Title {HARM}

- [x] done
- [ ] open

| part | size |
| --- | --- |
| {HARM} | 3 |

Energy is $E = mc^2$.

```python
print("<script>window.harmed=1</script>")
```

```mermaid
graph TD; A-->B
```

<script>window.harmed = 1</script>
[click](javascript:window.harmed=1)
"""


@pytest.fixture(scope="module")
def ada(shared_stack: LiveStack) -> Iterator[Person]:
    with signed_in(shared_stack, "ada") as person:
        yield person


@pytest.fixture(scope="module")
def base(ada: Person) -> str:
    return ada.base("Previews", words_only=True)


@pytest.fixture
def shown(ada: Person, base: str) -> Iterator[Any]:
    """`shown(name, data, query="")`: the reader of a fresh upload; afterwards nothing may have done harm."""

    def show(name: str, data: bytes | str, query: str = "") -> Any:
        uid = ada.rest.upload(base, name, data).body["data"]["id"]
        assert ada.rest.wait(uid, "completed", "failed")["parse_status"] == "completed"
        return ada.open(f"documents/{uid}/{query}")

    yield show
    assert ada.page.evaluate("window.harmed") is None
    # Mermaid measures with styles of its own, which the page refuses; what it drew is shown as a picture, with them.
    assert [fault for fault in ada.faults if "'style-src 'self''" not in fault] == []


def test_word_shows_paragraphs_with_the_picture_between_them(shown: Any) -> None:
    expect, page = playwright.expect, shown(f"a {HARM}.docx", docx_with(png("teal", (300, 200))))
    text = page.locator("#original .rtext")
    expect(text.locator("p.doc-paragraph")).to_have_text(["Before the picture.", "After the picture."])
    picture = text.locator(".doc-figure img")
    expect(picture).to_have_js_property("naturalWidth", 300)
    order = text.locator(".doc-block").evaluate_all("blocks => blocks.map((block) => block.tagName)")
    assert order[-3:] == ["P", "FIGURE", "P"]
    expect(page.locator("#passages .psg__pictures img")).to_have_js_property("naturalWidth", 300)
    expect(page.locator("#passages")).not_to_contain_text("resource://")


def test_slides_are_cards_with_their_numbers(shown: Any) -> None:
    expect, page = playwright.expect, shown("deck.pptx", pptx_with(png("red")))
    cards = page.locator(".doc-section--slide")
    expect(cards).to_have_count(2)
    expect(cards.nth(0)).to_contain_text("Slide 1")
    expect(cards.nth(1)).to_contain_text("Slide number 2")
    expect(cards.nth(1).locator("img")).to_have_js_property("naturalWidth", 120)


def test_sheets_keep_their_names_and_cells_their_places(shown: Any) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "Prices"
    for row in (["part", "size"], [HARM, 3], ["=1+1", 4]):
        first.append(row)
    book.create_sheet("R&D <b>")["C5"] = "deep"
    held = io.BytesIO()
    book.save(held)
    expect, page = playwright.expect, shown("book.xlsx", held.getvalue())
    expect(page.locator(".sheets__item")).to_have_text(["Prices", "R&D <b>"])
    grid = page.locator("#original .grid").first
    expect(grid.locator(".grid__letter")).to_have_text(["A", "B"])
    expect(grid.locator("tbody tr").first).to_contain_text(HARM)
    expect(grid.locator("tbody .grid__no").first).to_have_text("2")
    page.locator(".sheets__item").nth(1).click()
    expect(page.locator("#original .rtext")).to_contain_text("deep")


def test_markdown_goes_through_the_one_renderer(shown: Any) -> None:
    expect, page = playwright.expect, shown("notes.md", MARKDOWN, "?view=formatted")
    prose = page.locator("#original .prose")
    expect(prose.locator("li input[type=checkbox]")).to_have_count(2)
    expect(prose.locator("table td").first).to_contain_text('">')
    expect(prose.locator(".katex").first).to_be_attached()
    expect(prose.get_by_role("img", name="graph TD")).to_be_visible(timeout=15_000)
    expect(prose.locator(".highlight pre")).to_contain_text("window.harmed")
    assert prose.locator("script").count() == 0 and prose.locator('a[href^="javascript"]').count() == 0


def test_pdf_and_pictures_are_shown_as_they_are(shown: Any) -> None:
    expect, page = playwright.expect, shown("two.pdf", pdf_with((1, png("blue"))))
    expect(page.locator("#original canvas").first).to_be_visible(timeout=15_000)


def test_a_web_page_of_others_does_nothing(shown: Any) -> None:
    markup = (
        f"<h1>Page</h1><p>Words.</p><script>window.harmed=1</script><svg onload='window.harmed=1'></svg>{HARM}<iframe src='/'></iframe>"
    )
    expect, page = playwright.expect, shown("page.html", markup, "?view=formatted")
    expect(page.locator("#original .prose")).to_contain_text("Words.")
    assert page.locator("#original .prose :is(script, svg, iframe)").count() == 0
