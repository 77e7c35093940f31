"""Support in a browser: question pairs written, imported with a row to correct, and exported; a feed that keeps itself current."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.people import Person, signed_in
from tests.support.hosted.serving import Server, application, say
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
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    """A portal that may fetch from this machine."""
    stack = LiveStack(tmp_path_factory.mktemp("shared") / "data", env={"KB_FETCH_ALLOW": "127.0.0.1/32"})
    try:
        yield stack.start()
    finally:
        stack.stop()


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
    page.get_by_role("dialog").get_by_role("button", name="Close").first.click()
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
    dialog.get_by_label("File", exact=True).set_input_files(
        files=[{"name": "faq.csv", "mimeType": "text/csv", "buffer": CSV.encode("gb18030")}]
    )
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
    """A feed of `count` entries."""

    count = 2

    def __call__(self, _request: Any) -> Any:
        items = "".join(
            f"<item><title>Release {n}</title><guid>g{n}</guid><description>Pump {n} is out.</description></item>"
            for n in range(self.count)
        )
        rss = f'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>{items}</channel></rss>'
        return say(rss, Content_Type="application/rss+xml")


def test_a_feed_is_connected_synced_and_paused(browser: Person) -> None:
    expect, base, feed = playwright.expect, browser.base("News", words_only=True), Feed()
    server = Server(application(feed))
    try:
        page = browser.open(f"bases/{base}/sources")
        page.get_by_role("link", name="Add a source").first.click()
        page.get_by_role("link", name=re.compile("RSS or Atom feed")).click()
        page.get_by_label("Name", exact=True).fill("Releases")
        page.get_by_label("Addresses of the feeds").fill(server.url + "/feed.xml")
        page.get_by_role("button", name="Test the connection").click()
        expect(page.locator("main")).to_contain_text("The source answers")
        page.get_by_role("button", name="Connect and go on").click()
        expect(page.get_by_text("When something is gone at the source")).to_be_visible()
        page.get_by_role("button", name="Finish and sync now").click()
        row = page.get_by_role("row").filter(has_text="Releases")
        expect(row).to_contain_text("2 new", timeout=20_000)
        feed.count = 3
        row.get_by_role("button", name="Sync now").click()
        expect(row).to_contain_text("1 new", timeout=20_000)
        row.get_by_role("button", name="Actions").click()
        page.get_by_role("menuitem", name="History").click()
        expect(page.get_by_role("dialog").get_by_text("Succeeded")).to_have_count(2)
        page.keyboard.press("Escape")
        row.get_by_role("button", name="Actions").click()
        page.get_by_role("menuitem", name="Pause").click()
        expect(row).to_contain_text("Paused")
        browser.open(f"bases/{base}/")
        expect(page.get_by_role("row").filter(has_text="Release 2")).to_contain_text("Releases")
    finally:
        server.close()


def test_the_same_in_chinese(browser: Person) -> None:
    expect, base, pairs = playwright.expect, browser.base("新闻", words_only=True), browser.base("问答", words_only=True, type="faq")
    session = browser.page.context
    page = session.browser.new_context(locale="zh-CN", storage_state=session.storage_state()).new_page()
    page.goto(f"{browser.home}bases/{pairs}/faq")
    page.get_by_role("link", name="新建条目").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("问题", exact=True).fill("如何重设密码")
    dialog.get_by_role("button", name="添加条目").click()
    expect(dialog).to_contain_text("请写一条答案。")
    dialog.get_by_label("回答", exact=True).first.fill("打开登录页面。")
    dialog.get_by_role("button", name="添加条目").click()
    expect(page.locator("#faq")).to_contain_text("打开登录页面。")
    page.goto(f"{browser.home}bases/{base}/sources")
    page.get_by_role("link", name="添加数据源").first.click()
    page.get_by_role("link", name="Git 仓库").click()
    page.get_by_role("button", name="连接并继续").click()
    expect(page.locator("main")).to_contain_text("填写")
    page.context.close()
