"""Two people in two browsers on one passage: the later one sees the conflict, keeps both texts, and the history has both; then documents
go to another base."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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
expect = playwright.expect
ADA, MIA = "The pump is checked every month by Ada.", "The pump is checked every week, says Mia."


def test_two_browsers_on_one_passage_and_a_move(shared_stack: LiveStack) -> None:
    ada = Rest(shared_stack.base_url).sign_up("ada")
    Rest(shared_stack.base_url).sign_up("mia")
    space = ada.data("POST", "/tenants", {"name": "Team"})["id"]
    ada.headers["X-Tenant-ID"] = str(space)
    ada.data("POST", f"/tenants/{space}/members", {"email": "mia@example.com", "role": "contributor"})
    base, other = ada.make_base("Handbook"), ada.make_base("Archive")
    document = ada.upload(base, "pump.md", "# Pump\n\nThe pump is checked every year.\n").body["data"]["id"]
    second = ada.upload(base, "valve.md", "# Valve\n\nThe valve has the code VLV-7.\n").body["data"]["id"]
    for uid in (document, second):
        assert ada.wait(uid)["parse_status"] == "completed"
    home = f"{shared_stack.base_url}/s/{space}/"
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        faults: list[str] = []
        pages = {name: signed_in(browser, shared_stack, name, faults) for name in ("ada", "mia")}
        one_passage(pages, f"{home}documents/{document}/")
        chunk = ada.data("GET", f"/chunks/{document}")[0]
        assert (chunk["content_revision"], chunk["content"]) == (2, f"{MIA} {ADA}")
        kept = ada.data("GET", f"/chunks/{document}/{chunk['id']}/revisions")
        assert [row["content"] for row in kept][0] == ADA and len(kept) == 2
        assert [hit["knowledge_id"] for hit in ada.search(base, "every week, says Mia", disable_vector_match=True)] == [document]
        move(pages["ada"], f"{home}bases/{base}/")
        assert faults == []
        browser.close()
    moved = [ada.document(uid) for uid in (document, second)]
    assert [row["knowledge_base_id"] for row in moved] == [other, other]
    assert [hit["knowledge_id"] for hit in ada.search(other, "VLV-7", disable_vector_match=True)] == [second]
    assert ada.search(base, "VLV-7") == []
    acts = [(row["action"], row["outcome"], row["details"].get("count")) for row in ada.data("GET", f"/knowledge-bases/{other}/activity")]
    assert acts[:2] == [("knowledge.move_completed", "success", 2), ("knowledge.move_started", "accepted", 2)]


def signed_in(browser: Any, stack: LiveStack, name: str, faults: list[str]) -> Any:
    page = browser.new_context(locale="en-GB", viewport={"width": 1360, "height": 900}).new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" and "status of 422" not in said.text else None)
    page.goto(f"{stack.base_url}/account/login/")
    page.locator("[name=login]").fill(f"{name}@example.com")
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("[name=password]").press("Enter")
    page.wait_for_url(re.compile(r"/s/\d+/$"))
    return page


def one_passage(pages: dict[str, Any], address: str) -> None:
    """Both open the same text; what Mia wrote is still there when Ada was faster, and is put on top of the latest by hand."""
    fields = {}
    for name, page in pages.items():
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
        page.locator("#passages .psg").first.hover()
        page.locator("#passages .psg [data-row-edit]").first.click()
        fields[name] = page.locator("#passages [name=content]")
        expect(fields[name]).to_be_visible()
    fields["ada"].fill(ADA)
    pages["ada"].get_by_role("button", name="Save").click()
    expect(pages["ada"].locator("#passages")).to_contain_text("edited · v2")
    page = pages["mia"]
    fields["mia"].fill(MIA)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Somebody changed this passage while you were writing")).to_be_visible()
    expect(page.locator(".diff, [class*=diff]").first).to_contain_text("by Ada")
    expect(fields["mia"]).to_have_value(MIA)
    fields["mia"].fill(f"{MIA} {ADA}")
    page.get_by_role("button", name="Keep mine on top of theirs").click()
    expect(page.locator("#passages")).to_contain_text("edited · v3")
    page.locator("#passages .psg").first.hover()
    page.get_by_role("link", name="Earlier versions").first.click()
    history = page.get_by_role("dialog")
    expect(history).to_contain_text("Now: version 3, by mia.")
    for who in ("ada", "parsing"):
        expect(history.get_by_text(f"{who} · ").first).to_be_visible()
    page.keyboard.press("Escape")


def move(page: Any, address: str) -> None:
    """Two documents are chosen and carried over; the list they left is empty, the dialog leads to where they are."""
    page.goto(address)
    page.wait_for_selector("html[data-ready]", state="attached")
    for name in ("pump.md", "valve.md"):
        page.get_by_role("checkbox", name=f"Select {name}").check()
    page.get_by_role("button", name="To another base").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Knowledge base").select_option(label="Archive")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(dialog).to_contain_text("All 2 documents moved.", timeout=30_000)
    expect(page.locator("#documents tr[data-row]")).to_have_count(0)
    dialog.get_by_role("link", name="Open “Archive”").click()
    page.wait_for_url(re.compile(r"/bases/[0-9a-f-]{36}/$"))
    for name in ("pump.md", "valve.md"):
        row = page.get_by_role("row").filter(has_text=name)
        expect(row.get_by_text("Ready", exact=True)).to_be_visible()
