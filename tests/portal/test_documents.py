"""The documents tab: states in words, filters in the address, what can be done with one and with many documents."""

from __future__ import annotations

import json
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.translation import override

from apps.common.scope import unscoped
from apps.ingestion.plugins.protocol import REASONS as PARSER_REASONS
from apps.knowledge.models import Document, Tag
from apps.knowledge.reasons import REASONS, reason_for, reason_of
from apps.llm.failures import FAILURES
from apps.portal.document_query import ListQuery
from tests.support.shelf import HTMX, Shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    made = Shelf()
    made.worker()
    return made


def text_of(html: Any) -> str:
    source = html if isinstance(html, str) else html.content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", source)).strip()


def row_of(page: Any, document: Document) -> str:
    """One row of the table as a reader sees it."""
    found = re.search(rf'<tr[^>]* id="row-{document.uid}".*?</tr>', page.content.decode(), re.S)
    assert found, document.title
    return text_of(found.group(0))


def titles(page: Any) -> list[str]:
    return [row.document.title for row in page.context["rows"]]


def toast_of(answer: Any) -> str:
    return str(json.loads(answer["HX-Trigger"])["toast"]["text"])


# states


def test_every_reason_of_the_pipeline_has_words_and_a_next_step() -> None:
    assert set(PARSER_REASONS) | set(FAILURES) == set(REASONS)
    for code in REASONS:
        words = reason_of(code)
        assert all(str(part) for part in (words.word, words.title, words.why, words.next)), code
    assert reason_of("no such code") is REASONS["internal"]


@pytest.mark.parametrize(
    ("reason", "word", "note", "step"),
    [
        ("needs_ocr", "Needs OCR", "The pages are pictures", "Parse again"),
        ("locked", "Locked", "The file is protected by a password", ""),
        ("empty", "No text", "There is no text in this document", ""),
        ("unreadable_text", "Unreadable text", "The text comes out garbled", "Encoding…"),
        ("unsupported_type", "Unknown type", "This kind of file is not supported", ""),
        ("timeout", "Took too long", "Reading took too long", "Parse again"),
        ("surprise", "Failed", "Something went wrong on our side", "Parse again"),
    ],
)
def test_a_failed_document_says_why_and_what_next(shelf: Shelf, reason: str, word: str, note: str, step: str) -> None:
    document = shelf.document("a.txt", parse_status="failed", reason=reason, error_message="raw text of the log")
    row = row_of(shelf.admin.get(shelf.url()), document)
    with override("en"):
        next_step = str(reason_for(document).next)
    assert f"{word} {note}" in row and next_step in row
    buttons = [label for label in ("Parse again", "Encoding…") if row.endswith(f" {label}")]
    assert buttons == ([step] if step else [])


def test_a_row_in_flight_shows_stage_done_and_total_and_time_so_far(shelf: Shelf) -> None:
    parsing, embedding, waiting = (
        shelf.document(f"{n}.pdf", parse_status=s) for n, s in enumerate(("processing", "finalizing", "pending"))
    )
    shelf.run(parsing, done=994, total=1600, unit="pages")
    shelf.run(embedding, "embed", done=30, total=120, unit="vectors")
    shelf.run(waiting, state="queued")
    page = shelf.admin.get(shelf.url())
    assert "Reading" in row_of(page, parsing) and "Page 994 of 1,600 · 1 min" in row_of(page, parsing)
    assert 'value="994" max="1600"' in page.content.decode()
    assert "Searchable Vector 30 of 120" in row_of(page, embedding)
    assert "Waiting" in row_of(page, waiting) and "–" in row_of(page, waiting), "its passages are not known yet, which is not 0"


def test_a_queued_row_says_when_no_worker_is_running() -> None:
    shelf = Shelf()
    document = shelf.document("a.pdf", parse_status="pending")
    shelf.run(document, state="queued")
    assert "No worker No worker is running" in row_of(shelf.admin.get(shelf.url()), document)
    shelf.worker()
    assert "No worker" not in row_of(shelf.admin.get(shelf.url()), document)


@pytest.mark.parametrize(
    ("queued", "word", "note"), [(False, "Not moving", "Nothing has happened for 20 minutes"), (True, "Long wait", "")]
)
def test_a_row_without_news_for_twenty_minutes_is_marked(shelf: Shelf, queued: bool, word: str, note: str) -> None:
    document = shelf.document("a.pdf", parse_status="processing")
    if queued:
        shelf.run(document, state="queued")
    with unscoped("test data"):
        Document.objects.filter(pk=document.pk).update(updated_at=timezone.now() - timedelta(minutes=21))
    row = row_of(shelf.admin.get(shelf.url()), document)
    assert word in row and note in row


def test_a_document_read_in_part_names_what_is_missing(shelf: Shelf) -> None:
    warning = {"code": "needs_ocr", "count": 7, "message": "", "position": {}}
    document = shelf.document("a.pdf", reason="needs_ocr", warnings=[warning], chunk_count=4)
    assert "7 pages without text" in row_of(shelf.admin.get(shelf.url()), document)


def test_the_head_counts_and_shows_how_far_vectors_are(shelf: Shelf) -> None:
    shelf.document("a.pdf", chunk_count=300, vector_count=299)
    shelf.document("b.pdf", parse_status="failed", reason="corrupt")
    head = text_of(re.search(r'id="base-figures".*?</div>', shelf.admin.get(shelf.url()).content.decode(), re.S).group(0))  # type: ignore[union-attr]
    assert "2 documents 300 passages vectors 99% 1 failed" in head
    empty = shelf.make_base("Empty")
    assert "vectors" not in text_of(shelf.admin.get(shelf.url(base=empty))), "unknown is not 0"


# filters, folders, pages


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["d.md", "c.pdf", "b.txt", "a.pdf"]),
        ("?status=failed", ["c.pdf"]),
        ("?type=pdf", ["c.pdf", "a.pdf"]),
        ("?q=B.T", ["b.txt"]),
        ("?folder=", ["d.md"]),
        ("?folder=x", ["b.txt"]),
        ("?folder=x&q=.pdf", ["c.pdf", "a.pdf"]),
        ("?sort=file_name&order=asc", ["a.pdf", "b.txt", "c.pdf", "d.md"]),
        ("?status=nonsense&page=abc&sort=;drop", ["d.md", "c.pdf", "b.txt", "a.pdf"]),
        ("?q=nothing", []),
    ],
)
def test_filters_live_in_the_address(shelf: Shelf, query: str, found: list[str]) -> None:
    for age, (name, folder, status) in enumerate(
        (("d.md", "", "completed"), ("c.pdf", "x/y", "failed"), ("b.txt", "x", "completed"), ("a.pdf", "x/y", "completed"))
    ):
        document = shelf.document(name, folder_path=folder, parse_status=status, reason="corrupt" if status == "failed" else "")
        with unscoped("test data"):
            Document.objects.filter(pk=document.pk).update(updated_at=timezone.now() - timedelta(minutes=age))
    page = shelf.admin.get(shelf.url() + query)
    assert titles(page) == found
    if not found:
        assert "No document here fits all the filters." in text_of(page)


def test_a_tag_filters_and_its_chip_takes_the_filter_off(shelf: Shelf) -> None:
    urgent = shelf.tag("urgent")
    shelf.document("a.txt", tags=(urgent,))
    shelf.document("b.txt")
    page = shelf.admin.get(shelf.url(), {"tag": str(urgent.uid), "type": "txt"})
    assert titles(page) == ["a.txt"]
    chip = next(each for each in page.context["filters"] if each["id"] == "tags")
    assert (chip["current"], chip["remove_href"]) == ("urgent", shelf.url("?type=txt"))


def test_a_query_survives_being_written_and_read() -> None:
    query = ListQuery(q="a&b", status="failed", type="pdf", tags=("1", "2"), folder="x/ü", sort="file_name", ascending=True, page=3)
    assert ListQuery.read(QueryDict(query.href().lstrip("?"))) == query
    assert query.href(status="") == ListQuery(**{**{f: getattr(query, f) for f in query.__slots__}, "status": "", "page": 1}).href()


def test_folders_form_a_tree_with_counts_and_tiles(shelf: Shelf) -> None:
    for name, folder in (("a", "x"), ("b", "x/y"), ("c", "x/y/z"), ("d", "")):
        shelf.document(name, folder_path=folder)
    page = shelf.admin.get(shelf.url("?folder=x/y"))
    nodes = page.context["tree_nodes"]
    assert [(node["label"], node["count"]) for node in nodes] == [("All documents", "4"), ("x", "3"), ("Not in a folder", "1")]
    assert nodes[1]["open"] and nodes[1]["children"][0]["current"]
    assert [(tile["name"], tile["count"]) for tile in page.context["tiles"]] == [("z", "1")]
    assert [item["label"] for item in page.context["trail"]] == ["All documents", "x", "y"]


def test_long_lists_come_in_pages_and_a_page_past_the_end_is_the_last(shelf: Shelf) -> None:
    with unscoped("test data"):
        rows = [
            Document(space=shelf.space, kb=shelf.base, title=f"{n:03}", file_name=f"{n:03}", parse_status="completed", file_hash=str(n))
            for n in range(120)
        ]
        Document.objects.bulk_create(rows)
    page = shelf.admin.get(shelf.url("?sort=file_name&order=asc&page=2"))
    assert (titles(page)[0], titles(page)[-1]) == ("050", "099")
    assert "51 to 100 of 120" in text_of(page)
    assert titles(shelf.admin.get(shelf.url("?sort=file_name&order=asc&page=99")))[-1] == "119"


def test_the_view_is_remembered(shelf: Shelf) -> None:
    shelf.document("a.txt")
    assert "doc-card" in shelf.admin.get(shelf.url("?view=cards")).content.decode()
    assert "doc-card" in shelf.admin.get(shelf.url()).content.decode()
    assert "documents-table" in shelf.admin.get(shelf.url("?view=table")).content.decode()


def test_a_list_asks_the_same_number_of_questions_for_two_documents_and_for_twelve(shelf: Shelf) -> None:
    tag = shelf.tag("t")
    shelf.admin.get(shelf.url())
    counts = []
    for amount in (2, 10):
        for number in range(amount):
            flying = shelf.document(f"{amount}-{number}.pdf", parse_status="processing", tags=(tag,), folder_path=f"f{number}")
            shelf.run(flying, done=1, total=2, unit="pages")
        with CaptureQueriesContext(connection) as queries:
            shelf.admin.get(shelf.url())
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 28


# polling


def test_polling_brings_the_rows_in_flight_and_the_figures(shelf: Shelf) -> None:
    flying, done = shelf.document("a.pdf", parse_status="processing"), shelf.document("b.pdf", chunk_count=5)
    shelf.run(flying, done=3, total=24, unit="pages")
    address = shelf.admin.get(shelf.url()).context["live_url"]
    assert str(flying.uid) in address and str(done.uid) not in address
    news = shelf.admin.get(address)
    assert "Page 3 of 24" in text_of(news) and "2 documents" in text_of(news) and 'data-poll-interval="2000"' in news.content.decode()
    assert "HX-Trigger" not in news
    with unscoped("test data"):
        Document.objects.filter(pk=flying.pk).update(parse_status="completed", chunk_count=7)
    after = shelf.admin.get(address)
    assert "Ready" in text_of(after) and 'data-poll-interval="10000"' in after.content.decode()
    shelf.document("c.pdf")
    assert "kb:changed" in shelf.admin.get(address)["HX-Trigger"], "somebody else added a document"


def test_the_upload_tray_learns_what_became_of_a_file(shelf: Shelf) -> None:
    bad = shelf.document("a.pdf", parse_status="failed", reason="locked")
    good, open_ = shelf.document("b.pdf"), shelf.document("c.pdf", parse_status="processing")
    shelf.run(open_, done=2, total=9, unit="pages")
    ids = ",".join(str(each.uid) for each in (bad, good, open_))
    states = shelf.admin.get(shelf.url(f"uploads/states?ids={ids}")).json()
    assert {key: value["state"] for key, value in states.items()} == {str(bad.uid): "failed", str(good.uid): "done", str(open_.uid): ""}
    assert states[str(bad.uid)]["text"] == "The file is protected by a password"
    assert states[str(open_.uid)]["text"] == "Reading · Page 2 of 9"


# one document


def test_foreign_and_unknown_documents_are_not_there(shelf: Shelf) -> None:
    foreign = shelf.document(base=shelf.foreign)
    for tail in ("menu", "rename", "delete", "reparse", "edit"):
        assert shelf.admin.get(shelf.document_url(foreign, tail)).status_code == 404, tail
        assert shelf.admin.post(shelf.document_url(foreign, tail), {"title": "x"}).status_code in (404, 405), tail
    assert shelf.fresh(foreign).title == "a.txt" and shelf.fresh(foreign).deleted_at is None


def test_renaming_keeps_what_was_typed_when_it_is_refused(shelf: Shelf) -> None:
    document = shelf.document("a.txt")
    bad = shelf.member.post(shelf.document_url(document, "rename"), {"title": "x" * 1025}, headers=HTMX)
    assert bad.status_code == 422 and "The title may have at most 1024 characters." in text_of(bad) and "x" * 1025 in bad.content.decode()
    blank = shelf.member.post(shelf.document_url(document, "rename"), {"title": " "}, headers=HTMX)
    assert "Give the document a title." in text_of(blank)
    assert toast_of(shelf.member.post(shelf.document_url(document, "rename"), {"title": "Guide"}, headers=HTMX)) == "Renamed."
    assert (shelf.fresh(document).title, shelf.fresh(document).file_name) == ("Guide", "a.txt")


def test_parsing_again_with_another_encoding_is_remembered_and_can_be_taken_back(shelf: Shelf) -> None:
    document = shelf.document(
        "a.txt", parse_status="failed", reason="unreadable_text", metadata={"process_overrides": {"summary_enabled": True}}
    )
    shelf.member.post(shelf.document_url(document, "reparse"), {"encoding": "gb18030"}, headers=HTMX)
    assert shelf.fresh(document).parse_status == "pending"
    assert shelf.fresh(document).metadata["process_overrides"] == {"summary_enabled": True, "encoding": "gb18030"}
    shelf.member.post(shelf.document_url(document, "reparse"), {"encoding": ""}, headers=HTMX)
    assert shelf.fresh(document).metadata["process_overrides"] == {"summary_enabled": True}


def test_stopping_is_said_and_twice_is_harmless(shelf: Shelf) -> None:
    document = shelf.document("a.txt", parse_status="processing")
    shelf.run(document)
    for _ in range(2):
        assert toast_of(shelf.member.post(shelf.document_url(document, "stop"), headers=HTMX)) == "Stopped “a.txt”."
    assert shelf.fresh(document).parse_status == "cancelled"


def test_deleting_says_what_goes_and_the_row_is_gone(shelf: Shelf) -> None:
    document = shelf.document("a.txt", chunk_count=42, file_size=2048)
    asked = text_of(shelf.member.get(shelf.document_url(document, "delete"), headers=HTMX))
    assert (
        "Delete “a.txt”?" in asked
        and "42 passages and their vectors" in asked
        and "the original file (2.0 KB)" in asked.replace("\xa0", " ")
    )
    assert toast_of(shelf.member.post(shelf.document_url(document, "delete"), headers=HTMX)) == "“a.txt” was deleted."
    assert titles(shelf.member.get(shelf.url())) == []
    assert shelf.member.post(shelf.document_url(document, "delete"), headers=HTMX).status_code == 404


def test_without_script_an_action_leads_back_to_the_list(shelf: Shelf) -> None:
    document = shelf.document("a.txt")
    assert "Rename" in text_of(shelf.member.get(shelf.document_url(document, "rename")))
    answer = shelf.member.post(shelf.document_url(document, "rename"), {"title": "Guide"}, follow=True)
    assert answer.redirect_chain == [(shelf.url(), 302)] and "Renamed." in text_of(answer)


# written documents, addresses


def test_writing_saves_a_draft_or_publishes_and_keeps_refused_text(shelf: Shelf) -> None:
    refused = shelf.member.post(shelf.url("documents/new"), {"title": "", "content": "Keep me"})
    assert refused.status_code == 422 and "Give the document a title." in text_of(refused) and "Keep me" in refused.content.decode()
    for status, state in (("draft", "draft"), ("publish", "pending")):
        form = {"title": status, "content": "# Text", "folder": "notes", "status": status}
        assert shelf.member.post(shelf.url("documents/new"), form)["Location"] == shelf.url("?folder=notes")
        with unscoped("test look"):
            assert Document.objects.get(title=status).parse_status == state


def test_editing_an_outdated_version_shows_both_texts(shelf: Shelf) -> None:
    content = {"content": "theirs", "version": 4, "format": "markdown", "status": "publish"}
    document = shelf.document("note", type="manual", file_type="manual", metadata=content)
    form = {"title": "note", "content": "mine", "version": "3", "status": "publish"}
    conflict = shelf.member.post(shelf.document_url(document, "edit"), form)
    assert conflict.status_code == 409
    body = conflict.content.decode()
    assert "theirs" in body and "mine</textarea>" in body and 'name="version" value="4"' in body
    assert shelf.member.post(shelf.document_url(document, "edit"), {**form, "version": "4"}).status_code == 302
    assert shelf.fresh(document).metadata["content"] == "mine"


@pytest.mark.parametrize("url", ["", "ftp://example.com/a", "http://127.0.0.1/a", "not an address"])
def test_an_address_that_cannot_be_imported_is_refused_beside_the_field(shelf: Shelf, url: str) -> None:
    answer = shelf.member.post(shelf.url("import"), {"url": url, "title": "Kept title"}, headers=HTMX)
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["url"] and "Kept title" in answer.content.decode()


def test_an_address_that_is_here_already_leads_to_its_document(shelf: Shelf) -> None:
    form = {"url": "https://93.184.215.14/guide", "title": "Guide"}
    assert toast_of(shelf.member.post(shelf.url("import"), form, headers=HTMX)) == "The address is being fetched."
    again = shelf.member.post(shelf.url("import"), form, headers=HTMX)
    assert (
        again.status_code == 422
        and "This address is in the knowledge base already." in text_of(again)
        and "Open the document" in text_of(again)
    )


# many documents


def test_a_bulk_action_reports_each_document_it_failed_for(shelf: Shelf) -> None:
    good, bad = shelf.document("good.txt"), shelf.document("bad.txt", storage_path="")
    answer = shelf.member.post(shelf.url("bulk/reparse"), {"ids": [str(good.uid), str(bad.uid)]}, headers=HTMX)
    assert "Done for 1 of 2." in text_of(answer)
    assert "bad.txt There is nothing to parse: the document has no file, address or text. Upload it again." in text_of(answer)
    assert shelf.fresh(good).parse_status == "pending"


def test_bulk_delete_of_everything_that_matches_spares_the_rest(shelf: Shelf) -> None:
    gone, stays = shelf.document("a.txt", parse_status="failed", reason="empty", chunk_count=2), shelf.document("b.txt")
    asked = text_of(shelf.member.get(shelf.url("bulk/delete?status=failed&all=1"), headers=HTMX))
    assert "Delete 1 document?" in asked and "bring them back from the trash for 30 days" in asked
    answer = shelf.member.post(shelf.url("bulk/delete?status=failed"), {"all": "1"}, headers=HTMX)
    assert toast_of(answer) == "1 document deleted." and "kb:selection-done" in answer["HX-Trigger"]
    assert shelf.fresh(gone).deleted_at is not None and shelf.fresh(stays).deleted_at is None


def test_bulk_tags_add_and_take_away_and_leave_the_others(shelf: Shelf) -> None:
    red, blue, both = shelf.tag("red"), shelf.tag("blue"), shelf.tag("both")
    first, second = shelf.document("a.txt", tags=(red, both)), shelf.document("b.txt", tags=(blue, both))
    ids = [str(first.uid), str(second.uid)]
    form = shelf.member.get(shelf.url("bulk/tags"), {"ids": ids}, headers=HTMX)
    assert {row["tag"].name: row["state"] for row in form.context["tags"]} == {"red": "some", "blue": "some", "both": "all"}
    shelf.member.post(shelf.url("bulk/tags"), {"ids": ids, "on": [str(red.uid)], "off": [str(both.uid)]}, headers=HTMX)
    with unscoped("test look"):
        names = [sorted(tag.name for tag in Document.objects.get(pk=each.pk).tags.all()) for each in (first, second)]
    assert names == [["red"], ["blue", "red"]]


def test_moving_into_a_folder_and_renaming_it(shelf: Shelf) -> None:
    document = shelf.document("a.txt")
    moved = shelf.member.post(shelf.url("bulk/folder"), {"ids": [str(document.uid)], "folder": " guides / old "}, headers=HTMX)
    assert toast_of(moved) == "1 document moved to “guides/old”." and shelf.fresh(document).folder_path == "guides/old"
    inside = shelf.member.post(shelf.url("folder"), {"source": "guides", "target": "guides/new"}, headers=HTMX)
    assert inside.status_code == 422 and "A folder cannot go into itself." in text_of(inside)
    assert shelf.member.post(shelf.url("folder"), {"source": "guides", "target": "manuals"}, headers=HTMX)["HX-Redirect"] == shelf.url(
        "?folder=manuals"
    )
    assert shelf.fresh(document).folder_path == "manuals/old"


@pytest.mark.parametrize("action", ["delete", "reparse", "folder", "tags"])
def test_a_bulk_action_on_foreign_or_no_documents_changes_nothing(shelf: Shelf, action: str) -> None:
    mine, foreign = shelf.document("a.txt"), shelf.document("x.txt", base=shelf.foreign)
    for ids in ([str(mine.uid), str(foreign.uid)], [str(uuid.uuid4())], []):
        assert shelf.admin.post(shelf.url(f"bulk/{action}"), {"ids": ids, "folder": "f"}, headers=HTMX).status_code == 400
    assert shelf.fresh(mine).parse_status == "completed" and shelf.fresh(foreign).deleted_at is None


# tags


def test_tags_are_made_renamed_coloured_and_refused_while_in_use(shelf: Shelf) -> None:
    def send(**form: str) -> Any:
        return shelf.member.post(shelf.url("tags"), form, headers=HTMX)

    assert toast_of(send(name="urgent", color="pink")) == "Tag added."
    with unscoped("test look"):
        tag = Tag.objects.get(name="urgent")
    assert tag.color == "pink"
    taken = send(name="urgent")
    assert (
        taken.status_code == 422 and "There is a tag of this name already." in text_of(taken) and 'value="urgent"' in taken.content.decode()
    )
    assert toast_of(send(tag=str(tag.uid), do="save", name="soon", color="nonsense")) == "Tag saved."
    assert (shelf.fresh(tag).name, shelf.fresh(tag).color) == ("soon", "pink")
    shelf.document("a.txt", tags=(tag,))
    refused = send(tag=str(tag.uid), do="delete", name="soon")
    assert refused.status_code == 422 and "1 document carries this tag. Take it off and delete the tag? The document stays." in text_of(
        refused
    )
    with unscoped("test data"):
        Document.objects.all().delete()
    assert toast_of(send(tag=str(tag.uid), do="delete")) == "Tag deleted." and shelf.fresh(tag) is None


def test_menus_offer_only_what_a_document_can_do(shelf: Shelf) -> None:
    file, flying = shelf.document("a.pdf"), shelf.document("b.txt", parse_status="processing")
    written = shelf.document("c", type="manual", file_type="manual", storage_path="", parse_status="draft")

    def items(document: Document) -> list[str]:
        menu = shelf.member.get(shelf.document_url(document, "menu"), headers=HTMX).content.decode()
        return re.findall(r'menu__text"><span>([^<]*)', menu)

    assert items(file) == ["Open", "Download original", "Versions", "Rename…", "Tags…", "Move to a folder…", "Parse again", "Delete…"]
    assert items(flying) == ["Open", "Download original", "Versions", "Rename…", "Tags…", "Move to a folder…", "Stop", "Delete…"]
    assert items(written) == ["Open", "Edit", "Download original", "Rename…", "Tags…", "Move to a folder…", "Delete…"]


def test_the_page_speaks_chinese() -> None:
    shelf = Shelf("zh-hans")
    document = shelf.document("扫描.pdf", parse_status="failed", reason="needs_ocr")
    page = shelf.admin.get(shelf.url())
    assert "需要 OCR 页面全是图片" in row_of(page, document) and "请管理员开启 OCR" in row_of(page, document)
    assert "1 份文档 0 个分块 1 份失败" in text_of(page)
