"""What each hosted service has of its own: expiring tokens, trees, kinds of documents, attachments."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from openpyxl import load_workbook

from apps.sources.plugins.notes import feishu_blocks, marks, storage_format
from apps.sources.plugins.protocol import SourceError
from tests.support.hosted import benches
from tests.support.hosted.benches import TEXTS, Bench

Open = Callable[[type[Bench]], Any]


@pytest.fixture
def opened(settings: Any) -> Iterator[Open]:
    settings.FETCH_ALLOW = ["127.0.0.1/32"]
    made: list[Bench] = []

    def start(kind: type[Bench]) -> Bench:
        made.append(kind())
        return made[-1]

    yield start
    for bench in made:
        bench.close()


def test_a_feishu_document_reads_as_markdown(opened: Open) -> None:
    found = opened(benches.FeishuBench).run()

    assert found.texts["wikalpha"] == (
        "# Alpha page\n\n## Overview\n\n**The pump is replaced every five years.** see [here](https://example.com/)\n\n"
        "- outer point\n  - inner point\n\n1. first\n2. second\n\n```python\nx = 1\n```\n\n"
        "| Name | Value |\n| --- | --- |\n| pump | 5 years |\n"
    )
    assert found.items["wikalpha"].folder == "Handbook/Guides"
    assert "wikFolder" not in found.items  # a mind map has no text to read


def test_a_token_that_expired_is_renewed_once(opened: Open) -> None:
    bench = opened(benches.FeishuBench)
    link = bench.link()
    with link.web:
        bench.connector.check(link)
        bench.fake.generation += 1  # the platform forgets the old one
        pages = list(bench.connector.listing(link, None))
    assert sum(len(page.items) for page in pages) == 3
    asked = [path for method, path, _headers in bench.server.gate.seen if "tenant_access_token" in path]
    assert len(asked) == 2


def test_the_wiki_is_opened_level_by_level(opened: Open) -> None:
    bench = opened(benches.FeishuBench)
    with bench.link().web:
        link = bench.link()
        spaces = bench.connector.resources(link)
        nodes = bench.connector.resources(link, "7001")
        inner = bench.connector.resources(link, "7001:wikFolder")

    assert [(space.external_id, space.name, space.has_children) for space in spaces] == [
        ("7001", "Handbook", True),
        ("7002", "Empty", True),
    ]
    assert [(node.external_id, node.has_children) for node in nodes] == [("7001:wikFolder", True)]
    assert [node.external_id for node in inner] == ["7001:wikalpha", "7001:wikbeta", "7001:wikgamma"]
    assert bench.connector.ancestors(bench.link(), ("7001:wikbeta", "7002")) == ["7001", "7001:wikFolder"]


def test_a_part_of_the_wiki_can_be_chosen(opened: Open) -> None:
    bench = opened(benches.FeishuBench)

    found = bench.run(resource_ids=("7001:wikbeta",))

    assert set(found.items) == {"wikbeta"}
    assert (found.items["wikbeta"].folder, found.items["wikbeta"].resource_id, found.whole) == ("Handbook/Guides", "7001:wikbeta", True)


def test_a_sheet_is_exported_and_a_file_downloaded(opened: Open) -> None:
    bench = opened(benches.FeishuDriveBench)
    bench.fake.extra += [
        {"token": "shtOne", "name": "Parts", "type": "sheet", "modified_time": "1772359001"},
        {"token": "boxFile", "name": "kept.json", "type": "file", "modified_time": "1772359002"},
        {"token": "boxFilm", "name": "film.mp4", "type": "file", "modified_time": "1772359003"},
    ]
    link = bench.link()
    with link.web:
        items = {item.external_id: item for page in bench.connector.listing(link, None) for item in page.items}
        sheet = bench.connector.fetch(link, items["shtOne"])
        kept = bench.connector.fetch(link, items["boxFile"])

    assert sheet is not None and kept is not None
    assert sheet.file_name == "Parts.xlsx"
    assert [[cell.value for cell in row] for row in load_workbook(io.BytesIO(sheet.path.read_bytes())).active.iter_rows()] == [
        ["part", "years"],
        ["pump", 5],
    ]
    assert (kept.file_name, kept.path.read_bytes()) == ("kept.json", b'{"code": 5, "kept": "as it is"}')
    assert "boxFilm" not in items
    assert bench.waited  # the export was not ready at once
    for content in (sheet, kept):
        content.path.unlink()


def test_feishu_names_its_errors_by_the_contracts_codes(opened: Open) -> None:
    bench = opened(benches.FeishuBench)
    for status, body, code, params in (
        (400, {"code": 99991672, "msg": "no scope"}, "feishu_auth_or_permission", {"code": 99991672}),
        (200, {"code": 1234567, "msg": "odd"}, "feishu_api_error", {"code": 1234567}),
        (500, {"code": 1061001, "msg": "busy"}, "feishu_server_unavailable", {"code": 1061001}),
        (418, {"msg": "odd"}, "feishu_api_error_generic", {"status": 418}),
        (404, {"code": 131005, "msg": "gone"}, "not_found", {"code": 131005}),
    ):
        bench.server.gate.clear()
        bench.server.gate.answer(status, "/wiki/", body=body)
        with pytest.raises(SourceError) as caught:
            bench.connector.check(bench.link())
        assert (caught.value.code, caught.value.params) == (code, params)

    bench.server.gate.clear()
    bench.server.gate.answer(400, "/wiki/", body={"code": 99991400, "msg": "limit"}, x_ogw_ratelimit_reset="90")
    with pytest.raises(SourceError) as caught:
        bench.connector.check(bench.link())
    assert (caught.value.code, caught.value.retry_after_s) == ("feishu_rate_limited", 90.0)


def test_dates_in_feishu_documents_are_those_of_the_chosen_zone() -> None:
    def document(**reminder: Any) -> list[dict[str, Any]]:
        element = {"reminder": {"expire_time": "1772359200000", **reminder}}
        return [
            {"block_id": "p", "block_type": 1, "children": ["t"]},
            {"block_id": "t", "block_type": 2, "children": [], "text": {"elements": [element]}},
        ]

    assert feishu_blocks.to_markdown(document(), ZoneInfo("Asia/Shanghai")) == "2026-03-01 18:00"
    assert feishu_blocks.to_markdown(document(is_whole_day=True), ZoneInfo("UTC")) == "2026-03-01"


def test_blocks_that_contain_themselves_end() -> None:
    blocks = [
        {"block_id": "p", "block_type": 1, "children": ["q"]},
        {"block_id": "q", "block_type": 34, "children": ["q", "p", "t"], "quote_container": {}},
        {"block_id": "t", "block_type": 2, "children": [], "text": {"elements": [{"text_run": {"content": "once"}}]}},
    ]
    assert feishu_blocks.to_markdown(blocks, ZoneInfo("UTC")).count("once") == 1


def test_a_notion_page_reads_as_markdown_with_its_properties(opened: Open) -> None:
    found = opened(benches.NotionBench).run()

    item = found.items[found.id_of(TEXTS["alpha"])]
    assert found.texts[item.external_id] == (
        "# Alpha page\n\n- **Status**: Done\n- **Due**: 2026-04-01\n\n## Overview\n\n"
        "**The pump is replaced every five years.** and more\n\n- outer point\n  - inner point\n- [x] check it\n\n"
        "```python\nx = 1\n```\n\n| Name | Value |\n| --- | --- |\n| pump | 5 years |\n"
    )
    assert item.folder == "Handbook"


def test_notion_lists_what_can_be_chosen(opened: Open) -> None:
    bench = opened(benches.NotionBench)
    link = bench.link()
    (top,) = bench.connector.resources(link)
    inner = bench.connector.resources(link, top.external_id)

    assert (top.name, top.type, top.has_children) == ("Handbook", "database", True)
    assert [page.name for page in inner] == ["Alpha page", "Beta page", "Gamma page"]
    assert bench.connector.ancestors(link, (inner[0].external_id,)) == [top.external_id]


def test_a_notion_page_that_is_no_longer_chosen_is_not_deleted(opened: Open) -> None:
    bench = opened(benches.NotionBench)
    first = bench.run()
    chosen = first.id_of(TEXTS["beta"])

    later = bench.run(first.cursor, resource_ids=(chosen,))

    assert (set(later.items), later.deleted, later.whole) == ({chosen}, set(), False)


def test_a_notion_page_the_search_forgets_is_asked_for_before_it_is_gone(opened: Open) -> None:
    bench = opened(benches.NotionBench)
    first = bench.run()
    doc = bench.fake.docs["beta"]
    bench.fake.route = _without_search(bench.fake, first.id_of(TEXTS["beta"]))
    later = bench.run(first.cursor)

    assert doc.title == "Beta page"
    assert later.deleted == set()


def _without_search(fake: Any, page_id: str) -> Any:
    # the server holds the bound method, so the stand-in's own parts are changed instead
    described = fake.described
    fake.described = lambda doc: {**described(doc), "archived": False}
    page = fake.page
    fake.page = lambda things, start: page([thing for thing in things if thing.get("id", "").replace("-", "") != page_id], start)
    return fake.route


def test_a_confluence_page_reads_as_markdown() -> None:
    storage = (
        "<h2>Ports &amp; rules&nbsp;</h2><p>Use <strong>443</strong>.</p>"
        '<ac:structured-macro ac:name="info"><ac:parameter ac:name="title">Careful</ac:parameter><ac:rich-text-body><p>Ask first.</p></ac:rich-text-body>'
        '</ac:structured-macro><ac:structured-macro ac:name="code"><ac:parameter ac:name="language">sql</ac:parameter><ac:plain-text-body>'
        "<![CDATA[select 1 < 2 -- ```]]></ac:plain-text-body></ac:structured-macro><ul><li>one</li></ul>"
        "<ac:task-list><ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status><ac:task-body>done</ac:task-body></ac:task></ac:task-list>"
    )
    assert storage_format.to_markdown(storage) == (
        "## Ports & rules\n\nUse **443**.\n\n> Careful\n>\n> Ask first.\n\n````sql\nselect 1 < 2 -- ```\n````\n\n- one\n\n- [x] done"
    )
    assert storage_format.to_markdown('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><p>a &e; b</p>') == "a &e; b"
    assert storage_format.to_markdown("<p>unclosed <b>x") == "unclosed **x**"


def test_files_attached_to_a_confluence_page_come_along_when_wanted(opened: Open) -> None:
    bench = opened(benches.CloudBench)
    bench.fake.files = {"guide.pdf": b"%PDF-1.4 guide", "film.mp4": b"film"}
    settings = {**bench.settings(), "attachments": True}
    bench.settings = lambda: settings

    found = bench.run()

    attached = [item for item in found.items.values() if "#" in item.external_id]
    assert [(item.title, item.folder) for item in attached] == [("guide.pdf", "Operations/Alpha page")]
    assert (found.texts[attached[0].external_id], found.names[attached[0].external_id]) == ("%PDF-1.4 guide", "guide.pdf")


def test_confluence_does_not_follow_an_answer_to_another_server(opened: Open) -> None:
    bench = opened(benches.CloudBench)
    bench.server.gate.answer(200, "/api/v2/spaces", body={"results": [], "_links": {"next": "http://127.0.0.2:9/steal?cursor=1"}})

    with pytest.raises(SourceError) as caught:
        list(bench.connector.listing(bench.link(), None))

    assert caught.value.code == "bad_answer"


def test_yuque_lists_own_repositories_and_those_of_groups(opened: Open) -> None:
    bench = opened(benches.YuqueBench)

    found = bench.connector.resources(bench.link())

    assert [(repo.external_id, repo.name) for repo in found] == [("101", "Handbook"), ("202", "Team notes")]
    assert bench.run(resource_ids=("202",)).items == {}


def test_a_yuque_list_of_exactly_one_page_is_read_to_its_end(opened: Open) -> None:
    bench = opened(benches.YuqueBench)
    for number in range(197):
        bench.fake.write(f"k{number:03d}" * (number + 1), "x")

    with bench.link().web:
        link = bench.link()
        listed = [item for page in bench.connector.listing(link, None) for item in page.items]

    assert len(listed) == 200


def test_gitlab_takes_the_projects_of_the_contract_and_of_the_form(opened: Open) -> None:
    bench = opened(benches.GitLabBench)
    clean = bench.connector.clean

    assert clean({"projects": "7@main:docs/a, docs/a/b\nteam/docs"})["projects"] == [
        {"project_id": "7", "ref": "main", "paths": ["docs/a"]},
        {"project_id": "team/docs"},
    ]
    for bad in (
        [],
        "",
        [{"project_id": "7"}, {"project_id": "7"}],
        [{"project_id": "7", "paths": ["../x"]}],
        [{"ref": "x"}],
        "no spaces here",
    ):
        with pytest.raises(SourceError) as caught:
            clean({"projects": bad})
        assert (caught.value.code, caught.value.field) == ("bad_settings", "projects")


def test_gitlab_asks_for_nothing_more_when_no_commit_came(opened: Open) -> None:
    bench = opened(benches.GitLabBench)
    first = bench.run()
    bench.server.gate.seen.clear()

    later = bench.run(first.cursor)

    assert (later.items, later.deleted, later.whole) == ({}, set(), False)
    assert [path for _method, path, _headers in bench.server.gate.seen if "/tree" in path] == []
    assert first.items["7:docs/alpha.md"].folder == "project7-main/docs"


def test_marks_keep_white_space_outside_and_links_harmless() -> None:
    assert marks.styled(" x ", bold=True) == " **x** "
    assert marks.styled("x", link="javascript:alert(1)") == "x"
    assert marks.styled("x", link="https://e.com/a b)") == "[x](https://e.com/a%20b%29)"
    assert marks.table([["a|b", "c"], ["1\n2"]]) == "| a\\|b | c |\n| --- | --- |\n| 1<br>2 |  |"
