"""A file of very many pages on the whole stack: its worker is killed half-way, and every page can be found and cited all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ingestion.builders import pdf
from tests.support.rest import Rest
from tests.support.stack import LiveStack
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

PAGES = 1600


def test_1600_pages_and_a_kill_half_way(live_stack: Callable[..., LiveStack]) -> None:
    stack = live_stack(env={"KB_EMBEDDER": "none", "KB_PARSE_MEMORY_MB": "600"})
    rest = Rest(stack.base_url).sign_up()
    base = rest.make_base()
    data = pdf([[(72, 760, f"页 {n:04d} 编号 K-{n:04d}")] for n in range(1, PAGES + 1)])
    document = rest.upload(base, "many.pdf", data).body["data"]["id"]

    def half_way() -> dict[str, Any] | None:
        progress = rest.data("GET", f"/knowledge/{document}/stages").get("progress") or {}
        return progress if progress.get("unit") == "pages" and progress["done"] >= PAGES * 0.3 else None

    seen = until(half_way, "a good part of the pages is read", timeout_s=120, every_s=0.02)
    assert seen["total"] == PAGES and seen["stage"] == "parse"
    assert rest.document(document)["parse_status"] == "processing"
    stack.wait_replaced("worker", stack.kill("worker"))
    done = rest.wait(document, timeout_s=200)
    assert (done["parse_status"], done["reason"], done["counts"]) == ("completed", "", {"pages": PAGES})
    for code in ("K-0001", "K-1337", "K-1600"):
        hit = rest.search(base, code)[0]
        assert code in hit["content"]
        assert int(code[2:]) in range(hit["source_locators"][0]["page"], hit["source_locators"][-1]["page"] + 1)
