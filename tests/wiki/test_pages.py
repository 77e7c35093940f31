"""The wiki tab as people use it: without script, every step is a page or a form."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from apps.common.scope import space_scope
from apps.wiki.drafts import PageChange
from apps.wiki.models import WikiPage
from apps.wiki.services import page_propose
from tests.wiki.conftest import WikiWorld


def address(wiki: WikiWorld, name: str, *more: Any) -> str:
    return reverse(name, args=[wiki.space.pk, wiki.wiki.uid, *more])


def form_of(page: WikiPage, **values: Any) -> dict[str, Any]:
    given = {"title": page.title, "content": page.content, "summary": page.summary, "aliases": "", "page_type": "manual", "note": ""}
    return {**given, "status": "published", "version": page.version, **values}


def test_the_list_shows_folders_types_and_counts(wiki: WikiWorld) -> None:
    folder = wiki.member.post(wiki.path("folders"), {"name": "Plant"}).json()
    wiki.add("Pump", page_type="entity", summary="Moves water")
    wiki.member.put(wiki.path("move-page"), {"slug": "pump", "folder_id": folder["id"]})
    wiki.add("Notes")
    shown = wiki.member.client.get(address(wiki, "base-wiki"))
    body = shown.content.decode()
    assert shown.status_code == 200
    for words in ("All pages", "Plant", "Not in a folder", "Entities", "Pages made by hand", "Moves water", "2 pages"):
        assert words in body, words
    inside = wiki.member.client.get(address(wiki, "base-wiki") + f"?folder={folder['id']}").content.decode()
    assert ">Pump</a>" in inside and ">Notes</a>" not in inside
    by_hand = wiki.member.client.get(address(wiki, "base-wiki") + "?type=manual").content.decode()
    assert ">Notes</a>" in by_hand and ">Pump</a>" not in by_hand
    assert ">Pump</a>" in wiki.member.client.get(address(wiki, "base-wiki") + "?q=WATER").content.decode()


def test_a_base_without_a_wiki_has_no_tab(wiki: WikiWorld) -> None:
    documents = wiki.member.client.get(reverse("base-documents", args=[wiki.space.pk, wiki.base.uid])).content.decode()
    assert "/wiki" not in documents
    with_wiki = wiki.member.client.get(reverse("base-documents", args=[wiki.space.pk, wiki.wiki.uid])).content.decode()
    assert address(wiki, "base-wiki") in with_wiki


def test_an_admin_turns_the_wiki_on_in_the_settings(wiki: WikiWorld) -> None:
    settings = reverse("base-settings", args=[wiki.space.pk, wiki.base.uid])
    form = wiki.admin.client.get(settings).context["form"]
    values = {name: "" if form[name].value() is None else form[name].value() for name in form.fields}
    values = {name: value for name, value in values.items() if value is not False} | {"wiki": "on"}
    assert wiki.admin.client.post(settings, values).status_code == 302
    wiki.base.refresh_from_db()
    assert wiki.base.indexing_strategy["wiki_enabled"] is True


def test_reading_links_backlinks_and_broken_ones(wiki: WikiWorld) -> None:
    pump = wiki.add("Pump", "Moves **water**, see [[hall|the hall]] and [[nowhere]] <script>alert(1)</script>")
    hall = wiki.add("Hall", "Holds the [[Pump]].")
    shown = wiki.member.client.get(address(wiki, "wiki-page", pump.uid)).content.decode()
    assert f'<a href="{address(wiki, "wiki-page", hall.uid)}" class="wiki-link"' in shown and ">the hall</a>" in shown
    assert "wiki-link--broken" in shown and f"{address(wiki, 'wiki-new')}?slug=nowhere" in shown
    assert "<strong>water</strong>" in shown and "alert(1)" not in shown
    assert ">Hall</a>" in shown, "linked from"


def test_writing_a_page_and_what_was_wrong_with_it(wiki: WikiWorld) -> None:
    new = address(wiki, "wiki-new")
    bad = wiki.member.client.post(new, {"title": " ", "content": "kept"})
    assert bad.status_code == 422 and "kept" in bad.content.decode()
    made = wiki.member.client.post(new, {"title": "Pump", "content": "Text", "page_type": "entity", "aliases": "P1\nP2", "note": "first"})
    assert made.status_code == 302
    page = wiki.page("pump")
    assert [page[name] for name in ("page_type", "aliases", "content", "editSummary")] == ["entity", ["P1", "P2"], "Text", "first"]
    again = wiki.member.client.post(new, {"title": "Pump", "content": "kept too"})
    assert again.status_code == 422 and "kept too" in again.content.decode() and "has this address" in again.content.decode()


def test_two_people_on_one_page_lose_nothing(wiki: WikiWorld) -> None:
    page = wiki.add("Pump", "One line.\n")
    edit = address(wiki, "wiki-edit", page.uid)
    assert wiki.colleague.client.post(edit, form_of(page, content="Theirs.", note="theirs")).status_code == 302
    late = wiki.member.client.post(edit, form_of(page, content="Mine.", note="mine"))
    shown = late.content.decode()
    assert late.status_code == 409
    assert "Theirs." in shown and "Mine." in shown and 'name="version" value="2"' in shown
    assert wiki.page("pump")["content"] == "Theirs."
    assert wiki.member.client.post(edit, form_of(page, content="Mine.", note="mine", version=2)).status_code == 302
    assert (wiki.page("pump")["content"], wiki.page("pump")["version"]) == ("Mine.", 3)
    kept = wiki.member.get(wiki.path("revisions/pump?version=2")).json()
    assert (kept["content"], kept["editSummary"]) == ("Theirs.", "theirs")


def test_history_shows_lines_and_words_and_brings_back(wiki: WikiWorld) -> None:
    page = wiki.add("Pump", "First line\nIt turns left\nLast line")
    wiki.member.put(wiki.path("pages/pump"), {"content": "First line\nIt turns right\nLast line", "title": "Pump two"})
    history = wiki.member.client.get(address(wiki, "wiki-history", page.uid)).content.decode()
    assert "Version 2" in history and "Version 1" in history and wiki.member.user.username in history
    diff = wiki.member.client.get(address(wiki, "wiki-version", page.uid, 1)).content.decode()
    assert "<del>left</del>" in diff and "<ins>right</ins>" in diff and "<ins> two</ins>" in diff
    back = wiki.member.client.post(address(wiki, "wiki-version", page.uid, 1), {"seen": "2"})
    assert back.status_code == 302
    now = wiki.page("pump")
    assert (now["version"], now["content"], now["title"], now["last_edit_source"]) == (3, page.content, "Pump", "revert")
    stale = wiki.member.client.post(address(wiki, "wiki-version", page.uid, 1), {"seen": "2"})
    assert stale.status_code == 409


def test_moving_asks_first_and_works_by_keyboard(wiki: WikiWorld) -> None:
    page = wiki.add("Pump")
    folder = wiki.member.post(wiki.path("folders"), {"name": "Plant"}).json()["id"]
    move = address(wiki, "wiki-move")
    asked = wiki.member.client.get(move, {"ids": str(page.uid), "folder": folder}).content.decode()
    assert "Into: Plant" in asked and "Pump" in asked and wiki.page("pump")["folder_id"] == ""
    assert wiki.member.client.post(move, {"ids": str(page.uid), "folder": folder}).status_code == 302
    assert wiki.page("pump")["folder_id"] == folder
    assert wiki.member.client.post(move, {"folder": folder}).status_code == 400


def test_folders_by_dialogs(wiki: WikiWorld) -> None:
    client = wiki.member.client
    assert client.post(address(wiki, "wiki-folder-new"), {"name": "Plant", "parent": ""}).status_code == 302
    plant = wiki.member.get(wiki.path("folders?page_types=entity,concept")).json()["folders"][0]["id"]
    again = client.post(address(wiki, "wiki-folder-new"), {"name": "Plant", "parent": ""})
    assert again.status_code == 422 and "already" in again.content.decode()
    assert client.post(address(wiki, "wiki-folder-new"), {"name": "Hall", "parent": plant}).status_code == 302
    assert client.post(address(wiki, "wiki-folder-edit", plant), {"name": "Works", "parent": ""}).status_code == 302
    level = client.get(address(wiki, "wiki-level") + f"?folder={plant}").content.decode()
    assert "Hall" in level
    held = client.post(address(wiki, "wiki-folder-delete", plant))
    assert held.status_code == 409 and "not empty" in held.content.decode()


def test_broken_links_are_put_right_in_bulk(wiki: WikiWorld) -> None:
    wiki.add("A", "To [[gone|the thing]] and [[away]].")
    wiki.add("B", "To [[gone]].")
    wiki.add("Target")
    links = address(wiki, "wiki-links")
    shown = wiki.member.client.get(links).content.decode()
    assert 'value="gone"' in shown and 'value="away"' in shown and "Pages nobody links to" in shown
    assert wiki.member.client.post(links, {"keys": ["gone"], "do": "link", "target": "Target"}).status_code == 302
    assert wiki.page("a")["content"] == "To [[target|the thing]] and [[away]]."
    assert wiki.page("b")["content"] == "To [[target|gone]]."
    assert wiki.member.client.post(links, {"keys": ["away"], "do": "plain"}).status_code == 302
    assert wiki.page("a")["content"] == "To [[target|the thing]] and away."
    assert wiki.links() == {("A", "target"): "Target", ("B", "target"): "Target"}
    assert wiki.member.client.post(links, {"do": "plain"}).status_code == 422


def test_a_proposal_is_seen_and_taken_over_or_put_aside(wiki: WikiWorld) -> None:
    page = wiki.add("Pump", "By hand.")
    with space_scope(wiki.space.pk):
        first = page_propose(actor=wiki.system, page=page, change=PageChange(content="By the run."), note="new source")
    listed = wiki.member.client.get(address(wiki, "wiki-proposals-page")).content.decode()
    assert "Pump" in listed and "new source" in listed
    one = address(wiki, "wiki-proposal-page", first.uid)
    assert "the run" in wiki.member.client.get(one).content.decode()
    assert wiki.member.client.post(one, {"do": "accept", "seen": "1"}).status_code == 302
    assert (wiki.page("pump")["content"], wiki.page("pump")["version"]) == ("By the run.", 2)
    assert wiki.member.client.post(one, {"do": "reject"}).status_code == 409
    with space_scope(wiki.space.pk):
        second = page_propose(actor=wiki.system, page=page, change=PageChange(content="Again."))
    assert wiki.member.client.post(address(wiki, "wiki-proposal-page", second.uid), {"do": "reject"}).status_code == 302
    assert wiki.page("pump")["content"] == "By the run."


def test_a_hit_of_a_search_opens_the_page(wiki: WikiWorld) -> None:
    page = wiki.add("Pump", "Moves water.")
    reader = reverse("document-reader", args=[wiki.space.pk, page.document.uid])
    answer = wiki.member.client.get(reader)
    assert (answer.status_code, answer.headers["Location"]) == (302, address(wiki, "wiki-page", page.uid))


def test_moderators_see_metadata_and_no_text(wiki: WikiWorld) -> None:
    page = wiki.add("Pump", "Secret sentence.", page_type="entity")
    user = wiki.outsider.user
    user.is_staff = user.is_superuser = True
    user.save()
    listed = wiki.outsider.client.get(reverse("admin:wiki_wikipage_changelist"))
    detail = wiki.outsider.client.get(reverse("admin:wiki_wikipage_change", args=[page.pk]))
    assert listed.status_code == detail.status_code == 200
    assert "Pump" in listed.content.decode() and "Secret" not in listed.content.decode() + detail.content.decode()
    assert wiki.outsider.client.get(reverse("admin:wiki_wikiissue_changelist")).status_code == 200
