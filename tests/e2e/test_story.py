"""The main job in a real browser: from signing up to the very passage, with a folder of real files and a colleague."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.folder import files
from tests.support.stack import ROOT, LiveStack

playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.process,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no /usr/bin/chromium"),
    pytest.mark.skipif(not (ROOT / "staticfiles" / "staticfiles.json").exists(), reason="no collected static files; run `make static`"),
]

#: what is typed -> what must be marked in the original, where the passage stands
FINDS = [
    ("泄压", "泄压", None),
    ("AB-1234/56-X", "AB-1234/56-X", "华东"),
    ("型号 QX-7781 的螺栓扭矩是多少", "QX-7781", "第 1–2 页"),
    ("who may drive a forklift", "forklift", None),
]


def sign_up(page: Any, base_url: str, email: str, *, at: str = "/account/signup/") -> None:
    page.goto(base_url + at)
    page.locator("[name=email]").fill(email)
    page.locator("[name=password1]").fill("correct-horse-7")
    page.locator("[name=password1]").press("Enter")


def test_from_signing_up_to_the_passage(live_stack: Callable[..., LiveStack], tmp_path: Path) -> None:
    stack = live_stack(grown=False)
    folder = tmp_path / "资料"
    for name, data in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        owner = browser.new_context(locale="zh-CN", viewport={"width": 1440, "height": 900}).new_page()
        faults: list[str] = []
        owner.on("pageerror", lambda error: faults.append(str(error)))
        sign_up(owner, stack.base_url, "li@example.com")
        owner.wait_for_url(re.compile(r"/s/\d+/$"))
        link = organization_with_link(owner, stack.base_url)
        base = base_with_folder(owner, folder)
        for query, words, place in FINDS:
            find(owner, base, query, words, place)
        colleague(browser, link, base)
        stranger(browser, stack.base_url, base)
        assert faults == []
        browser.close()


def organization_with_link(page: Any, base_url: str) -> str:
    """Make an organization; the address that invites to it."""
    page.goto(base_url + "/spaces/new")
    page.locator("[name=name]").fill("示例团队")
    page.get_by_role("button", name="创建组织").click()
    page.wait_for_url(re.compile(r"/s/\d+/"))
    space = re.search(r"/s/(\d+)/", page.url)
    assert space is not None
    page.goto(f"{base_url}/s/{space[1]}/invitations")
    page.get_by_role("button", name="生成链接").click()
    link = page.locator("#fresh-link").input_value()
    page.goto(f"{base_url}/s/{space[1]}/")
    return str(link)


def base_with_folder(page: Any, folder: Path) -> str:
    """Make a base, upload the folder, wait until every row is done; the address of the base."""
    expect = playwright.expect
    page.get_by_role("link", name="新建知识库").first.click()
    dialog = page.get_by_role("dialog", name="新建知识库")
    dialog.get_by_label("名称").fill("产品与售后")
    dialog.get_by_role("button", name="新建").click()
    page.wait_for_url(re.compile(r"/bases/[0-9a-f-]{36}/$"))
    page.locator("input[type=file][webkitdirectory]").first.set_input_files(str(folder))
    page.get_by_role("dialog").get_by_role("button", name="上传").click()
    expect(page.locator("#base-figures")).to_contain_text(f"{len(files())} 份文档", timeout=60_000)
    expect(page.locator("#base-figures")).to_contain_text("向量覆盖 100%", timeout=240_000)
    for name in files():
        row = page.get_by_role("row").filter(has_text=name.rsplit("/", 1)[-1])
        expect(row.get_by_text("已完成", exact=True)).to_be_visible(timeout=30_000)
    expect(page.get_by_role("treeitem", name=re.compile("资料"))).to_be_visible()
    return str(page.url)


def find(page: Any, base: str, query: str, words: str, place: str | None) -> None:
    """Ctrl-K, the question, Enter: the passage is marked and in view."""
    expect = playwright.expect
    page.goto(base)
    page.wait_for_selector("html[data-ready]", state="attached")
    page.keyboard.press("Control+k")
    page.keyboard.insert_text(query)
    option = page.locator('#palette-results [role="option"]', has_text=words).first
    expect(option).to_be_visible(timeout=15_000)
    option.click()
    page.wait_for_url("**/documents/**chunk=**")
    chosen = page.locator("#passages .psg.is-on")
    expect(chosen).to_be_in_viewport()
    expect(chosen).to_contain_text(words)
    if place is not None:
        expect(chosen).to_contain_text(place)


def colleague(browser: Any, link: str, base: str) -> None:
    """Whoever has the link signs up through it and sees the base, without the right to remove it."""
    page = browser.new_context(locale="en-GB", viewport={"width": 390, "height": 844}).new_page()
    page.goto(link)
    page.get_by_role("link", name="Create an account and join").click()
    page.locator("[name=email]").fill("kim@example.com")
    page.locator("[name=password1]").fill("correct-horse-7")
    page.locator("[name=password1]").press("Enter")
    page.wait_for_url(re.compile(r"/s/\d+/"))
    page.goto(base)
    playwright.expect(page.get_by_role("heading", level=1)).to_contain_text("产品与售后")
    answer = page.goto(base + "settings")
    assert answer is not None and answer.status == 200
    playwright.expect(page.get_by_role("button", name="Save settings")).to_have_count(0)


def stranger(browser: Any, base_url: str, base: str) -> None:
    """Somebody of another space gets the page of an address that does not exist."""
    page = browser.new_context(locale="en-GB").new_page()
    sign_up(page, base_url, "mallory@example.com")
    page.wait_for_url(re.compile(r"/s/\d+/$"))
    answer = page.goto(base)
    assert answer is not None and answer.status == 404
    playwright.expect(page.get_by_text("产品与售后")).to_have_count(0)
