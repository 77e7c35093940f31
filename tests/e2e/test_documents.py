"""A person in a browser: make a base, drop files and a folder, watch them become findable."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [pytest.mark.e2e, pytest.mark.process, pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium")]

DROP = """([files, target]) => {
  const data = new DataTransfer();
  for (const [name, text] of files) data.items.add(new File([text], name));
  for (const type of ["dragenter", "drop"]) target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
}"""


def test_files_dropped_on_a_new_base_become_findable(live_stack: Callable[..., LiveStack]) -> None:
    if not (ROOT / "staticfiles" / "staticfiles.json").exists():
        pytest.skip("no collected static files; run `make static`")
    stack = live_stack()
    expect = playwright.expect
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(locale="en-GB", viewport={"width": 1280, "height": 900})
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{stack.base_url}/account/signup/")
        page.locator("[name=email]").fill("ada@example.com")
        page.locator("[name=password1]").fill("correct-horse-7")
        page.locator("[name=password1]").press("Enter")
        page.wait_for_url(re.compile(r"/s/\d+/$"))

        page.get_by_role("link", name="New knowledge base").first.click()
        dialog = page.get_by_role("dialog", name="New knowledge base")
        dialog.get_by_role("button", name="Create").click()
        expect(dialog.get_by_text("Give the knowledge base a name.")).to_be_visible()
        dialog.get_by_label("Name").fill("Handbook")
        dialog.get_by_role("button", name="Create").click()
        page.wait_for_url(re.compile(r"/bases/[0-9a-f-]{36}/$"))
        expect(page.get_by_text("Drop files or whole folders here")).to_be_visible()

        files = [["guide.md", "# Guide\n\nReset the device with code ERR-4021."], ["制度.txt", "年假可以结转五天。"], ["tool.exe", "MZ"]]
        page.evaluate(DROP, [files, page.locator("#main").element_handle()])
        page.get_by_role("dialog", name="Upload 3 files").get_by_role("button", name="Upload").click()
        tray = page.get_by_role("region", name="Uploads")
        expect(tray.get_by_text(re.compile(r"Files of type \.exe cannot be read"))).to_be_visible()
        for name in ("guide.md", "制度.txt"):
            row = page.get_by_role("row").filter(has_text=name)
            expect(row.get_by_text("Ready", exact=True)).to_be_visible(timeout=60_000)
        expect(page.locator("#base-figures")).to_contain_text("2 documents", timeout=15_000)
        expect(page.locator("#base-figures")).to_contain_text("vectors 100%", timeout=15_000)

        page.evaluate(DROP, [[["copy.md", files[0][1]]], page.locator("#main").element_handle()])
        page.get_by_role("dialog").get_by_role("button", name="Upload").click()
        expect(tray.get_by_text("Already in this knowledge base")).to_be_visible()

        page.get_by_role("checkbox", name="Select guide.md").check()
        page.get_by_role("region", name="Selection").get_by_role("button", name="Move").click()
        page.get_by_role("dialog").get_by_label("Folder").fill("Devices")
        page.get_by_role("dialog").get_by_role("button", name="Move").click()
        expect(page.get_by_role("treeitem", name=re.compile("Devices"))).to_be_visible()
        page.get_by_role("row").filter(has_text="guide.md").get_by_role("button", name="Actions for guide.md").click()
        page.get_by_role("menuitem", name="Delete…").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete document").click()
        expect(page.get_by_role("row").filter(has_text="guide.md")).to_have_count(0)
        expect(page.get_by_role("row").filter(has_text="制度.txt")).to_have_count(1)

        page.set_viewport_size({"width": 390, "height": 844})
        row = page.get_by_role("row").filter(has_text="制度.txt")
        title, state = row.locator(".doc__title").bounding_box(), row.locator(".doc-state .status").bounding_box()
        assert title and state and state["y"] >= title["y"] + title["height"] and state["x"] + state["width"] <= 390  # beneath it, whole
        assert faults == []
        browser.close()
