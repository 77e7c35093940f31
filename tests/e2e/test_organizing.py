"""A person puts a base in order in a browser: folders by mouse and by keys, tags, an archive, and who did it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [pytest.mark.e2e, pytest.mark.process, pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium")]

DROP = """([names, target]) => {
  const data = new DataTransfer();
  for (const name of names) data.items.add(new File([`# ${name}\\n\\nWords of ${name}.`], name));
  for (const type of ["dragenter", "drop"]) target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
}"""
NAMES = ["one.md", "two.md", "three.md", "four.md"]


def test_a_base_is_put_in_order_by_mouse_and_keyboard(live_stack: Callable[..., LiveStack]) -> None:
    if not (ROOT / "staticfiles" / "staticfiles.json").exists():
        pytest.skip("no collected static files; run `make static`")
    stack = live_stack()
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(locale="en-GB", viewport={"width": 1360, "height": 900})
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" and "status of 422" not in said.text else None)
        _base_with_documents(page, stack)
        _folders(page)
        _tags(page)
        _archive(page)
        _activity(page)
        assert faults == []
        browser.close()


def _base_with_documents(page: playwright.Page, stack: LiveStack) -> None:
    page.goto(f"{stack.base_url}/account/signup/")
    page.locator("[name=email]").fill("ada@example.com")
    page.locator("[name=password1]").fill("correct-horse-7")
    page.locator("[name=password1]").press("Enter")
    page.wait_for_url(re.compile(r"/s/\d+/$"))
    page.get_by_role("link", name="New knowledge base").first.click()
    page.get_by_role("dialog").get_by_label("Name").fill("Handbook")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/bases/[0-9a-f-]{36}/$"))
    page.evaluate(DROP, [NAMES, page.locator("#main").element_handle()])
    page.get_by_role("dialog").get_by_role("button", name="Upload").click()
    playwright.expect(page.locator("#base-figures")).to_contain_text("vectors 100%", timeout=60_000)
    playwright.expect(page.locator("#documents tr[data-row]")).to_have_count(4)
    playwright.expect(page.locator("#documents tr[data-row]").get_by_text("Ready", exact=True)).to_have_count(4, timeout=60_000)
    page.reload()  # without the tray of what was just uploaded


def _row(page: playwright.Page, name: str) -> playwright.Locator:
    return page.get_by_role("row").filter(has_text=name)


def _folder(page: playwright.Page, path: str) -> playwright.Locator:
    return page.locator(f'.tree__link[data-drop-folder="{path}"]')


def _choose(page: playwright.Page, *names: str) -> None:
    for name in names:
        page.get_by_role("checkbox", name=f"Select {name}").check()


def _folders(page: playwright.Page) -> None:
    expect, dialog = playwright.expect, page.get_by_role("dialog")
    page.keyboard.press("f")
    expect(dialog.get_by_label("Name")).to_be_focused()
    page.keyboard.type("Devices")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?folder=Devices$"))
    expect(_folder(page, "Devices")).to_be_focused()  # made from the keyboard, found by the keyboard
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator("#documents tr[data-row]")).to_have_count(4)
    expect(page.get_by_role("link", name="All documents 4")).to_be_focused()

    _row(page, "one.md").locator(".doc__icon").drag_to(_folder(page, "Devices"))
    expect(_folder(page, "Devices").locator(".tree__count")).to_have_text("1")
    _choose(page, "two.md", "three.md")
    expect(page.get_by_role("region", name="Selection")).to_contain_text("2 selected")
    _row(page, "two.md").locator(".doc__icon").drag_to(_folder(page, "Devices"))  # the whole selection comes along
    expect(_folder(page, "Devices").locator(".tree__count")).to_have_text("3")
    expect(page.get_by_role("region", name="Selection")).to_be_hidden()

    _folder(page, "Devices").focus()
    page.keyboard.press("F2")
    expect(dialog.get_by_label("Path")).to_be_focused()
    page.keyboard.press("Escape")
    expect(_folder(page, "Devices")).to_be_focused()
    page.keyboard.press("F2")
    expect(dialog.get_by_label("Path")).to_be_focused()
    page.keyboard.type("Tools/Probes")  # what was there is selected, typing replaces it
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?folder=Tools(/|%2F)Probes$"))
    expect(page.locator("#documents tr[data-row]")).to_have_count(3)
    expect(_folder(page, "Tools/Probes")).to_be_focused()
    page.keyboard.press("Delete")
    expect(dialog).to_contain_text("3 documents lie in it or below.")
    page.keyboard.press("Escape")
    expect(_folder(page, "Tools/Probes")).to_be_focused()

    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#documents tr[data-row]")).to_have_count(4)
    expect(_folder(page, "Tools/Probes")).to_have_count(0)  # closed again: its branch is asked for when it opens
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(_folder(page, "Tools/Probes")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#documents tr[data-row]")).to_have_count(3)
    expect(page.locator(".docs__trail")).to_contain_text("Probes")
    expect(_folder(page, "Tools/Probes")).to_be_focused()


def _tags(page: playwright.Page) -> None:
    expect, dialog = playwright.expect, page.get_by_role("dialog")
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Tags…").click()
    expect(dialog.get_by_label("New tag")).to_be_focused()
    for name in ("urgent", "checked"):
        dialog.get_by_label("New tag").fill(name)
        page.keyboard.press("Enter")
        expect(dialog.get_by_label(f"Name of {name}")).to_have_value(name)
        expect(dialog.get_by_label("New tag")).to_have_value("")
    page.keyboard.press("Escape")

    bar = page.get_by_role("region", name="Selection")
    _choose(page, "one.md", "two.md", "three.md")
    bar.get_by_role("button", name="Tags").click()
    dialog.get_by_label("urgent").check()
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".doc-tags").get_by_text("urgent")).to_have_count(3)
    page.get_by_role("checkbox", name="Select three.md").uncheck()
    bar.get_by_role("button", name="Tags").click()
    expect(dialog.get_by_label("urgent")).to_be_checked()  # both carry it
    expect(dialog.get_by_label("checked")).not_to_be_checked()
    dialog.get_by_label("checked").check()
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".doc-tags").get_by_text("checked")).to_have_count(2)
    _choose(page, "three.md")
    bar.get_by_role("button", name="Tags").click()
    expect(dialog.get_by_label("checked")).to_have_js_property("indeterminate", True)
    expect(dialog).to_contain_text("2 of them")

    dialog.get_by_role("link", name="Manage tags").click()
    line = dialog.locator("form").filter(has=page.get_by_label("Name of checked"))
    line.get_by_role("button", name="Delete").click()
    expect(line).to_contain_text("2 documents carry this tag.")
    expect(line.get_by_role("button", name="Take off and delete")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Name of checked")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".doc-tags").get_by_text("checked")).to_have_count(0)
    expect(page.locator(".doc-tags").get_by_text("urgent")).to_have_count(3)


def _archive(page: playwright.Page) -> None:
    dialog = page.get_by_role("dialog")
    page.get_by_role("region", name="Selection").get_by_role("button", name="Download").click()
    playwright.expect(dialog).to_contain_text(re.compile(r"3 originals, \d+\sbytes of at most 512.0\sMB, with their folders\."))
    with page.expect_download() as saved:
        dialog.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename.endswith(".zip")
    playwright.expect(dialog).to_have_count(0)


def _activity(page: playwright.Page) -> None:
    expect = playwright.expect
    page.get_by_role("link", name="Activity").click()
    rows = page.locator("#activity tbody tr")
    expect(rows.first).to_contain_text("Tag deleted")
    expect(rows.first).to_contain_text("ada")
    renamed = rows.filter(has_text="Devices → Tools/Probes")
    expect(renamed).to_contain_text("ada")
    renamed.get_by_role("link").click()
    expect(page.get_by_role("dialog")).to_contain_text("Folder")
    expect(page.get_by_role("dialog")).to_contain_text("ada")
