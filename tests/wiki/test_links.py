"""Links are held by id: whatever pages are called, wherever they lie, whatever goes and comes back, a link means what it meant."""

from __future__ import annotations

import random

import pytest

from apps.common.scope import space_scope
from apps.knowledge.selectors import trash_documents
from apps.knowledge.services import documents_restore
from apps.wiki.models import PageLink, WikiPage
from apps.wiki.selectors import page_at, page_get, shown_content
from apps.wiki.services import PageChange, PageDraft, folder_create, page_change, page_create, page_delete, page_move, page_rename
from tests.wiki.conftest import WikiWorld


def test_renaming_breaks_nothing_and_texts_show_the_address_of_now(wiki: WikiWorld) -> None:
    pump = wiki.add("Pump", slug="entity/pump")
    wiki.add("Hall", "The [[entity/pump|pump]], the [[entity/pump]] and [[Entity/Pump#Parts]].")
    with space_scope(wiki.space.pk):
        page_rename(actor=wiki.member.actor, page=pump, slug="machines/water pump")
    assert wiki.page("hall")["content"] == (
        "The [[machines/water-pump|pump]], the [[machines/water-pump]] and [[machines/water-pump#Parts|Entity/Pump]]."
    )
    assert wiki.page("hall")["version"] == 1, "nobody changed that page"
    assert wiki.page("entity/pump")["slug"] == "machines/water-pump", "the old address leads there"
    assert wiki.member.put(wiki.path("pages/hall"), {"content": wiki.page("hall")["content"], "version": 1}).json()["version"] == 1


def test_an_address_that_changes_hands_takes_no_link_along(wiki: WikiWorld) -> None:
    old = wiki.add("Old", slug="x")
    wiki.add("Hall", "See [[x|it]].")
    wiki.member.put(wiki.path("pages/hall"), {"content": "See [[x|it]] twice: [[x]]."})
    with space_scope(wiki.space.pk):
        page_rename(actor=wiki.member.actor, page=old, slug="y")
    wiki.add("New", slug="x")
    hall = wiki.page("hall")
    assert (hall["content"], hall["version"]) == ("See [[y|it]] twice: [[y]].", 3), "whoever has the old text open gets a conflict"
    assert wiki.links() == {("Hall", "y"): "Old"}
    assert wiki.page("x")["title"] == "New"
    wiki.member.post(wiki.path("revert"), {"slug": "hall", "version": 1})
    assert wiki.links() == {("Hall", "y"): "Old"}, "what is brought back means what it meant"


def test_taking_an_address_back(wiki: WikiWorld) -> None:
    page = wiki.add("A", slug="a")
    with space_scope(wiki.space.pk):
        for slug in ("b", "a", "c", "a"):
            page = page_rename(actor=wiki.member.actor, page=page, slug=slug)
    assert wiki.page("b")["slug"] == wiki.page("c")["slug"] == "a"


@pytest.mark.parametrize("written", ["水泵站", "Pump Station", "PUMP  STATION", "station 1"])
def test_a_title_or_another_name_is_an_address_too(wiki: WikiWorld, written: str) -> None:
    wiki.add("Pump station", slug="entity/ps", aliases=("水泵站", "Station 1"))
    wiki.add("Hall", f"See [[{written}]].")
    assert set(wiki.links().values()) == {"Pump station"}
    wiki.add("Other", aliases=("Pump station",))
    wiki.add("Yard", f"See [[{written}]].")
    expected = "Pump station" if written in ("水泵站", "station 1") else None
    assert {target for (page, _key), target in wiki.links().items() if page == "Yard"} == {expected}, "a name of two pages means neither"
    assert {target for (page, _key), target in wiki.links().items() if page == "Hall"} == {"Pump station"}


def test_deleted_and_brought_back(wiki: WikiWorld) -> None:
    pump = wiki.add("Pump", "Stands in [[hall]].", slug="pump", aliases=("P1",))
    wiki.add("Hall", "Holds the [[pump]].")
    with space_scope(wiki.space.pk):
        page_rename(actor=wiki.member.actor, page=pump, slug="pump-1")
        page_delete(actor=wiki.member.actor, page=pump)
    assert wiki.links() == {("Hall", "pump"): None}
    assert wiki.member.get(wiki.path("pages/pump-1")).status_code == 404
    taken = wiki.add("Taken", slug="pump-1")
    with space_scope(wiki.space.pk):
        gone = list(trash_documents(actor=wiki.admin.actor, base=wiki.wiki))
        assert [document.title for document in gone] == ["Pump"]
        documents_restore(actor=wiki.admin.actor, base=wiki.wiki, documents=gone)
        back = page_get(actor=wiki.member.actor, base=wiki.wiki, page_id=pump.uid)
    assert (back.slug, back.content, back.alias_names) == ("pump-1-2", "Stands in [[hall]].", ["P1"])
    assert wiki.links() == {("Hall", "pump"): "Pump", ("Pump", "hall"): "Hall"}
    assert wiki.page("pump-1")["id"] == str(taken.uid) and wiki.page("pump")["title"] == "Pump"


def test_a_thousand_renames_moves_and_deletions_leave_no_wrong_link(wiki: WikiWorld) -> None:
    """Against a model of what each link means: the page it was made for while that lives, a page made or brought back under its address after."""
    dice = random.Random(20240607)
    count, actor = 24, wiki.member.actor
    with space_scope(wiki.space.pk):
        folders = [folder_create(actor=actor, base=wiki.wiki, name=f"F{number}") for number in range(4)]
        pages = [
            page_create(actor=actor, base=wiki.wiki, draft=PageDraft(title=f"Title {number}", slug=f"s{number}")) for number in range(count)
        ]
        meant: dict[int, dict[str, int]] = {}
        for page in pages:
            targets = dice.sample([other for other in pages if other.pk != page.pk], 4)
            text = " ".join(f"[[{other.slug}|to {other.pk}]]" for other in targets)
            page_change(actor=actor, page=page, change=PageChange(content=text))
            meant[page.pk] = {f"to {other.pk}": other.pk for other in targets}
        alive, serial = {page.pk for page in pages}, count
        for _turn in range(1000):
            page = WikiPage.objects.get(pk=dice.choice(sorted(alive)))
            act = dice.choice(("rename", "rename", "swap", "move", "delete"))
            if act == "rename":
                serial += 1
                page_rename(actor=actor, page=page, slug=dice.choice((f"s{serial}", f"deep/s{serial}", f"改名{serial}")))
            elif act == "swap":  # a new address for one, and its old one for another page
                serial += 1
                other = WikiPage.objects.get(pk=dice.choice(sorted(alive - {page.pk})))
                freed = page.slug
                page_rename(actor=actor, page=page, slug=f"s{serial}")
                page_rename(actor=actor, page=other, slug=freed)
            elif act == "move":
                page_move(actor=actor, page=page, folder=dice.choice([*folders, None]))
            elif len(alive) > 16 and dice.random() < 0.2:
                page_delete(actor=actor, page=page)
                alive.discard(page.pk)
                meant.pop(page.pk)
        wrong = []
        for pk, links in meant.items():
            rows = dict(PageLink.objects.filter(page_id=pk).values_list("label", "target_id"))
            text = shown_content(WikiPage.objects.get(pk=pk))
            for label, target in links.items():
                expected = target if target in alive else None
                shown = text.split(f"|{label}]]")[0].rsplit("[[", 1)[1]
                if rows[label] != expected:
                    wrong.append((pk, label, rows[label], expected))
                elif expected and page_at(actor=actor, base=wiki.wiki, slug=shown).pk != expected:
                    wrong.append((pk, label, shown, expected))
        assert wrong == []
        assert len(alive) < count, "some were deleted"
