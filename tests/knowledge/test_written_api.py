"""Markdown written by hand and addresses to import."""

from __future__ import annotations

from typing import Any

import pytest

from apps.common.scope import unscoped
from apps.knowledge.events import DocumentsRefiled, DocumentStored
from apps.knowledge.models import Chunk, Document


def write(world: Any, **body: Any) -> Any:
    return world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/manual", {"content": "# Text", **body})


def test_draft_publish_draft(world: Any, heard: Any) -> None:
    stored, refiled = heard(DocumentStored), heard(DocumentsRefiled)
    answer = write(world, title="Opening hours", content="# 营业时间\n")
    document = answer.json()["data"]
    assert answer.status_code == 200
    assert (document["parse_status"], document["type"], document["file_type"], document["file_name"]) == (
        "draft",
        "manual",
        "manual",
        "Opening hours.md",
    )
    assert {k: document["metadata"][k] for k in ("content", "format", "status", "version")} == {
        "content": "# 营业时间\n",
        "format": "markdown",
        "status": "draft",
        "version": 1,
    }
    assert stored == []
    url = f"knowledge/manual/{document['id']}"
    published = world.member.put(url, {"content": "new", "status": " PUBLISH ", "title": ""}).json()["data"]
    assert (published["parse_status"], published["title"], published["metadata"]["version"]) == ("pending", "Opening hours", 2)
    assert len(stored) == 1
    with unscoped("test data"):
        row = Document.objects.get(uid=document["id"])
        Document.objects.filter(pk=row.pk).update(parse_status="completed", enabled=True, chunk_count=1)
        Chunk.objects.create(
            space=world.space, kb=world.base, document=row, chunk_index=0, content="new", content_hash="h", start_at=0, end_at=3
        )
    before = world.fresh(row).index_rev
    draft = world.member.put(url, {"content": "draft again"}).json()["data"]
    assert (draft["parse_status"], draft["enable_status"], draft["metadata"]["version"], draft["chunk_count"]) == (
        "draft",
        "disabled",
        3,
        0,
    )
    row = world.fresh(row)
    assert row.is_answerable is False and row.index_rev == before + 1
    assert refiled[-1].document_ids == (row.pk,)
    with unscoped("test look"):
        assert Chunk.objects.filter(document=row).count() == 0
    assert world.member.get(f"knowledge/{document['id']}/download").getvalue() == b"draft again"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"content": "  \n"}, "content"),
        ({"content": "x" * 200_001}, "content"),
        ({"status": "published"}, "status"),
        ({"title": "a\x01b"}, "title"),
        ({"title": "<script>x"}, "title"),
        ({"title": "t" * 1025}, "title"),
        ({"content": None}, "content"),
        ({"process_config": []}, "process_config"),
    ],
)
def test_what_is_refused(world: Any, body: dict[str, Any], field: str) -> None:
    answer = write(world, **body)
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, field)
    assert answer.json()["error"]["code"] == 1010
    with unscoped("test look"):
        assert Document.objects.count() == 0


def test_longest_text_and_default_title(world: Any) -> None:
    document = write(world, content="x" * 200_000).json()["data"]
    assert document["title"].startswith("Knowledge-2")
    assert document["file_size"] == 200_000


def test_versions_conflict_instead_of_overwriting(world: Any) -> None:
    uid = write(world, title="T").json()["data"]["id"]
    assert world.member.put(f"knowledge/manual/{uid}", {"content": "mine", "expected_version": 1}).status_code == 200
    late = world.admin.put(f"/v1/tenants/{world.space.pk}/knowledge/documents/{uid}/manual", {"content": "theirs", "expected_version": 1})
    assert (late.status_code, late.json()["code"]) == (409, "KNOWLEDGE_CONFLICT")
    assert late.json()["error"]["details"]["current_version"] == 2 and late.json()["error"]["details"]["content"] == "mine"
    file = world.make_document(world.base)
    assert world.member.put(f"knowledge/manual/{file.uid}", {"content": "x"}).status_code == 400


def test_markup_that_runs_is_removed_and_code_is_kept() -> None:
    from apps.knowledge.rules.texts import clean_markdown

    assert clean_markdown("a<script>alert(1)</script>b") == "ab"
    assert clean_markdown("a<SCRIPT src=x>b") == "ab"
    assert clean_markdown("`<script>` is a tag") == "`<script>` is a tag"
    fence = "```html\n<script>alert(1)</script>\n```\n"
    assert clean_markdown(fence) == fence
    assert clean_markdown("[x](javascript:alert(1))") == "[x]())"
    assert clean_markdown('<img src="a.png" onerror="alert(1)">') == '<img src="a.png" >'
    assert clean_markdown("on time = 5, a < b > c") == "on time = 5, a < b > c"
    assert clean_markdown("| a | b |\n|---|---|\n| 1 | 2 |\n") == "| a | b |\n|---|---|\n| 1 | 2 |\n"


@pytest.mark.parametrize(
    "text", ["<script>" * 25_000, "<a" * 100_000, "```a\n" * 50_000, "<a " + " " * 199_000, "`" * 200_000, "<a on" * 50_000]
)
def test_cleaning_hostile_text_takes_no_time(text: str) -> None:
    import time

    from apps.knowledge.rules.texts import clean_markdown

    start = time.perf_counter()
    clean_markdown(text)
    assert time.perf_counter() - start < 5


def url(world: Any, **body: Any) -> Any:
    return world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/url", body)


def test_web_pages_and_files_behind_addresses(world: Any, settings: Any, heard: Any) -> None:
    settings.FETCH_ALLOW = ["127.0.0.1", "localhost"]
    stored = heard(DocumentStored)
    page = url(world, url="http://127.0.0.1:9/a b?q=1#top", title="Page")
    assert page.status_code == 400, "an address with a blank is none"
    page = url(world, url="http://127.0.0.1:9/手册?q=1#top", title="Page")
    data = page.json()["data"]
    assert page.status_code == 201
    assert (data["type"], data["file_type"], data["title"], data["source"]) == (
        "url",
        "html",
        "Page",
        "http://127.0.0.1:9/%E6%89%8B%E5%86%8C?q=1",
    )
    again = url(world, url="http://127.0.0.1:9/手册?q=1")
    assert (again.status_code, again.json()["code"], again.json()["data"]["id"]) == (409, "duplicate_url", data["id"])
    file = url(world, url="http://127.0.0.1:9/files/a.PDF").json()["data"]
    assert (file["type"], file["file_type"], file["file_name"]) == ("file_url", "pdf", "a.PDF")
    named = url(world, url="http://127.0.0.1:9/get?id=7", file_name="b.docx").json()["data"]
    assert (named["type"], named["file_type"], named["file_name"]) == ("file_url", "docx", "b.docx")
    assert len(stored) == 3
    assert world.member.get(f"knowledge/{data['id']}/download").status_code == 404, "nothing fetched yet"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("ftp://example.com/a", "bad_url"),
        ("javascript:alert(1)", "bad_url"),
        ("http://", "bad_url"),
        ("http://user:pw@127.0.0.1/", "bad_url"),
        ("http://127.0.0.1/", "refused_address"),
        ("http://[::1]/", "refused_address"),
        ("http://[::ffff:127.0.0.1]/", "refused_address"),
        ("http://169.254.169.254/latest/meta-data", "refused_address"),
        ("http://10.0.0.1/", "refused_address"),
        ("http://0.0.0.0/", "refused_address"),
        ("http://2130706433/", "refused_address"),
        ("http://localhost:1/", "refused_address"),
    ],
)
def test_addresses_that_are_refused(world: Any, address: str, reason: str) -> None:
    answer = url(world, url=address)
    assert (answer.status_code, answer.json()["error"]["details"]["reason"]) == (400, reason)
    with unscoped("test look"):
        assert Document.objects.count() == 0
