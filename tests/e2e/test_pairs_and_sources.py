"""Support in a browser: question pairs written, imported with a row to correct, and exported; a feed that keeps itself current."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.people import Person, signed_in
from tests.support.hosted.serving import Server, application
from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.process,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium"),
    pytest.mark.skipif(not (ROOT / "staticfiles" / "staticfiles.json").exists(), reason="no collected static files; run `make static`"),
]
CSV = "问题,机器人回答,相似问题\n如何重设密码,打开登录页面。,忘记密码##密码过期\n退货多久到账,,退款几天\n"


@pytest.fixture(scope="module")
def ada(shared_stack: LiveStack) -> Iterator[Person]:
    with signed_in(shared_stack, "ada") as person:
        yield person


@pytest.fixture
def browser(ada: Person) -> Iterator[Person]:
    yield ada
    assert ada.faults == []


def test_an_entry_is_written_found_and_exported(browser: Person) -> None:
    expect, base = playwright.expect, browser.base("Support", words_only=True, type="faq")
    page = browser.open(f"bases/{base}/faq")
    page.get_by_role("link", name="New entry").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Question", exact=True).fill("How do I return a pump?")
    dialog.get_by_label("Answer", exact=True).first.fill("Send it to the depot within thirty days.")
    dialog.get_by_label("Similar question", exact=True).first.fill("Can I send it back?")
    dialog.get_by_role("button", name="Add entry").click()
    row = page.get_by_role("listitem").filter(has_text="How do I return a pump?")
    expect(row.first).to_contain_text("Send it to the depot within thirty days.")
    expect(row.first).not_to_contain_text("Recommended")
    page.get_by_role("link", name="Match test").click()
    page.get_by_role("dialog").get_by_role("searchbox").fill("send it back")
    page.get_by_role("dialog").get_by_role("button", name="Test").click()
    expect(page.get_by_role("dialog")).to_contain_text("Question met: “Can I send it back?”")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="More", exact=True).first.click()
    with page.expect_download() as fetched:
        page.get_by_role("menuitem", name="Export as JSON").click()
    exported = json.loads(Path(fetched.value.path()).read_text("utf-8"))
    assert [(entry["standard_question"], entry["similar_questions"]) for entry in exported] == [
        ("How do I return a pump?", ["Can I send it back?"])
    ]


def test_a_file_is_imported_and_its_failed_row_corrected(browser: Person) -> None:
    expect, base = playwright.expect, browser.base("客服", words_only=True, type="faq")
    page = browser.open(f"bases/{base}/faq")
    page.get_by_role("link", name="Import…").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("File", exact=True).set_input_files(files=[{"name": "faq.csv", "mimeType": "text/csv", "buffer": CSV.encode("gb18030")}])
    expect(dialog.locator("#faq-preview")).to_contain_text("2 rows")
    expect(dialog.locator("#faq-preview")).to_contain_text("如何重设密码")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(dialog).to_contain_text("1 row was not taken whole", timeout=20_000)
    expect(dialog).to_contain_text("There is no answer.")
    dialog.get_by_text("Correct", exact=True).click()
    dialog.get_by_label("Answers, with ## between them").fill("五个工作日。")
    dialog.get_by_role("button", name="Retry corrected rows").click()
    expect(dialog).to_contain_text(re.compile(r"Added\s*1"), timeout=20_000)
    expect(dialog).not_to_contain_text("was not taken whole")
    page.keyboard.press("Escape")
    expect(page.locator("#faq")).to_contain_text("五个工作日。")
    expect(page.locator("#faq-count")).to_have_text("2 entries")


class Feed:
    """A feed of so many entries."""

    count = 2

    def __call__(self, *_asked: Any) -> Any:
        items = "".join(
            f"<item><title>Release {n}</title><guid>g{n}</guid><description>Pump {n} is out.</description></item>" for n in range(self.count)
        )
        return f'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>{items}</channel></rss>'
