"""From a word to its place in the document, in a real browser: palette, reader, passage, PDF page."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.wsgi import get_wsgi_application

from apps.retrieval.engine import forget_engine
from tests.support.filestore import use_fresh_store
from tests.support.library import Library, pdf_of

playwright_api = pytest.importorskip("playwright.sync_api")
expect = playwright_api.expect

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("KB_CHROMIUM", "/usr/bin/chromium")
LONG = "# 手册\n\n" + "\n\n".join(f"## 第{n}节\n\n" + f"第{n}节说明，编号 N-{n:04d}。" * 30 for n in range(1, 50))
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"no browser at {CHROMIUM}; set KB_CHROMIUM"),
    pytest.mark.skipif(not (ROOT / "static/dist/app.js").exists(), reason="assets are not built; run scripts/build_assets.sh"),
]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def library(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Library]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    use_fresh_store(settings, tmp_path)
    forget_engine()
    yield Library.make()
    forget_engine()


@pytest.fixture
def site() -> Iterator[str]:
    server = make_server("127.0.0.1", 0, StaticFilesHandler(get_wsgi_application()), _Server, _Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the browser's loop runs in this thread; the database is used beside it
    with playwright_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def open_page(browser: Any, site: str, library: Library) -> Iterator[Any]:
    contexts: list[Any] = []
    errors: list[str] = []

    def make(width: int = 1280, height: int = 900) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, locale="en-US")
        context.set_default_timeout(10_000)
        cookies = [{"name": name, "value": morsel.value, "url": site} for name, morsel in library.client.cookies.items()]
        context.add_cookies(cookies)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield make
    for context in contexts:
        context.close()
    assert errors == []


def go(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("html[data-ready]", state="attached")


def test_from_a_word_to_its_place(library: Library, site: str, open_page: Any) -> None:
    library.add("long.md", LONG)
    page = open_page()
    go(page, f"{site}/s/{library.space.pk}/")
    page.keyboard.press("Control+k")
    page.keyboard.type("N-0041")
    option = page.locator('#palette-results [role="option"]', has_text="N-0041").first
    expect(option).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/documents/**chunk=**")
    chosen = page.locator("#original .run.is-on", has_text="N-0041").first
    expect(chosen).to_be_visible()
    expect(chosen).to_be_in_viewport()
    expect(page.locator("#passages .psg.is-on")).to_be_in_viewport()
    expect(page.locator("#original .run mark").first).to_have_text("N-0041")
    # what was searched is offered again
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-results .option--recent")).to_have_text("N-0041")


def test_passage_and_original_lead_to_each_other(library: Library, site: str, open_page: Any) -> None:
    document = library.add("long.md", LONG)
    page = open_page()
    go(page, site + library.url(document))
    far = library.chunk_with(document, "N-0030")
    page.locator(f"#passage-{far.uid} .psg__text").click()
    run = page.locator(f'#original .run.is-on[data-c~="{far.chunk_index}"]').first
    expect(run).to_be_in_viewport()
    assert page.url.endswith(f"chunk={far.uid}")
    assert "N-0030" in "".join(page.locator("#original .run.is-on").all_text_contents())
    other = page.locator(f'#original .run[data-c="{far.chunk_index + 1}"]').first
    other.scroll_into_view_if_needed()
    other.click()
    expect(page.locator(f'#passages .psg.is-on[data-index="{far.chunk_index + 1}"]')).to_be_in_viewport()
    # by keyboard: down the list, edit, give up, search in the document
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page.locator(".psg--edit textarea")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".psg--edit")).to_have_count(0)
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search in this document")).to_be_focused()


def test_the_page_of_a_pdf_is_shown_with_the_passage_marked(library: Library, site: str, open_page: Any) -> None:
    pages = [f"Page number {n}\n" + "\n".join(f"Line {line} of page {n} with code K-{n:04d}" for line in range(20)) for n in range(1, 9)]
    document = library.add("report.pdf", pdf_of(*pages))
    chunk = library.chunk_with(document, "K-0006")
    page = open_page()
    go(page, f"{site}{library.url(document)}?chunk={chunk.uid}&q=K-0006")
    first = chunk.positions[0]["page"]
    expect(page.locator(f'.pdf__page[data-page="{first}"] canvas')).to_be_visible()
    expect(page.locator(f'.pdf__page[data-page="{first}"] .pdf__hit').first).to_be_in_viewport()
    expect(page.get_by_role("textbox", name="Page")).to_have_value(str(first))
    last = library.chunks(document)[-1]
    page.locator(f"#passage-{last.uid} .psg__text").click()
    expect(page.locator(f'.pdf__page[data-page="{last.positions[0]["page"]}"] .pdf__hit').first).to_be_in_viewport()


def test_a_phone_shows_one_side_at_a_time(library: Library, site: str, open_page: Any) -> None:
    document = library.add("long.md", LONG)
    page = open_page(390, 844)
    go(page, site + library.url(document))
    expect(page.locator("#original")).to_be_visible()
    expect(page.locator("#passages")).to_be_hidden()
    page.get_by_role("link", name="Passages").click()
    chunk = library.chunks(document)[3]
    page.locator(f"#passage-{chunk.uid} .psg__text").click()
    expect(page.locator("#passages")).to_be_hidden()
    expect(page.locator(f'#original .run.is-on[data-c~="{chunk.chunk_index}"]').first).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_nothing_of_a_document_runs(library: Library, site: str, open_page: Any) -> None:
    hostile = "# x\n\n<script>window.pwned = 1</script> <img src=x onerror='window.pwned = 1'> [x](javascript:window.pwned=1)\n"
    document = library.write("Note", hostile)
    page = open_page()
    for view in ("", "?view=formatted", "?q=script&find=script"):
        go(page, site + library.url(document) + view)
        assert page.evaluate("window.pwned === undefined")
