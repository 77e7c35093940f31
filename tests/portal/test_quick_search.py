"""Search over the space: the palette's list and the page of results."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apps.common.errors import Unavailable
from apps.common.scope import space_scope
from apps.knowledge.services import base_create, chunk_update, documents_delete
from tests.support.kit import Kit
from tests.support.library import Library

PALETTE = {"HX-Request": "true", "HX-Target": "palette-results"}


def find(library: Library, q: str, **query: Any) -> str:
    return library.page(f"/s/{library.space.pk}/search", q=q, **query)


def palette(library: Library, q: str) -> str:
    answer = library.client.get(f"/s/{library.space.pk}/search", {"q": q}, headers=PALETTE)
    assert answer.status_code == 200 and "<html" not in answer.content.decode()
    return str(answer.content.decode())


def second_base(library: Library, name: str) -> Kit:
    with space_scope(library.space.pk):
        return Kit(library.space, library.actor, base_create(actor=library.actor, values={"name": name}))


def test_every_page_offers_the_search(library: Library) -> None:
    html = library.page(f"/s/{library.space.pk}/")
    assert f'hx-get="/s/{library.space.pk}/search"' in html
    assert 'data-commands role="group"' in html


def test_two_characters_find_names_and_contents(library: Library) -> None:
    by_name = library.add("校准记录.txt", "温度计的登记表")
    by_text = library.add("b.md", "# 传感器\n\n传感器应每季度校准一次。")
    html = palette(library, "校准")
    documents, passages = html.split('aria-label="Passages"')
    assert f'href="/s/{library.space.pk}/documents/{by_name.uid}/"' in documents and "<mark>校准</mark>记录.txt" in documents
    chunk = library.chunk_with(by_text, "校准")
    assert f"/documents/{by_text.uid}/?chunk={chunk.uid}&amp;q=%E6%A0%A1%E5%87%86#here" in passages
    assert "每季度<mark>校准</mark>一次" in passages and "Lines 1–3 · Base" in passages


def test_results_are_grouped_by_base_and_narrowed(library: Library) -> None:
    library.add("a.txt", "heat in the first base")
    other = second_base(library, "Second")
    document = other.upload("b.txt", "heat in the second base")
    from tests.support.kit import work_all

    work_all("parse")
    html = find(library, "heat")
    assert re.findall(r'results__title">.*?<a href="[^"]+">([^<]+)</a>', html) in (["Base", "Second"], ["Second", "Base"])
    html = find(library, "heat", base=str(other.base.uid))
    assert "b.txt" in html and ">a.txt<" not in html
    assert "1 searched" in html
    html = find(library, "b.txt", kind="documents")
    assert f"/documents/{document.uid}/" in html and 'id="here"' not in html


def test_many_results_have_pages(library: Library) -> None:
    library.add("long.md", "\n\n".join(f"## Part {n}\n\nheat number {n}, " + "told at length. " * 30 for n in range(45)))
    first, second = find(library, "heat", kind="passages"), find(library, "heat", kind="passages", page="2")
    assert first.count('<li class="result" data-row>') == second.count('<li class="result" data-row>') == 20
    assert re.search(r"21–40 of \d+", second)
    links = lambda html: set(re.findall(r"chunk=([0-9a-f-]{36})", html))  # noqa: E731
    assert not links(first) & links(second)


def test_nothing_found_says_where_it_was_looked_for_and_what_to_do(library: Library) -> None:
    library.add("a.txt", "heat")
    html = find(library, "zzqqxx", kind="passages")
    assert "Nothing found for “zzqqxx”" in html and "Searched: Base" in html and "part of a code" in html
    assert "Nothing found for “zzqqxx”." in palette(library, "zzqqxx")
    assert "Search by meaning as well" in palette(library, "zzqqxx")


def test_nothing_asked(library: Library) -> None:
    assert "Two Chinese characters are enough." in find(library, "")
    assert palette(library, "").strip() == ""


def test_what_shares_no_word_stands_apart(library: Library) -> None:
    library.add("a.txt", "The sensor has to be calibrated every quarter.", vectors=True)
    html = find(library, "wie oft wird das Gerät justiert")
    assert "Nothing found for" in html
    assert "a.txt" in html.split("Near in meaning, without these words")[1]


def test_a_broken_index_keeps_what_was_typed(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_more: Any) -> None:
        raise Unavailable("The search index is being renewed. Try again in a few minutes.", code="index_outdated")

    monkeypatch.setattr("apps.portal.finding.space_search.search_asked", broken)
    html = find(library, "heat & cold")
    assert "The search could not be run" in html and 'value="heat &amp; cold"' in html and "Try again" in html
    assert 'role="alert"' in palette(library, "heat")


def test_off_and_deleted_passages_are_gone_at_once(library: Library) -> None:
    document = library.add("a.txt", "heat alone")
    with space_scope(library.space.pk):
        chunk_update(actor=library.actor, chunk=library.chunks(document)[0], is_enabled=False)
    assert "chunk=" not in palette(library, "heat")
    other = library.add("b.txt", "heat again")
    assert "chunk=" in palette(library, "heat")
    with space_scope(library.space.pk):
        documents_delete(actor=library.actor, base=library.base, documents=[other])
    assert "chunk=" not in palette(library, "heat") and "Nothing found for “b.txt”." in palette(library, "b.txt")


def test_the_query_and_the_contents_are_text(library: Library) -> None:
    library.add('"><script>alert(1)<_script>.txt', "heat <script>alert(1)</script> <img src=x onerror=alert(1)>")
    for html in (find(library, "<script>alert(1)</script>"), palette(library, "script"), find(library, "heat")):
        assert "<script>alert" not in html and "<img src=x" not in html


def test_another_space_stays_out(library: Library) -> None:
    library.add("a.txt", "heat")
    stranger = Library.person(library, "sam", "member")
    from apps.spaces.models import Membership

    Membership.objects.filter(user__username="sam").delete()
    assert stranger.get(f"/s/{library.space.pk}/search", {"q": "heat"}).status_code == 404
