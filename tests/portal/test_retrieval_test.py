"""The retrieval-test tab: what is found and why, what is not and why not, all in an address that can be passed on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from apps.common.errors import Unavailable
from apps.common.scope import space_scope
from apps.knowledge.services import chunk_update
from tests.support.library import Library

CODES = "PPR-9087 PPR-9078 PPR-908 v1.10.2 v1.1.02 10.0.12.7 10.0.1.27 snake_case_id A/B-12 a@b.cn".split()


def ask(library: Library, q: str, client: Client | None = None, **query: Any) -> str:
    answer = (client or library.client).get(f"/s/{library.space.pk}/bases/{library.base.uid}/test", {"q": q, **query})
    assert answer.status_code == 200
    return str(answer.content.decode())


def titles(html: str) -> list[str]:
    return re.findall(r'<li class="hit" data-row>.*?<a class="hit__title"[^>]*>([^<]+)</a>', html, re.DOTALL)


def test_exact_codes_come_first_and_are_marked_whole(library: Library) -> None:
    for number, code in enumerate(CODES):
        library.add(f"unit-{number}.txt", f"Unit with the number {code} and a word.")
    for number, code in enumerate(CODES):
        html = ask(library, code, mode="text")
        assert titles(html)[0] == f"unit-{number}.txt", code
        first = html.split('<li class="hit"')[1]
        assert "exact match" in first and f"<mark>{code}</mark>" in first
        assert '<span class="term term--exact">' in first
    assert titles(ask(library, "9087", mode="text"))[0] == "unit-0.txt"


@pytest.mark.parametrize("query", ["传感器-温度-TH01", "TH01", "ＴＨ０１", "傳感器"])
def test_mixed_and_short_chinese_is_found_by_words(library: Library, query: str) -> None:
    library.add("a.md", "# 传感器-温度-TH01 安装说明\n\n安装完成后静置。")
    library.add("b.md", "安全，什么是定义")
    assert titles(ask(library, query, mode="text"))[0] == "a.md"
    assert titles(ask(library, "安全", mode="text")) == ["b.md"]


def test_a_hit_says_why_and_opens_at_its_passage(library: Library) -> None:
    document = library.add("a.md", "# 安装\n\n## 校准\n\n传感器应每季度校准一次。\n\n故障代码 ERR-4021 表示过热。")
    html = ask(library, "ERR-4021 冷却", mode="text")
    card = html.split('<li class="hit"')[1]
    chunk = library.chunk_with(document, "ERR-4021")
    assert f"/documents/{document.uid}/?chunk={chunk.uid}&amp;q=ERR-4021" in card and '#here"' in card
    assert re.search(r"Lines \d+–\d+", card) and "安装" in card
    assert "<span>#1</span>" in card and "not listed" in card
    opened = library.client.get(re.search(r'href="([^"]+chunk=[^"]+)"', card)[1].replace("&amp;", "&")).content.decode()  # type: ignore[index]
    assert "<mark>ERR-4021</mark>" in opened and 'id="here"' in opened


def test_vectors_have_their_own_leg_and_coverage(library: Library) -> None:
    library.add("a.txt", "The sensor has to be calibrated every quarter.", vectors=True)
    library.add("b.txt", "Bananas are yellow and sweet.", vectors=True)
    html = ask(library, "how often must the device be adjusted", mode="vector")
    assert titles(html)[0] == "a.txt"
    assert "vectors cover 100 % of the passages" in html and "2 candidates" in html
    assert "No word in common; found by meaning" in html


def test_a_leg_that_is_not_available_says_why(library: Library, settings: Any) -> None:
    settings.EMBEDDER = "none"
    library.add("a.txt", "heat")
    html = ask(library, "heat")
    assert titles(html) == ["a.txt"]
    assert "not available" in html and "No embedding model is configured." in html


def test_count_scope_and_thresholds_live_in_the_address(library: Library) -> None:
    for number in range(6):
        library.add(f"{number}.txt", f"heat number {number}", folder_path="old" if number < 2 else "")
    assert len(titles(ask(library, "heat", mode="text", count="3"))) == 3
    html = ask(library, "heat", mode="text", count="10", folder="old")
    assert sorted(titles(html)) == ["0.txt", "1.txt"] and '<option value="old" selected>' in html
    assert "further candidates were not shown" in ask(library, "heat", mode="text", count="3")
    html = ask(library, "heat number", mode="text", words_min="900")
    assert 'value="900"' in html
    assert len(titles(ask(library, "heat", mode="nonsense", count="7", words_min="x", vector_min="nan"))) == 5


def test_why_not_by_title_by_text_and_by_link(library: Library) -> None:
    for number in range(4):
        library.add(f"{number}.txt", f"heat heat heat {number}")
    last = library.add("Long report.txt", "heat " + "and many other things without any bearing on it " * 8)
    for typed in (
        "Long report",
        "many other things without any bearing",
        f"http://x/s/1/documents/{last.uid}/",
        str(library.chunks(last)[0].uid),
    ):
        html = ask(library, "heat", mode="text", count="3", why=typed)
        assert "4 others are better: rank 5, and only 3 are shown" in html, typed
        assert "Ask for more results, or use words that stand in it." in html
    html = ask(library, "cold", mode="text", why="Long report")
    assert "None of the words asked for is in it." in html and '<span class="term term--missing">cold</span>' in html
    assert "No document or passage of this base fits that." in ask(library, "heat", why="zzzz-unknown")


def test_why_not_for_a_passage_that_is_off(library: Library) -> None:
    document = library.add("a.txt", "heat")
    with space_scope(library.space.pk):
        chunk_update(actor=library.actor, chunk=library.chunks(document)[0], is_enabled=False)
    html = ask(library, "heat", mode="text", why="a.txt")
    assert "The passage is turned off." in html and "Turn it on in the reader." in html
    assert "Nothing found" in html


def test_nothing_asked_nothing_found_and_a_broken_index(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "See what a question finds here" in ask(library, "")
    assert "Nothing found" in ask(library, "heat", mode="text")

    def broken(**_more: Any) -> None:
        raise Unavailable("The search index is being renewed. Try again in a few minutes.", code="index_outdated")

    monkeypatch.setattr("apps.portal.views.retrieval_test.search_asked", broken)
    html = ask(library, "heat")
    assert "The search could not be run" in html and "is being renewed" in html and 'value="heat"' in html


def test_the_question_is_text(library: Library) -> None:
    library.add("a.txt", "heat <script>alert(1)</script>")
    html = ask(library, '"><script>alert(1)</script>', mode="text", why="<script>alert(2)</script>")
    assert "<script>alert" not in html


def test_members_test_too_and_targets_are_offered(library: Library) -> None:
    library.add("Annual report.txt", "heat")
    assert titles(ask(library, "heat", library.member, mode="text")) == ["Annual report.txt"]
    offered = library.member.get(f"/s/{library.space.pk}/bases/{library.base.uid}/test/targets", {"why": "annual"})
    assert '<option value="Annual report.txt"></option>' in offered.content.decode()
