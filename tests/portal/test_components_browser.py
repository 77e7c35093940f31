"""The behaviour of the components in a real browser, on the style guide, under the portal's content policy."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.wsgi import get_wsgi_application

playwright_api = pytest.importorskip("playwright.sync_api")
expect = playwright_api.expect
expect.set_options(timeout=15_000)  # the first PDF brings its own library, which takes a busy machine a while

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("KB_CHROMIUM", "/usr/bin/chromium")
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


@pytest.fixture(scope="module")
def guide_url() -> Iterator[str]:
    server = make_server("127.0.0.1", 0, StaticFilesHandler(get_wsgi_application()), _Server, _Silent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/styleguide"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    with playwright_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, guide_url: str):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US", extra_http_headers={"Accept-Language": "en"})
    context.set_default_timeout(8000)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    open_guide(page, guide_url)
    yield page
    context.close()
    assert errors == []


def open_guide(page, url: str = "") -> None:
    page.goto(url) if url else page.reload()
    page.wait_for_selector("html[data-ready]", state="attached")


def insert(page, html: str) -> None:
    """Puts a fragment into the page the way htmx does, so that everything in it is brought to life."""
    page.evaluate(
        """html => { const main = document.getElementById("main"); main.insertAdjacentHTML("afterbegin", html);
        const added = main.firstElementChild; window.dispatchEvent(new Event("noop"));
        added.dispatchEvent(new CustomEvent("htmx:load", { bubbles: true })); }""",
        html,
    )


def focused(page) -> str:
    return page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim()")


def test_menu_by_keyboard_and_back_to_its_button(page) -> None:
    button = page.get_by_role("button", name="menu", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    menu = page.locator("#guide-menu")
    expect(menu).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    assert focused(page) == "Rename"
    page.keyboard.press("ArrowUp")
    assert focused(page).startswith("Delete")
    page.keyboard.press("Home")
    page.keyboard.press("m")
    assert focused(page).startswith("Move")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    assert focused(page) == "menu"


def test_a_disabled_item_with_a_reason_does_nothing(page) -> None:
    page.get_by_role("button", name="menu", exact=True).click()
    page.locator("#guide-menu [aria-disabled=true]").click(force=True)
    expect(page.locator("#guide-confirm")).to_be_hidden()


def test_dialog_keeps_focus_and_gives_it_back(page) -> None:
    page.get_by_role("button", name="dialog", exact=True).click()
    dialog = page.locator("#guide-confirm")
    expect(dialog).to_be_visible()
    for _ in range(5):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.activeElement === document.body || document.getElementById('guide-confirm').contains(document.activeElement)"
        )
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert focused(page) == "dialog"


def test_palette_filters_and_overlay_lists_the_keys_of_the_page(page) -> None:
    page.keyboard.press("Control+k")
    palette = page.locator("#command-palette")
    expect(palette).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    page.locator("body").click(position={"x": 2, "y": 2})
    page.keyboard.press("?")
    overlay = page.locator("#shortcut-overlay")
    expect(overlay).to_be_visible()
    expect(overlay.locator("[data-own-keys]")).to_contain_text("Upload")
    expect(overlay).to_contain_text("Select a range")


def test_keys_stay_silent_while_someone_types(page) -> None:
    page.locator("#f-title").focus()
    page.keyboard.press("End")
    page.keyboard.type("?/")
    expect(page.locator("#shortcut-overlay")).to_be_hidden()
    expect(page.locator("#f-title")).to_have_value("Product and service?/")


def test_selection_by_range_survives_a_reload(page) -> None:
    boxes = page.locator("[data-select-id]")
    boxes.nth(0).click()
    boxes.nth(2).click(modifiers=["Shift"])
    bar = page.locator(".selection-bar")
    expect(bar).to_contain_text("3 selected")
    assert page.locator("tr[data-selected]").count() == 3
    assert page.locator("[data-select-all]").evaluate("box => box.indeterminate") is True
    open_guide(page)
    expect(bar).to_contain_text("3 selected")
    page.locator("[data-select-all]").click()
    page.get_by_role("button", name="Select all 1284").click()
    expect(bar).to_contain_text("1,284 selected")
    page.get_by_role("button", name="Clear selection").click()
    expect(bar).to_be_hidden()


def test_rows_by_keyboard(page) -> None:
    page.locator("body").click(position={"x": 2, "y": 2})
    for key in ("j", "j", "k", "j", "x"):
        page.keyboard.press(key)
    assert page.locator("tr[data-active]").get_attribute("id") == "row-doc2"
    assert page.locator("tr[data-selected]").get_attribute("id") == "row-doc2"


def test_selected_ids_go_with_the_request(page) -> None:
    sent: list[str] = []
    page.route("**/bulk", lambda route: (sent.append(route.request.post_data or ""), route.fulfill(status=204))[1])
    page.locator("[data-select-id]").nth(0).click()
    page.locator("[data-select-id]").nth(1).click()
    with page.expect_request("**/bulk"):
        page.locator(".selection-bar [hx-post]").click()
    assert sent == ["ids=doc1&ids=doc2"]


def test_typed_text_comes_back_after_a_reload_and_can_be_discarded(page) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("#f-title").fill("half a thought")
    page.locator("#f-pw").fill("secret")
    page.wait_for_function("() => (localStorage.getItem('kb:draft:styleguide') || '').includes('half a thought')")
    assert "secret" not in page.evaluate("localStorage.getItem('kb:draft:styleguide')")
    open_guide(page)
    expect(page.locator("#f-title")).to_have_value("half a thought")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator("#f-title")).to_have_value("Product and service")
    assert page.evaluate("localStorage.getItem('kb:draft:styleguide')") is None


def test_counter_counts_characters_and_password_can_be_seen(page) -> None:
    page.locator("#f-title").fill("传感器😀")
    expect(page.locator("#f-title-count")).to_have_text("4 / 40")
    page.locator("#f-pw").fill("secret")
    page.get_by_role("button", name="Show password").click()
    expect(page.locator("#f-pw")).to_have_attribute("type", "text")


def test_theme_is_pinned_and_rendered_by_the_server(page) -> None:
    page.get_by_role("button", name="Dark").click()
    open_guide(page)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(21, 23, 24)"


def test_combobox_by_keyboard(page) -> None:
    box = page.locator("#f-folders")
    box.click()
    box.press_sequentially("min")
    page.keyboard.press("Enter")
    box.press_sequentially("brand new")
    page.keyboard.press("Enter")
    values = page.locator('input[type="hidden"][name="folders"]').evaluate_all("inputs => inputs.map(input => input.value)")
    assert values == ["folder", "folder2", "brand new"]
    page.keyboard.press("Backspace")
    expect(page.locator('input[type="hidden"][name="folders"]')).to_have_count(2)


def upload_files(*names: str) -> list[dict[str, object]]:
    return [{"name": name, "mimeType": "text/plain", "buffer": b"" if name.startswith("empty") else b"x" * 100} for name in names]


def test_uploads_report_each_file_and_retry_only_what_may_work(page) -> None:
    tries: dict[str, int] = {}

    def answer(route) -> None:
        body = route.request.post_data_buffer or b""
        name = next(name for name in ("good.md", "same.md", "flaky.md", "broken.md") if name.encode() in body)
        tries[name] = tries.get(name, 0) + 1
        if name == "same.md":
            reply = (409, {"success": False, "message": "File already exists: same.md", "data": {"id": "7"}, "code": "duplicate_file"})
        elif name == "broken.md":
            reply = (400, {"success": False, "error": {"code": 1000, "message": "The file is damaged."}})
        elif name == "flaky.md" and tries[name] == 1:
            reply = (503, {"success": False, "error": {"code": 1008, "message": "No space left."}})
        else:
            reply = (200, {"success": True, "data": {"id": "8"}})
        route.fulfill(status=reply[0], body=json.dumps(reply[1]), content_type="application/json")

    page.route("**/styleguide/upload", answer)
    page.locator('input[type="file"]').first.set_input_files(
        upload_files("good.md", "same.md", "flaky.md", "broken.md", "empty.md", "tool.exe")
    )
    tray = page.locator(".tray")
    expect(tray.get_by_role("status")).to_have_text("2 of 6 uploaded")
    line = {
        name: tray.locator(".tray__item", has_text=name) for name in ("good.md", "same.md", "flaky.md", "broken.md", "empty.md", "tool.exe")
    }
    for name, text in {
        "good.md": "Uploaded, being processed",
        "same.md": "Already in this knowledge base",
        "flaky.md": "No space left.",
        "broken.md": "The file is damaged.",
        "empty.md": "This file is empty.",
        "tool.exe": "Files of type .exe cannot be read. Accepted: pdf docx md txt.",
    }.items():
        expect(line[name]).to_contain_text(text)
    expect(line["broken.md"].get_by_role("button", name="Retry")).to_be_hidden()
    line["flaky.md"].get_by_role("button", name="Retry").click()
    expect(line["flaky.md"]).to_contain_text("Uploaded, being processed")
    assert tries == {"good.md": 1, "same.md": 1, "flaky.md": 2, "broken.md": 1}


def test_three_files_travel_at_once_and_the_rest_can_be_cancelled(page) -> None:
    held: list[object] = []
    page.route("**/styleguide/upload", lambda route: held.append(route))
    page.locator('input[type="file"]').first.set_input_files(upload_files(*(f"f{n}.md" for n in range(6))))
    expect(page.locator(".tray__item--sending")).to_have_count(3)
    expect(page.locator(".tray__item--waiting")).to_have_count(3)
    page.get_by_role("button", name="Cancel all").click()
    expect(page.locator(".tray__item--cancelled")).to_have_count(6)
    assert len(held) == 3


def test_a_folder_keeps_its_tree(page, tmp_path: Path) -> None:
    (tmp_path / "docs/deep").mkdir(parents=True)
    (tmp_path / "docs/a.md").write_text("a")
    (tmp_path / "docs/deep/b.md").write_text("b")
    bodies: list[bytes] = []
    page.route(
        "**/styleguide/upload",
        lambda route: (
            bodies.append(route.request.post_data_buffer or b""),
            route.fulfill(status=200, body='{"success": true}', content_type="application/json"),
        )[1],
    )
    page.locator('input[type="file"]').nth(1).set_input_files(tmp_path / "docs")
    expect(page.locator(".tray__item--done")).to_have_count(2)
    assert sorted(path for path in (b"docs/a.md", b"docs/deep/b.md") if any(path in body for body in bodies)) == [
        b"docs/a.md",
        b"docs/deep/b.md",
    ]


def test_work_is_asked_about_until_it_is_over(page) -> None:
    answers = iter(['<p id="job" data-poll="/job" data-poll-interval="500">half</p>', '<p id="job">ready</p>'])
    page.route("**/job", lambda route: route.fulfill(body=next(answers), content_type="text/html"))
    insert(page, '<p id="job" data-poll="/job" data-poll-interval="500">started</p>')
    expect(page.locator("#job")).to_have_text("half")
    expect(page.locator("#job")).to_have_text("ready")
    assert page.locator("#job").get_attribute("data-poll") is None


FAILURES: list[tuple[int, str, str, str]] = [
    (400, "application/json", '{"success": false, "error": {"code": 1000, "message": "Name is taken."}}', "Name is taken."),
    (409, "text/html", '<p id="error_fragment" data-error-message>Moved meanwhile.</p>', "Moved meanwhile."),
    (500, "text/html", "<h1>Traceback</h1>", "Something went wrong on our side. What you typed is kept."),
]


@pytest.mark.parametrize(("status", "kind", "body", "said"), FAILURES)
def test_a_failed_request_says_why_and_keeps_the_page(page, status: int, kind: str, body: str, said: str) -> None:
    page.route("**/fail", lambda route: route.fulfill(status=status, content_type=kind, body=body))
    page.route(
        "**/form",
        lambda route: route.fulfill(
            body='<form id="x" hx-post="/fail"><input name="a" id="kept"><button>send</button></form>', content_type="text/html"
        ),
    )
    insert(page, '<p id="x" data-poll="/form" data-poll-interval="500"></p>')
    page.locator("#kept").fill("typed")
    page.get_by_role("button", name="send").click()
    expect(page.locator("#toasts .tone--danger").last).to_contain_text(said)
    expect(page.locator("#kept")).to_have_value("typed")
    expect(page.get_by_role("button", name="send")).not_to_have_attribute("aria-busy", "true")


def pdf(pages: int) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(400, 500))
    for number in range(1, pages + 1):
        canvas.drawString(40, 400, f"Page {number} sensor")
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def viewer(page, body: Callable[[], bytes]) -> None:
    page.route("**/sample.pdf", lambda route: route.fulfill(body=body(), content_type="application/pdf"))
    from django.template.loader import render_to_string

    html = render_to_string(
        "components/pdf_viewer.html",
        {"src": "/sample.pdf", "page": 7, "highlights": '[{"page": 7, "x": 0.1, "y": 0.18, "w": 0.5, "h": 0.05}]'},
    )
    insert(page, f'<div class="guide__pdf" id="reader">{html}</div>')


def test_pdf_opens_at_the_page_with_the_passage_marked(page) -> None:
    viewer(page, lambda: pdf(12))
    reader = page.locator("#reader")
    expect(reader.locator(".pdf__total")).to_contain_text("12")
    expect(reader.get_by_role("textbox")).to_have_value("7")
    seventh = reader.locator('.pdf__page[data-page="7"]')
    expect(seventh.locator(".pdf__hit")).to_have_count(1)
    expect(seventh.locator(".pdf__text")).to_contain_text("Page 7 sensor")
    page.evaluate(
        "window.dispatchEvent(new CustomEvent('kb:pdf-goto', { detail: { page: 2, highlights: [{ page: 2, x: 0, y: 0, w: 1, h: 0.1 }] } }))"
    )
    expect(reader.locator('.pdf__page[data-page="2"] .pdf__hit')).to_have_count(1)
    expect(seventh.locator(".pdf__hit")).to_have_count(0)
    assert reader.locator("canvas").count() <= 8


def test_a_broken_pdf_says_so(page) -> None:
    viewer(page, lambda: b"not a pdf")
    expect(page.locator("#reader")).to_contain_text("This PDF cannot be shown here.")


def test_formula_and_diagram_are_drawn_under_the_content_policy(page) -> None:
    expect(page.locator(".arithmatex .katex-html")).to_be_visible()
    diagram = page.locator(".diagram")
    expect(diagram).to_contain_text("Upload")
    assert diagram.evaluate(
        "host => host.shadowRoot.querySelectorAll('rect').length >= 3 && host.shadowRoot.adoptedStyleSheets.length >= 2"
    )


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_nothing_needs_a_sideways_scroll(page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
