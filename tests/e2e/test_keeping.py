"""A person in a browser keeps a document over time: a new version, the old one again, out of the trash; and looks at its pictures by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.people import Person, signed_in
from tests.ingestion.test_images import markdown, png
from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.process,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium"),
    pytest.mark.skipif(not (ROOT / "staticfiles" / "staticfiles.json").exists(), reason="no collected static files; run `make static`"),
]


FIRST = "# Guide\n\nReset with code OLD-4021.\n"


@pytest.fixture(scope="module")
def ada(shared_stack: LiveStack) -> Iterator[Person]:
    with signed_in(shared_stack, "ada") as person:
        yield person


@pytest.fixture
def guide(ada: Person) -> Iterator[tuple[str, str]]:
    """(base, document): a guide in a base of its own."""
    base = ada.base("Handbook", words_only=True)
    document = ada.rest.upload(base, "guide.md", FIRST).body["data"]["id"]
    ada.rest.wait(document)
    yield base, document
    assert ada.faults == []


def test_summary_and_questions_are_written_by_hand(ada: Person, guide: tuple[str, str]) -> None:
    """A dialog opened by its own address is a page whose form is saved; a drawer that answers with its form again has it empty."""
    expect, page = playwright.expect, ada.open(f"documents/{guide[1]}/summary/edit")
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


def test_versions_come_and_go(ada: Person, guide: tuple[str, str]) -> None:
    """A new file, what it changed, and the old one as the newest."""
    expect, page, document = playwright.expect, ada.open(f"documents/{guide[1]}/versions"), guide[1]
    changed = FIRST.replace("OLD-4021", "NEW-5000")
    page.get_by_label("New version").set_input_files(files=[{"name": "guide.md", "mimeType": "text/markdown", "buffer": changed.encode()}])
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("Version 2 is being read.")).to_be_visible()
    ada.rest.wait(document)
    page.get_by_role("row").filter(has_text="Version 1").get_by_role("link", name="Compare with the current one").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("From version 1 to 2")
    expect(page.locator(".diff, [class*=diff]").first).to_contain_text("NEW-5000")
    page.go_back()
    page.get_by_role("row").filter(has_text="Version 1").get_by_role("button", name="Make it the newest").click()
    expect(page.get_by_role("row").filter(has_text="Version 3")).to_contain_text("(current)")
    ada.rest.wait(document)
    ada.open(f"documents/{document}/")
    expect(page.locator("#passages")).to_contain_text("OLD-4021")


def test_what_was_deleted_comes_back(ada: Person, guide: tuple[str, str]) -> None:
    """Deleted it is gone from the list and its count; undone it is back."""
    expect, page = playwright.expect, ada.open(f"bases/{guide[0]}/")
    row = page.get_by_role("row").filter(has_text="guide.md")
    row.get_by_role("button", name="Actions for guide.md").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete document").click()
    expect(row).to_have_count(0)
    expect(page.locator("#base-count")).to_have_text("0")
    page.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(1)
    expect(page.locator("#base-count")).to_have_text("1")


def test_pictures_are_looked_at_with_the_keyboard(ada: Person) -> None:
    """Every picture is seen whole and reached with the keyboard alone; the way leads to the passage."""
    base = ada.base("Pictures", words_only=True)
    document = ada.rest.upload(base, "pump.md", markdown(png("red", (300, 600)), png("blue", (640, 200)))).body["data"]["id"]
    ada.rest.wait(document)
    expect, page = playwright.expect, ada.open(f"bases/{base}/images")
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
