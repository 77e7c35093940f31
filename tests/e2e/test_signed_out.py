"""The session ends in the middle of an upload; the line goes dead and comes back; two tabs change the same thing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.rest import Rest
from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [pytest.mark.e2e, pytest.mark.process, pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium")]
expect = playwright.expect
expect.set_options(timeout=30_000)  # for the portal to answer, not for a person to wait

DROP = """([files, target]) => {
  const data = new DataTransfer();
  for (const [name, text] of files) data.items.add(new File([text], name));
  for (const type of ["dragenter", "drop"]) target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
}"""
PASSWORD = "correct-horse-7"


@pytest.fixture(scope="module")
def person(shared_stack: LiveStack) -> Iterator[Any]:
    """A browser context in which Ada is signed in, and a base of hers; its address."""
    if not (ROOT / "staticfiles" / "staticfiles.json").exists():
        pytest.skip("no collected static files; run `make static`")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        context = browser.new_context(locale="en-GB", viewport={"width": 1280, "height": 900})
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.goto(f"{shared_stack.base_url}/account/signup/")
        page.locator("[name=email]").fill("ada@example.com")
        page.locator("[name=password1]").fill(PASSWORD)
        page.locator("[name=password1]").press("Enter")
        page.wait_for_url(re.compile(r"/s/\d+/$"))
        page.close()
        rest = Rest(shared_stack.base_url)
        rest.token = rest.call("POST", "/auth/login", {"email": "ada@example.com", "password": PASSWORD}).body["token"]
        yield context, rest
        browser.close()


def open_base(person: Any, stack: LiveStack, name: str) -> tuple[Any, str]:
    context, rest = person
    base = rest.make_base(name)
    page = context.new_page()
    page.goto(f"{stack.base_url}/")
    page.goto(f"{page.url}bases/{base}/")
    page.wait_for_selector("html[data-ready]", state="attached")
    return page, base


def test_uploads_go_on_after_signing_in_again(person: Any, shared_stack: LiveStack) -> None:
    context, rest = person
    page, base = open_base(person, shared_stack, "Session")
    kept = [cookie for cookie in context.cookies() if cookie["name"] == "kb_session"]
    assert kept
    context.clear_cookies(name="kb_session")
    files = [[f"file-{n}.md", f"# File {n}\n\nSigned out while sending {n}."] for n in range(5)]
    page.evaluate(DROP, [files, page.locator("#main").element_handle()])
    tray = page.get_by_role("region", name="Uploads")
    expect(tray.get_by_text("Your files are still here")).to_be_visible()
    page.wait_for_timeout(2500)  # what the page asks for meanwhile must not lead away from the files
    assert f"/bases/{base}/" in page.url
    assert rest.call("GET", f"/knowledge-bases/{base}/knowledge").body["total"] == 0, "nothing half-made"

    with context.expect_page() as opened:
        tray.get_by_role("link", name="Sign in").click()
    other = opened.value
    other.locator("[name=login]").fill("ada@example.com")
    other.locator("[name=password]").fill(PASSWORD)
    other.locator("[name=password]").press("Enter")
    other.wait_for_url(re.compile(r"/s/\d+/$"))
    other.close()
    page.bring_to_front()
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(tray.get_by_text("5 of 5 uploaded")).to_be_visible()
    expect(tray.get_by_text("Your files are still here")).to_be_hidden()
    for name, _text in files:
        expect(page.get_by_role("row").filter(has_text=name)).to_have_count(1)
    assert rest.call("GET", f"/knowledge-bases/{base}/knowledge").body["total"] == 5
    page.close()


def test_two_tabs_agree_with_the_api_after_the_line_was_dead(person: Any, shared_stack: LiveStack) -> None:
    """The work ends while the browser is offline: a state that was missed is caught up with, without a reload and with one."""
    context, rest = person
    first, base = open_base(person, shared_stack, "Offline")
    second = context.new_page()
    second.goto(first.url)
    shared_stack.kill("worker")
    text = "\n\n".join(f"# Part {n}\n\nLine {n} of the document." for n in range(40))
    document = rest.upload(base, "slow.md", text).body["data"]["id"]
    for page in (first, second):
        page.reload()
        expect(page.get_by_role("row").filter(has_text="slow.md")).to_have_count(1)
    context.set_offline(True)
    assert rest.wait(document, timeout_s=90)["parse_status"] == "completed"
    for page in (first, second):
        expect(page.get_by_role("row").filter(has_text="slow.md").get_by_text("Ready", exact=True)).to_have_count(0)
    context.set_offline(False)
    for page in (first, second):
        page.bring_to_front()
        expect(page.get_by_role("row").filter(has_text="slow.md").get_by_text("Ready", exact=True)).to_be_visible()
    second.reload()
    expect(second.get_by_role("row").filter(has_text="slow.md").get_by_text("Ready", exact=True)).to_be_visible()
    first.close()
    second.close()


def test_two_tabs_writing_the_same_document_lose_nothing(person: Any, shared_stack: LiveStack) -> None:
    context, rest = person
    first, base = open_base(person, shared_stack, "Tabs")
    body = {"title": "Note", "content": "The first text.", "status": "draft"}
    document = rest.data("POST", f"/knowledge-bases/{base}/knowledge/manual", body)["id"]
    address = re.sub(r"/bases/.*", f"/documents/{document}/edit", first.url)
    second = context.new_page()
    for page in (first, second):
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
    first.locator("[name=content]").fill("What the first tab says.")
    first.get_by_role("button", name="Save as draft").click()
    first.wait_for_url(re.compile(r"/bases/"))
    second.locator("[name=content]").fill("What the second tab says.")
    second.get_by_role("button", name="Save as draft").click()
    second.get_by_text("Show their version").click()
    expect(second.get_by_text("What the first tab says.").first).to_be_visible()
    assert second.locator("[name=content]").input_value() == "What the second tab says."
    assert rest.document(document)["metadata"]["content"] == "What the first tab says."
    first.close()
    second.close()
