"""A person asks in a browser: the answer is drawn as it comes, its marks open their passages, and every tab tells the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
MANUAL = "# Pump\n\nFill the pump with water before use. The seal of the pump is replaced every five years.\n"


def test_a_conversation(shared_stack: LiveStack) -> None:
    expect = playwright.expect
    rest = Rest(shared_stack.base_url).sign_up("ada")
    base = rest.make_base("Handbook")
    rest.wait(rest.upload(base, "pump.md", MANUAL).body["data"]["id"])
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        context = browser.new_context(locale="en-GB", viewport={"width": 1440, "height": 860})
        page = context.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(f"{shared_stack.base_url}/account/login/")
        page.locator("[name=login]").fill("ada@example.com")
        page.locator("[name=password]").fill(PASSWORD)
        page.locator("[name=password]").press("Enter")
        page.wait_for_url(re.compile(r"/s/\d+/$"))
        page.goto(f"{page.url}bases/{base}/")
        page.get_by_role("link", name="Ask", exact=True).last.click()
        expect(page.locator(".composer .chip__text")).to_have_text("Handbook")
        page.get_by_label("Question", exact=True).fill("How often is the seal replaced?")
        page.get_by_label("Question", exact=True).press("Enter")
        answer = page.locator(".answer").last
        expect(answer).to_contain_text("The seal of the pump is replaced every five years.")
        expect(answer).to_contain_text("Extracted, no language model is configured")
        expect(page.locator("#ask-sessions")).to_contain_text("How often is the seal replaced")
        expect(
            page.locator("#follow-ups:not([hx-post])")
        ).to_be_attached()  # what it asks for on its own leaves the conversation where it is
        answer.locator(".cite").first.click()
        expect(page.locator("#dock mark")).to_have_text("The seal of the pump is replaced every five years.")

        page.get_by_label("Question", exact=True).fill("Which colour has the forklift battery?")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".answer").last).to_contain_text("Nothing about this was found")
        expect(page.locator(".answer").last.get_by_role("link", name="Search these words")).to_be_visible()

        said = page.locator(".answer__text").all_inner_texts()
        other = context.new_page()
        other.goto(page.url)
        expect(other.locator(".answer__text")).to_have_count(2)
        assert other.locator(".answer__text").all_inner_texts() == said
        other.locator(".answer").first.get_by_role("button", name="Helpful", exact=True).click()
        expect(other.locator(".answer").first.get_by_role("button", name="Helpful", exact=True)).to_have_attribute("aria-pressed", "true")
        page.reload()
        expect(page.locator(".answer").first.get_by_role("button", name="Helpful", exact=True)).to_have_attribute("aria-pressed", "true")
        with page.expect_download() as download:
            page.get_by_role("link", name="Export", exact=True).click()
        text = Path(download.value.path()).read_text("utf-8")
        assert text.startswith("# How often is the seal replaced") and "  > Fill the pump with water before use." in text
        assert faults == []
        browser.close()
