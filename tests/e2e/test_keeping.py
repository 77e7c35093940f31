"""A person in a browser keeps a document over time: a new version, the old one again, out of the trash; and looks at its pictures by keyboard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.ingestion.test_images import markdown, png
from tests.support.rest import PASSWORD, Rest
from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.process,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium"),
    pytest.mark.skipif(not (ROOT / "staticfiles" / "staticfiles.json").exists(), reason="no collected static files; run `make static`"),
]


def test_versions_trash_and_pictures(shared_stack: LiveStack) -> None:
    rest = Rest(shared_stack.base_url).sign_up("ada")
    base = rest.make_base("Handbook")
    first = "# Guide\n\nReset with code OLD-4021.\n"
    document = rest.upload(base, "guide.md", first).body["data"]["id"]
    pictured = rest.upload(base, "pump.md", markdown(png("red", (300, 600)), png("blue", (640, 200)))).body["data"]["id"]
    for uid in (document, pictured):
        rest.wait(uid)
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 860}).new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(f"{shared_stack.base_url}/account/login/")
        page.locator("[name=login]").fill("ada@example.com")
        page.locator("[name=password]").fill(PASSWORD)
        page.locator("[name=password]").press("Enter")
        page.wait_for_url(re.compile(r"/s/\d+/$"))
        home = str(page.url)
        summary(page, f"{home}documents/{document}/")
        versions(page, rest, f"{home}documents/{document}/", document, first)
        trash(page, f"{home}bases/{base}/")
        pictures(page, f"{home}bases/{base}/images", pictured)
        assert faults == []
        browser.close()


def summary(page: Any, address: str) -> None:
    """A dialog opened by its own address is a page whose form is saved; a drawer that answers with its form again has it empty."""
    expect = playwright.expect
    page.goto(f"{address}summary/edit")
    page.get_by_role("textbox", name="Summary").fill("How the device is reset.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#summary")).to_contain_text("How the device is reset.")
    page.get_by_role("link", name="Questions").click()
    asked = page.get_by_role("dialog").get_by_label("New question")
    asked.press_sequentially("Which code resets it?", delay=20)  # longer than a draft takes to be kept
    asked.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Question 1")).to_have_value("Which code resets it?")
    expect(asked).to_have_value("")
    page.keyboard.press("Escape")


def versions(page: Any, rest: Rest, address: str, document: str, first: str) -> None:
    """A new file, what it changed, and the old one as the newest."""
    expect = playwright.expect
    page.goto(f"{address}versions")
    changed = first.replace("OLD-4021", "NEW-5000")
    page.get_by_label("New version").set_input_files(files=[{"name": "guide.md", "mimeType": "text/markdown", "buffer": changed.encode()}])
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("Version 2 is being read.")).to_be_visible()
    rest.wait(document)
    page.get_by_role("row").filter(has_text="Version 1").get_by_role("link", name="Compare with the current one").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("From version 1 to 2")
    expect(page.locator(".diff, [class*=diff]").first).to_contain_text("NEW-5000")
    page.go_back()
    page.get_by_role("row").filter(has_text="Version 1").get_by_role("button", name="Make it the newest").click()
    expect(page.get_by_role("row").filter(has_text="Version 3")).to_contain_text("(current)")
    rest.wait(document)
    page.goto(address)
    expect(page.locator("#passages")).to_contain_text("OLD-4021")


def trash(page: Any, address: str) -> None:
    """Deleted it is gone from the list and its count; undone it is back."""
    expect = playwright.expect
    page.goto(address)
    row = page.get_by_role("row").filter(has_text="guide.md")
    row.get_by_role("button", name="Actions for guide.md").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete document").click()
    expect(row).to_have_count(0)
    expect(page.locator("#base-count")).to_have_text("1")
    page.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(1)
    expect(page.locator("#base-count")).to_have_text("2")


def pictures(page: Any, address: str, document: str) -> None:
    """Every picture is seen whole and reached with the keyboard alone; the way leads to the passage."""
    expect = playwright.expect
    page.goto(address)
    page.wait_for_selector("html[data-ready]", state="attached")
    page.locator("#images [data-image]").first.focus()
    page.keyboard.press("Enter")
    viewer = page.get_by_role("dialog")
    expect(viewer.locator(".viewer__count")).to_have_text("1 / 2")
    expect(viewer.locator(".viewer__stage")).to_be_focused()
    expect(viewer.get_by_role("button", name="Previous image")).to_be_disabled()
    for key, count in (("ArrowRight", "2 / 2"), ("ArrowRight", "2 / 2")):
        page.keyboard.press(key)
        expect(viewer.locator(".viewer__count")).to_have_text(count)
        assert seen_whole(page)
    page.keyboard.press("+")
    page.keyboard.press("+")
    expect(viewer.locator(".viewer__image")).to_have_attribute("data-zoom", "2")
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert seen_whole(page)
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)
    expect(page.locator("#images [data-image]").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("link", name="Show where it stands").press("Enter")
    page.wait_for_url(re.compile(rf"/documents/{document}/\?chunk="))
    expect(page.locator("#passages .psg.is-on")).to_be_in_viewport()


def seen_whole(page: Any) -> bool:
    """Whether the whole picture is inside its stage."""
    image, stage = page.locator(".viewer__image").bounding_box(), page.locator(".viewer__stage").bounding_box()
    assert image and stage
    is_wide = stage["x"] <= image["x"] and image["x"] + image["width"] <= stage["x"] + stage["width"]
    return bool(is_wide and stage["y"] <= image["y"] and image["y"] + image["height"] <= stage["y"] + stage["height"])
