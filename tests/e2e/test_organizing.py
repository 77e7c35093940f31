"""A person puts a base in order in a browser: files in, folders by mouse and by keys, tags, an archive, and who did it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.people import Person, signed_in
from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.process,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium"),
    pytest.mark.skipif(not (ROOT / "staticfiles" / "staticfiles.json").exists(), reason="no collected static files; run `make static`"),
]

DROP = """([names, target]) => {
  const data = new DataTransfer();
  for (const name of names) data.items.add(new File([`# ${name}\\n\\nWords of ${name}.`], name));
  for (const type of ["dragenter", "drop"]) target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
}"""
NAMES = ["one.md", "two.md", "three.md", "four.md"]


@pytest.fixture(scope="module")
def ada(shared_stack: LiveStack) -> Iterator[Person]:
    with signed_in(shared_stack, "ada") as person:
        yield person


@pytest.fixture
def page(ada: Person) -> Iterator[playwright.Page]:
    """The documents of a base of its own with four of them, found by words alone so that they are there at once."""
    base = ada.base("Handbook", words_only=True)
    for name in NAMES:
        ada.rest.wait(ada.rest.upload(base, name, f"# {name}\n\nWords of {name}.").body["data"]["id"])
    yield ada.open(f"bases/{base}/")
    assert ada.faults == []


def test_dropped_files_are_asked_about_and_come_in(ada: Person) -> None:
    expect, page = playwright.expect, ada.open(f"bases/{ada.base('Empty', words_only=True)}/")
    page.evaluate(DROP, [NAMES, page.locator("#main").element_handle()])
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("4 files")
    page.keyboard.press("Escape")  # nothing is sent
    expect(dialog).to_have_count(0)
    page.evaluate(DROP, [NAMES, page.locator("#main").element_handle()])
    dialog.get_by_label("Folder").fill("Devices/New")
    dialog.get_by_role("button", name="Upload").click()
    tray = page.get_by_role("region", name="Uploads")
    expect(tray).to_contain_text("4 of 4 uploaded")
    expect(tray).to_contain_text("Done 4", timeout=20_000)
    expect(page.locator("#documents tr[data-row]")).to_have_count(4)
    expect(_folder(page, "Devices")).to_be_visible()
    page.evaluate(DROP, [["one.md", "five.md"], page.locator("#main").element_handle()])
    dialog.get_by_label("Folder").fill("Devices/New")
    dialog.get_by_role("link", name="Cancel").click()
    expect(page.locator("#documents tr[data-row]")).to_have_count(4)
    assert ada.faults == []


def _row(page: playwright.Page, name: str) -> playwright.Locator:
    return page.get_by_role("row").filter(has_text=name)


def _folder(page: playwright.Page, path: str) -> playwright.Locator:
    return page.locator(f'.tree__link[data-drop-folder="{path}"]')


def _choose(page: playwright.Page, *names: str) -> None:
    for name in names:
        page.get_by_role("checkbox", name=f"Select {name}").check()


def test_folders_by_mouse_and_by_keys(page: playwright.Page) -> None:
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

    page.get_by_role("link", name="Activity").click()
    renamed = page.locator("#activity tbody tr").filter(has_text="Devices → Tools/Probes")
    expect(renamed).to_contain_text("ada")
    renamed.get_by_role("link").click()
    expect(dialog).to_contain_text("Folder")
    expect(dialog).to_contain_text("ada")


def test_tags_an_archive_and_what_is_said_of_it(page: playwright.Page) -> None:
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
    _archive(page)
    page.get_by_role("link", name="Activity").click()
    rows = page.locator("#activity tbody tr")
    expect(rows.first).to_contain_text("Tag deleted")
    expect(rows.first).to_contain_text("ada")


def _archive(page: playwright.Page) -> None:
    dialog = page.get_by_role("dialog")
    page.get_by_role("region", name="Selection").get_by_role("button", name="Download").click()
    playwright.expect(dialog).to_contain_text(re.compile(r"3 originals, \d+\sbytes of at most 512.0\sMB, with their folders\."))
    with page.expect_download() as saved:
        dialog.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename.endswith(".zip")
    playwright.expect(dialog).to_have_count(0)
