"""Lines T14 to T20 of the checklist of contract content 14, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wiki.conftest import WikiWorld


def made(wiki: WikiWorld, **body: Any) -> dict[str, Any]:
    answer = wiki.member.post(wiki.path("pages"), body)
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_t14_a_base_without_a_wiki_says_so_on_every_route(wiki: WikiWorld) -> None:
    for tail in (
        "pages",
        "pages/a",
        "folders",
        "index",
        "stats",
        "search?q=a",
        "lint",
        "issues",
        "revisions/a",
        "proposals",
        "broken-links",
    ):
        answer = wiki.member.get(wiki.path(tail, wiki.base))
        assert answer.status_code == 400, tail
        assert answer.json()["error"].startswith("error code: 1000, error message: Wiki feature is not enabled"), tail


def test_t14_a_base_that_is_not_there_is_answered_by_the_guard(wiki: WikiWorld) -> None:
    for base in (wiki.other_wiki, wiki.other_base):
        answer = wiki.member.get(wiki.path("pages", base))
        assert (answer.status_code, answer.json()["success"], answer.json()["error"]["code"]) == (404, False, 1003)


def test_t14_an_address_with_parts_comes_back_as_it_went(wiki: WikiWorld) -> None:
    page = made(wiki, slug="entity/acme", title="Acme", content="Makes pumps.")
    assert page["slug"] == "entity/acme" and "success" not in page
    assert wiki.page("entity/acme")["id"] == wiki.page("entity%2Facme")["id"] == wiki.page("/entity/acme")["id"] == page["id"]
    assert wiki.member.delete(wiki.path("pages/entity/acme")).status_code == 204
    answer = wiki.member.get(wiki.path("pages/entity/acme"))
    assert (answer.status_code, set(answer.json())) == (404, {"error"})


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("Entity/ACME Corp", "entity/acme-corp"),
        ("实体/水泵 手册", "实体/水泵-手册"),
        ("ＡＢＣ　１２", "abc-12"),
        ("/a//b/../c/", "a/b/c"),
        ('a|b#c[d]"e', "a-b-c-d-e"),
    ],
)
def test_addresses_are_put_into_normal_form(wiki: WikiWorld, given: str, stored: str) -> None:
    assert made(wiki, slug=given, title="x")["slug"] == stored


def test_an_address_is_made_of_the_title_and_a_title_of_the_address(wiki: WikiWorld) -> None:
    assert made(wiki, title="Pump Station 3")["slug"] == "pump-station-3"
    assert made(wiki, slug="topics/valves")["title"] == "valves"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "slug"),
        ({"title": "???"}, 400, "slug"),
        ({"slug": "a", "page_type": "log"}, 400, "page_type"),
        ({"slug": "a", "status": "gone"}, 400, "status"),
        ({"slug": "a", "title": "x" * 513}, 400, "title"),
        ({"slug": "a", "aliases": ["x" * 256]}, 400, "aliases"),
        ({"slug": "a", "folder_id": "00000000-0000-0000-0000-000000000009"}, 404, "folder_id"),
        ({"slug": "Taken"}, 409, "slug"),
    ],
)
def test_what_cannot_be_a_page_names_its_field(wiki: WikiWorld, body: dict[str, Any], status: int, field: str) -> None:
    made(wiki, slug="taken")
    answer = wiki.member.post(wiki.path("pages"), body)
    assert (answer.status_code, answer.json().get("field")) == (status, field)
    assert isinstance(answer.json()["error"], str)
    assert wiki.member.get(wiki.path("pages")).json()["total"] == 1


def test_t15_versions(wiki: WikiWorld) -> None:
    made(wiki, slug="a", title="A", content="one", editSummary="first")
    put = wiki.path("pages/a")
    assert wiki.member.put(put, {"content": "one", "version": 1}).json()["version"] == 1, "nothing changed"
    second = wiki.member.put(put, {"content": "two", "version": 1, "editSummary": "second"}).json()
    assert (second["version"], second["last_edit_source"], second["editSummary"]) == (2, "user", "second")
    late = wiki.colleague.put(put, {"content": "mine", "version": 1})
    assert (late.status_code, late.json()["current_version"]) == (409, 2)
    assert wiki.colleague.put(put, {"aliases": ["Other"], "version": 2}).json()["version"] == 3
    assert wiki.member.put(put, {"title": "Last"}).json()["version"] == 4, "without a version the last write wins"
    listed = wiki.member.get(wiki.path("revisions/a")).json()
    assert (listed["total"], listed["current_version"]) == (3, 4)
    assert [row["version"] for row in listed["revisions"]] == [3, 2, 1]
    assert all("content" not in row for row in listed["revisions"])
    assert listed["revisions"][1]["editSummary"] == "second"
    assert listed["revisions"][0]["aliases"] == ["Other"]
    assert listed["revisions"][0]["editorMember"] == {"id": str(wiki.colleague.user.pk), "name": wiki.colleague.user.username}
    one = wiki.member.get(wiki.path("revisions/a?version=1")).json()
    assert (one["content"], one["title"], one["editorSourceType"]) == ("one", "A", "user")
    for asked, status in (("9", 404), ("4", 404), ("0", 400), ("x", 400)):
        assert wiki.member.get(wiki.path(f"revisions/a?version={asked}")).status_code == status, asked


def test_t15_bringing_back_makes_a_version(wiki: WikiWorld) -> None:
    made(wiki, slug="a", title="A", content="one", aliases=["First"])
    wiki.member.put(wiki.path("pages/a"), {"content": "two", "title": "B", "aliases": []})
    wiki.member.put(wiki.path("pages/a"), {"content": "three"})
    back = wiki.member.post(wiki.path("revert"), {"slug": "a", "version": 1}).json()
    assert [back[name] for name in ("version", "title", "content", "aliases", "last_edit_source")] == [4, "A", "one", ["First"], "revert"]
    assert [row["version"] for row in wiki.member.get(wiki.path("revisions/a")).json()["revisions"]] == [3, 2, 1]
    for version, status in ((4, 400), (9, 404), (0, 400)):
        assert wiki.member.post(wiki.path("revert"), {"slug": "a", "version": version}).status_code == status
    assert wiki.member.post(wiki.path("revert"), {"slug": "none", "version": 1}).status_code == 404


def test_t16_links_of_a_text(wiki: WikiWorld) -> None:
    target = made(wiki, slug="entity/pump-station", title="Pump station")
    text = "See [[Entity/Pump Station|the station]], [[entity/pump-station]] and [[Nowhere|gone]]. `[[code]]`\n\n```\n[[fence]]\n```\n"
    page = made(wiki, slug="a", title="A", content=text)
    assert page["out_links"] == ["entity/pump-station", "nowhere"]
    assert wiki.page("entity/pump-station")["in_links"] == ["a"]
    late = made(wiki, slug="nowhere", title="Nowhere")
    assert wiki.page("nowhere")["in_links"] == ["a"], "a page made later is linked at once"
    wiki.member.delete(wiki.path("pages/entity/pump-station"))
    assert wiki.page("a")["out_links"] == ["entity/pump-station", "nowhere"], "a dead link stays in the text"
    broken = wiki.member.get(wiki.path("broken-links")).json()
    assert [(row["key"], row["label"], row["pages"]) for row in broken] == [("entity/pump-station", "the station", ["a"])]
    again = made(wiki, slug="entity/pump-station", title="Again")
    assert wiki.member.get(wiki.path("broken-links")).json() == []
    assert wiki.member.post(wiki.path("rebuild-links")).json() == {"message": "Links rebuilt successfully"}
    assert wiki.page("entity/pump-station")["in_links"] == ["a"]
    assert len({target["id"], late["id"], again["id"]}) == 3


def test_t17_folders(wiki: WikiWorld) -> None:
    def folder(name: str, parent: str = "") -> Any:
        return wiki.member.post(wiki.path("folders"), {"name": name, "parent_id": parent})

    people = folder("People").json()
    assert (people["path"], people["depth"], people["parent_id"], people["page_count"]) == ("People", 1, "", 0)
    team = folder("Team", people["id"]).json()
    assert (team["path"], team["depth"], team["parent_id"]) == ("People/Team", 2, people["id"])
    assert folder("People").status_code == 409
    for bad in (" ", "a/b", "a|b", "a／b"):
        assert (folder(bad).status_code, folder(bad).json()["field"]) == (400, "name"), bad
    assert folder("x", "00000000-0000-0000-0000-000000000009").status_code == 404
    inside = {"parent_id": team["id"], "move_parent": True}
    assert wiki.member.put(wiki.path(f"folders/{people['id']}"), inside).status_code == 400
    page = made(wiki, slug="ada", title="Ada", page_type="entity", folder_id=team["id"])
    assert (page["folder_id"], page["category_path"], page["wiki_path"], page["depth"]) == (
        team["id"],
        ["People", "Team"],
        "People/Team/Ada",
        2,
    )
    for held in (people, team):
        assert wiki.member.delete(wiki.path(f"folders/{held['id']}")).status_code == 409
    moved = wiki.member.put(wiki.path(f"folders/{team['id']}"), {"name": "Crew", "parent_id": "", "move_parent": True}).json()
    assert (moved["path"], moved["page_count"]) == ("Crew", 1)
    assert wiki.page("ada")["category_path"] == ["Crew"]
    assert wiki.member.put(wiki.path(f"folders/{team['id']}"), {"parent_id": people["id"]}).json()["path"] == "Crew", (
        "only with move_parent"
    )
    assert wiki.member.delete(wiki.path(f"folders/{people['id']}")).status_code == 204


def test_t17_counts_and_which_folders_are_shown(wiki: WikiWorld) -> None:
    ids = {}
    for path in ("a", "a/b", "a/b/c", "empty", "manual"):
        above, _slash, name = path.rpartition("/")
        ids[path] = wiki.member.post(wiki.path("folders"), {"name": name, "parent_id": ids.get(above, "")}).json()["id"]
    made(wiki, slug="1", page_type="entity", folder_id=ids["a"])
    made(wiki, slug="2", page_type="concept", folder_id=ids["a/b/c"])
    made(wiki, slug="3", page_type="concept", folder_id=ids["a/b/c"], status="archived")
    made(wiki, slug="4", folder_id=ids["manual"])

    def level(query: str = "") -> dict[str, int]:
        return {row["name"]: row["page_count"] for row in wiki.member.get(wiki.path(f"folders{query}")).json()["folders"]}

    assert level() == {"a": 2, "manual": 1}
    assert level("?page_types=concept") == {"a": 1}
    assert level("?page_types=summary,entity,concept,index,synthesis,comparison") == {"a": 2, "empty": 0}
    assert level(f"?parent_id={ids['a']}") == {"b": 1}
    found = wiki.member.get(wiki.path(f"folders?parent_id={ids['a']}")).json()
    assert (found["parent_id"], found["folders"][0]["has_children"]) == (ids["a"], True)
    assert wiki.member.get(wiki.path("folders?page_types=log")).status_code == 400


def test_moving_makes_no_version(wiki: WikiWorld) -> None:
    folder = wiki.member.post(wiki.path("folders"), {"name": "F"}).json()["id"]
    made(wiki, slug="a/b")
    moved = wiki.member.put(wiki.path("move-page"), {"slug": "a/b", "folder_id": folder}).json()
    assert (moved["folder_id"], moved["version"]) == (folder, 1)
    assert wiki.member.put(wiki.path("move-page"), {"slug": "a/b", "folder_id": ""}).json()["folder_id"] == ""
    for body in ({"slug": "none", "folder_id": folder}, {"slug": "a/b", "folder_id": "nonsense"}):
        assert wiki.member.put(wiki.path("move-page"), body).status_code == 404


def test_t19_figures_and_issues(wiki: WikiWorld) -> None:
    from apps.common.scope import space_scope
    from apps.wiki.services import issue_raise

    a = wiki.add("A", "To [[b]] and [[none]].")
    wiki.add("B", page_type="entity")
    wiki.add("C", page_type="entity")
    with space_scope(wiki.space.pk):
        issue_raise(actor=wiki.system, page=a, kind="contradiction", key="x", description="Two numbers", document_uids=["d1"])
    stats = wiki.member.get(wiki.path("stats")).json()
    names = ("total_pages", "pages_by_type", "total_links", "orphan_count", "pending_tasks", "pending_issues", "is_active", "broken_links")
    assert [stats[name] for name in names] == [3, {"": 1, "entity": 2}, 1, 2, 0, 1, False, 1]
    assert [page["title"] for page in stats["recent_updates"]] == ["C", "B", "A"]
    issues = wiki.member.get(wiki.path("issues?slug=a&status=pending")).json()
    assert [(i["slug"], i["issue_type"], i["status"], i["suspected_knowledge_ids"], i["reported_by"]) for i in issues] == [
        ("a", "contradictory_facts", "pending", ["d1"], "pipeline")
    ]
    assert issues[0]["reportedAt"] == issues[0]["created_at"]
    assert wiki.member.get(wiki.path("issues?status=ignored")).json() == wiki.member.get(wiki.path("issues?slug=b")).json() == []
    put = wiki.path(f"issues/{issues[0]['id']}/status")
    assert wiki.member.put(put, {"status": "closed"}).status_code == 400
    assert wiki.member.put(wiki.path(f"issues/{issues[0]['id']}/status", wiki.second_wiki), {"status": "ignored"}).status_code == 404
    assert wiki.member.put(put, {"status": "ignored"}).json() == {"message": "Issue status updated successfully"}
    assert len(wiki.member.get(wiki.path("issues?status=ignored")).json()) == 1
    with space_scope(wiki.space.pk):
        issue_raise(actor=wiki.system, page=a, kind="contradiction", key="x")
    assert wiki.member.get(wiki.path("issues?status=pending")).json() == [], "what people ignore stays ignored"


def test_t20_members_write_and_strangers_do_not(wiki: WikiWorld) -> None:
    made(wiki, slug="a")
    assert wiki.member.put(wiki.path("pages/a"), {"content": "x"}).status_code == 200
    assert wiki.outsider.put(wiki.path("pages/a"), {"content": "y"}).status_code == 404
    reading = wiki.key(wiki.space, capabilities=["retrieve"])
    address = f"/api/v1/{wiki.path('pages/a')}"
    assert reading.get(address).status_code == 200
    assert reading.put(address, {"content": "y"}, content_type="application/json").status_code == 403
    limited = wiki.key(wiki.space, capabilities=["retrieve"], kb_uids=[str(wiki.second_wiki.uid)])
    assert limited.get(address).status_code in (403, 404)
    assert wiki.page("a")["content"] == "x"


def test_both_proxied_families_say_conflict_in_their_words(wiki: WikiWorld) -> None:
    made(wiki, slug="x/a", content="one")
    family = f"/v1/tenants/{wiki.space.pk}/knowledge/bases/{wiki.wiki.uid}/wiki"
    assert wiki.member.get(f"{family}/pages/x/a").json()["content"] == "one"
    assert wiki.member.get(f"{family}/revisions/x/a").json() == {"revisions": [], "total": 0, "current_version": 1}
    wiki.member.put(f"{family}/pages/x/a", {"content": "two", "version": 1})
    late = wiki.member.put(f"{family}/pages/x/a", {"content": "three", "version": 1})
    assert (late.status_code, late.json()["code"], late.json()["current_version"]) == (409, "KNOWLEDGE_CONFLICT", 2)
    assert wiki.member.get(f"{family}/revisions/x/a?version=7").json()["code"] == "NOT_FOUND"
    assert wiki.member.post(f"{family}/auto-fix").status_code == 404, "never proxied"


def test_the_index_goes_by_type_in_pieces(wiki: WikiWorld) -> None:
    for number in range(3):
        wiki.add(f"E{number}", page_type="entity", summary="s")
    wiki.add("Index", "Welcome.", page_type="index", slug="index")
    first = wiki.member.get(wiki.path("index?limit=2")).json()
    assert (first["intro"], first["version"]) == ("Welcome.", 1)
    groups = {group["type"]: group for group in first["groups"]}
    assert list(groups) == ["summary", "entity", "concept", "synthesis", "comparison"]
    assert (groups["entity"]["total"], [item["slug"] for item in groups["entity"]["items"]]) == (3, ["e0", "e1"])
    cursor = groups["entity"]["next_cursor"]
    (rest,) = wiki.member.get(wiki.path(f"index?limit=2&types=entity&cursor={cursor}")).json()["groups"]
    assert ([item["slug"] for item in rest["items"]], rest["next_cursor"]) == (["e2"], "")
    assert wiki.member.get(wiki.path("index?cursor=nonsense")).status_code == 400


def test_lists_filter_and_order(wiki: WikiWorld) -> None:
    wiki.add("Valve", "Closes.", page_type="concept", aliases=("Stopcock",))
    wiki.add("Acme", "Makes valves.", page_type="entity")
    wiki.add("Old", status="archived")

    def titles(query: str) -> list[str]:
        return [page["title"] for page in wiki.member.get(wiki.path(f"pages?{query}")).json()["pages"]]

    assert titles("sort_by=title&sort_order=asc") == ["Acme", "Old", "Valve"]
    assert titles("page_type=entity,concept&sort_by=title") == ["Valve", "Acme"]
    assert titles("page_type=manual") == ["Old"]
    assert titles("query=stopcock") == ["Valve"] and titles("query=MAKES") == ["Acme"]
    assert titles("status=archived") == ["Old"] and titles("page_size=1&page=2&sort_by=title&sort_order=asc") == ["Old"]
    listed = wiki.member.get(wiki.path("pages?page_size=2")).json()
    assert [listed[name] for name in ("total", "page", "page_size", "total_pages")] == [3, 1, 2, 2]


def test_search_ranks_title_then_names_then_text(wiki: WikiWorld) -> None:
    wiki.add("In the text", "About the 水泵 of hall 3.")
    wiki.add("By summary", summary="水泵 in short")
    wiki.add("By name", aliases=("水泵 A",))
    wiki.add("水泵", "Title.")
    wiki.add("Away", "水泵", status="archived")
    found = wiki.member.get(wiki.path("search?q=水泵")).json()["pages"]
    assert [page["title"] for page in found] == ["水泵", "By name", "By summary", "In the text"]
    assert wiki.member.get(wiki.path("search?q=%20")).status_code == 400
    assert [page["title"] for page in wiki.member.get(wiki.path("search?q=hall+about")).json()["pages"]] == ["In the text"]
    assert wiki.member.get(wiki.path("search?q=(")).json() == {"pages": []}, "no pattern, just words"


def test_lint_names_what_is_wrong_and_fixing_puts_it_right(wiki: WikiWorld) -> None:
    wiki.add("Pump", "A pump moves water through the pipes of the plant, all day long.", page_type="entity", slug="pump")
    wiki.add("Hall", "In the hall stands the pump and [[nowhere]] and [[gone|words]], which is all there is to say about it.", slug="hall")
    wiki.add("Thin", "short")
    lint = wiki.member.get(wiki.path("lint")).json()
    seen = {(issue["type"], issue["page_slug"], issue["target_slug"]) for issue in lint["issues"]}
    assert seen == {
        ("orphan_page", "pump", ""),
        ("orphan_page", "hall", ""),
        ("orphan_page", "thin", ""),
        ("broken_link", "hall", "nowhere"),
        ("broken_link", "hall", "gone"),
        ("missing_cross_ref", "hall", "pump"),
        ("empty_content", "thin", ""),
    }
    assert lint["health_score"] == 100 - 25 - 10 - 3 - 15
    assert wiki.member.post(wiki.path("auto-fix")).json()["fixed"] == 2
    assert "and nowhere and [[gone|words]]" in wiki.page("hall")["content"]
    assert wiki.page("thin")["status"] == "archived"


def test_handles_of_passages_never_stay_in_a_text(wiki: WikiWorld) -> None:
    assert made(wiki, slug="a", content="It runs [c003]. [c12] stays.", summary="s [c1234]")["content"] == "It runs. [c12] stays."
    assert wiki.page("a")["summary"] == "s"
