"""What a run makes of what a source holds."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.base import ContentFile

from apps.common.scope import space_scope
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import base_clear, document_update, document_version_add, documents_delete, documents_restore
from apps.sources.plugins.protocol import SourceError
from apps.sources.services import source_update
from tests.sources.conftest import Desk

COUNTS = ("created", "updated", "renamed", "deleted", "held", "skipped", "failed", "unchanged", "listed")


def counts(run: Any) -> dict[str, int]:
    return {name: getattr(run, name) for name in COUNTS if getattr(run, name)}


def test_the_first_run_makes_documents(desk: Desk) -> None:
    desk.shelf.fill(2)
    desk.shelf.put("deep", "Deep one", "Far below.", folder="a/b")
    run = desk.sync()
    assert (run.outcome, counts(run)) == ("success", {"created": 3, "listed": 3})
    found = desk.documents()
    assert sorted(found) == ["Deep one", "Note 1", "Note 2"]
    deep = found["Deep one"]
    assert (deep.folder_path, deep.file_name, deep.source, deep.channel) == ("a/b", "deep.md", "https://source.example/deep", "scripted")
    assert deep.metadata["external_id"] == "deep" and deep.metadata["datasource_id"] == str(desk.source.uid)
    assert desk.text(deep) == "Far below."
    with space_scope(desk.world.space.pk, "test"):
        assert [tag.name for tag in deep.tags.all()] == ["Notes"]


def test_a_changed_item_is_a_new_version_of_the_same_document(desk: Desk) -> None:
    desk.shelf.fill(3)
    desk.sync()
    before = desk.documents()["Note 2"]
    desk.shelf.put("id-2", "Note 2", "Another text.")
    desk.shelf.fetched.clear()
    run = desk.sync()
    after = desk.documents()["Note 2"]
    assert (counts(run), desk.shelf.fetched) == ({"updated": 1, "unchanged": 2, "listed": 3}, ["id-2"])
    assert (after.uid, after.version, desk.text(after)) == (before.uid, 2, "Another text.")


def test_a_renamed_and_moved_item_is_not_read_again(desk: Desk) -> None:
    desk.shelf.fill(1)
    desk.sync()
    before = desk.documents()["Note 1"]
    desk.shelf.change("id-1", title="Renamed", folder="elsewhere")
    desk.shelf.fetched.clear()
    run = desk.sync()
    after = desk.documents()["Renamed"]
    assert (counts(run), desk.shelf.fetched) == ({"renamed": 1, "listed": 1}, [])
    assert (after.uid, after.folder_path, after.version, after.attempt) == (before.uid, "elsewhere", 1, before.attempt)


def test_without_a_fingerprint_content_is_compared(desk: Desk) -> None:
    desk.shelf.fill(2)
    for name in ("id-1", "id-2"):
        desk.shelf.change(name, stamp="")
    desk.sync()
    desk.shelf.change("id-1", text="New words.")
    desk.shelf.fetched.clear()
    run = desk.sync()
    assert (counts(run), sorted(desk.shelf.fetched)) == ({"updated": 1, "unchanged": 1, "listed": 2}, ["id-1", "id-2"])


def test_a_touched_item_with_the_same_bytes_makes_no_version(desk: Desk) -> None:
    desk.shelf.fill(1)
    desk.sync()
    desk.shelf.change("id-1", stamp="touched")
    run = desk.sync()
    assert (counts(run), desk.documents()["Note 1"].version) == ({"unchanged": 1, "listed": 1}, 1)
    desk.shelf.fetched.clear()
    desk.sync()
    assert desk.shelf.fetched == []


def test_an_unchanged_run_writes_its_own_row_and_nothing_else(desk: Desk, django_assert_num_queries: Any) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    desk.shelf.fill(30)
    desk.sync()
    desk.sync()
    run = desk.start()
    claim = desk.claim()
    from apps.common.jobs.tasks import work

    with CaptureQueriesContext(
        connection,
    ) as log:
        work(claim)
    writes = [query["sql"] for query in log.captured_queries if query["sql"].lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))]
    assert writes and all(sql.startswith('UPDATE "sources_syncrun"') for sql in writes), writes
    assert (desk.fresh(run).outcome, counts(desk.fresh(run))) == ("success", {"unchanged": 30, "listed": 30})
    assert len(log.captured_queries) < 40, "a run that finds nothing new asks a fixed number of questions"


def test_two_items_with_the_same_bytes_are_one_document_until_they_differ(desk: Desk) -> None:
    desk.shelf.put("one", "One", "The same words.")
    desk.shelf.put("two", "Two", "The same words.")
    run = desk.sync()
    assert counts(run) == {"created": 1, "skipped": 1, "listed": 2}
    assert (list(desk.documents()), desk.items()["two"].state) == (["One"], "twin")
    assert counts(desk.sync()) == {"unchanged": 2, "listed": 2}
    desk.shelf.put("one", "One", "Other words.")
    run = desk.sync()
    assert sorted(desk.documents()) == ["One", "Two"]
    assert (desk.text(desk.documents()["Two"]), desk.items()["two"].state) == ("The same words.", "live")


def test_a_twin_takes_over_when_the_other_one_vanishes(desk: Desk) -> None:
    desk.shelf.fill(4)
    desk.shelf.put("one", "One", "The same words.")
    desk.shelf.put("two", "Two", "The same words.")
    desk.sync()
    desk.shelf.drop("one")
    desk.sync()
    assert "One" not in desk.documents() and desk.text(desk.documents()["Two"]) == "The same words."


def test_one_that_becomes_like_another_leaves_no_stale_text_behind(desk: Desk) -> None:
    desk.shelf.fill(2)
    desk.sync()
    first = desk.documents()["Note 2"].uid
    desk.shelf.put("id-2", "Note 2", "The text of note number 1.")
    desk.sync()
    assert (list(desk.documents()), desk.items()["id-2"].state) == (["Note 1"], "twin")
    desk.shelf.put("id-2", "Note 2", "On its own again.")
    desk.sync()
    back = desk.documents()["Note 2"]
    assert (back.uid, desk.text(back)) == (first, "On its own again.")


def test_what_fails_is_counted_with_its_reason_and_tried_again(desk: Desk) -> None:
    desk.shelf.fill(3)
    desk.shelf.fetch_errors["id-2"] = SourceError("unavailable", "503 from the server", passing=True)
    run = desk.sync()
    assert (run.outcome, counts(run)) == ("partial", {"created": 2, "failed": 1, "listed": 3})
    assert run.errors == [{"title": "Note 2", "code": "unavailable", "message": "503 from the server"}]
    desk.shelf.fetch_errors.clear()
    run = desk.sync()
    assert (run.outcome, counts(run)) == ("success", {"created": 1, "unchanged": 2, "listed": 3})


def test_a_delta_tries_again_what_failed_although_it_does_not_name_it(desk: Desk) -> None:
    desk.shelf.as_delta = True
    desk.shelf.fill(3)
    desk.shelf.fetch_errors["id-2"] = SourceError("timeout", passing=True)
    desk.sync()
    desk.shelf.fetch_errors.clear()
    run = desk.sync()
    assert counts(run) == {"created": 1, "listed": 1}
    assert sorted(desk.documents()) == ["Note 1", "Note 2", "Note 3"]


def test_a_file_that_may_not_come_in_is_refused_once(desk: Desk) -> None:
    desk.shelf.fill(2)
    desk.shelf.put("odd", "Odd", "MZ\x90\x00\x03\x00\x00\x00\x04\x00", file_name="odd.exe")
    desk.shelf.put("blank", "Blank", "  \n ")
    run = desk.sync()
    assert (run.outcome, counts(run)) == ("partial", {"created": 2, "failed": 2, "listed": 4})
    assert sorted(each["code"] for each in run.errors) == ["blank", "unsupported_type"]
    desk.shelf.fetched.clear()
    run = desk.sync()
    assert (run.outcome, counts(run), desk.shelf.fetched) == ("success", {"unchanged": 4, "listed": 4}, [])
    desk.shelf.put("blank", "Blank", "Not any more.")
    assert counts(desk.sync()) == {"created": 1, "unchanged": 3, "listed": 4}


def test_a_full_disk_costs_the_items_of_that_run_only(desk: Desk, settings: Any) -> None:
    desk.shelf.fill(2)
    desk.sync()
    desk.shelf.fill(1, start=3)
    settings.DISK_REFUSE_BYTES = 1 << 62
    run = desk.sync()
    assert (run.outcome, counts(run), run.errors[0]["code"]) == ("partial", {"unchanged": 2, "failed": 1, "listed": 3}, "no_space")
    settings.DISK_REFUSE_BYTES = 0
    assert counts(desk.sync()) == {"created": 1, "unchanged": 2, "listed": 3}


def test_nothing_to_take_over_is_skipped_once(desk: Desk) -> None:
    desk.shelf.put("void", "Void", None)
    assert counts(desk.sync()) == {"skipped": 1, "listed": 1}
    assert counts(desk.sync()) == {"unchanged": 1, "listed": 1}


def test_when_every_item_fails_the_run_has_failed(desk: Desk) -> None:
    desk.shelf.fill(2)
    desk.shelf.fetch_errors = {name: SourceError("forbidden") for name in desk.shelf.things}
    run = desk.sync()
    assert (run.outcome, run.reason, counts(run)) == ("failed", "sync_failed", {"failed": 2, "listed": 2})
    assert (desk.source.status, desk.source.error_code) == ("error", "sync_failed")
    desk.shelf.fetch_errors.clear()
    assert desk.sync().outcome == "success"
    assert (desk.source.status, desk.source.error_code) == ("active", "")


def test_wrong_credentials_fail_the_run_and_say_so(desk: Desk) -> None:
    desk.shelf.fill(1)
    desk.sync()
    desk.shelf.key = "another"
    run = desk.sync()
    assert (run.outcome, run.reason, desk.source.status, desk.source.error_code) == ("failed", "auth", "error", "auth")
    assert "secret-key" not in run.error and len(desk.documents()) == 1


def test_a_source_that_asks_for_patience_is_left_alone_and_goes_on(desk: Desk) -> None:
    desk.shelf.fill(5)
    busy = [SourceError("rate_limited", "slow down", retry_after_s=120, passing=True)]
    desk.shelf.on_fetch = lambda item: (_ for _ in ()).throw(busy.pop()) if item.external_id == "id-4" and busy else None
    run = desk.start()
    from apps.common.jobs.tasks import work

    work(desk.claim())
    waiting = desk.fresh(run)
    assert (waiting.state, waiting.reason, waiting.created, waiting.attempt) == ("queued", "rate_limited", 3, 0)
    assert 100 < (waiting.not_before - waiting.started_at).total_seconds() < 140
    desk.ready(run)
    work(desk.claim())
    assert (desk.fresh(run).outcome, counts(desk.fresh(run))) == ("success", {"created": 5, "listed": 5})


# -- what people did here meanwhile


def _edit(desk: Desk, title: str, text: str) -> Document:
    with space_scope(desk.world.space.pk, "test"):
        document = Document.objects.select_related("kb").get(title=title)
        upload = ContentFile(text.encode(), name="mine.md")
        return document_version_add(actor=desk.actor, document=document, upload=upload, file_name="mine.md").document


@pytest.mark.parametrize(
    ("strategy", "text", "version", "outcome"), [("overwrite", "Theirs.", 3, "updated"), ("skip", "Mine.", 2, "skipped")]
)
def test_the_strategy_decides_between_what_was_changed_here_and_there(
    desk: Desk, strategy: str, text: str, version: int, outcome: str
) -> None:
    desk.make(conflict_strategy=strategy)
    desk.shelf.fill(2)
    desk.sync()
    _edit(desk, "Note 1", "Mine.")
    assert counts(desk.sync()) == {"unchanged": 2, "listed": 2}, "what is changed here alone stays"
    desk.shelf.put("id-1", "Note 1", "Theirs.")
    run = desk.sync()
    document = desk.documents()["Note 1"]
    assert (desk.text(document), document.version, counts(run)) == (text, version, {outcome: 1, "unchanged": 1, "listed": 2})
    assert counts(desk.sync()) == {"unchanged": 2, "listed": 2}


def test_an_edited_passage_counts_as_changed_here(desk: Desk) -> None:
    desk.make(conflict_strategy="skip")
    desk.shelf.fill(1)
    desk.sync()
    document = desk.documents()["Note 1"]
    with space_scope(desk.world.space.pk, "test"):
        Chunk.objects.create(
            space_id=document.space_id, kb_id=document.kb_id, document=document, chunk_index=0, content="mine", content_hash="x",
            start_at=0, end_at=4, content_revision=1,
        )  # fmt: skip
    desk.shelf.put("id-1", "Note 1", "Theirs.")
    assert counts(desk.sync()) == {"skipped": 1, "listed": 1}
    assert desk.items()["id-1"].reason == "kept_local"


def test_a_name_given_here_stays_with_skip(desk: Desk) -> None:
    desk.make(conflict_strategy="skip")
    desk.shelf.fill(1)
    desk.sync()
    with space_scope(desk.world.space.pk, "test"):
        document_update(actor=desk.actor, document=Document.objects.get(title="Note 1"), title="My name")
    desk.shelf.change("id-1", title="Their name", folder="theirs")
    desk.sync()
    assert {row.title: row.folder_path for row in desk.documents().values()} == {"My name": "theirs"}


def test_what_was_deleted_here_stays_deleted_until_a_full_run(desk: Desk) -> None:
    desk.shelf.fill(3)
    desk.sync()
    document = desk.documents()["Note 1"]
    with space_scope(desk.world.space.pk, "test"):
        documents_delete(actor=desk.actor, base=desk.world.base, documents=[document])
    desk.shelf.put("id-1", "Note 1", "Changed meanwhile.")
    assert counts(desk.sync()) == {"skipped": 1, "unchanged": 2, "listed": 3}
    assert counts(desk.sync()) == {"unchanged": 3, "listed": 3}
    assert "Note 1" not in desk.documents()
    desk.sync(mode="full")
    back = desk.documents()["Note 1"]
    assert (back.uid, desk.text(back)) == (document.uid, "Changed meanwhile.")


def test_what_comes_back_from_the_trash_is_followed_again(desk: Desk) -> None:
    desk.shelf.fill(2)
    desk.sync()
    document = desk.documents()["Note 1"]
    with space_scope(desk.world.space.pk, "test"):
        base_clear(actor=desk.actor, base=desk.world.base)
    assert counts(desk.sync()) == {"skipped": 2, "listed": 2}
    with space_scope(desk.world.space.pk, "test"):
        documents_restore(actor=desk.actor, base=desk.world.base, documents=[Document.objects.get(pk=document.pk)])
    desk.shelf.put("id-1", "Note 1", "Changed meanwhile.")
    desk.sync()
    assert {title: desk.text(row) for title, row in desk.documents().items()} == {"Note 1": "Changed meanwhile."}


def test_a_full_run_takes_everything_again_and_puts_right_what_differs(desk: Desk) -> None:
    desk.shelf.fill(3)
    desk.sync()
    _edit(desk, "Note 1", "Mine.")
    desk.shelf.fetched.clear()
    run = desk.sync(mode="full")
    assert (len(desk.shelf.fetched), counts(run)) == (3, {"updated": 1, "unchanged": 2, "listed": 3})
    assert desk.text(desk.documents()["Note 1"]) == "The text of note number 1."


def test_another_selection_is_listed_from_the_beginning(desk: Desk) -> None:
    desk.shelf.as_delta = True
    desk.shelf.fill(3)
    desk.sync()
    assert desk.sync().listed == 0
    with space_scope(desk.world.space.pk, "test"):
        source_update(actor=desk.actor, source=desk.source, values={"resource_ids": ["x"]})
    assert desk.sync().listed == 3


def test_hostile_names_are_data(desk: Desk) -> None:
    desk.shelf.put("x" * 3000, "<script>alert(1)</script>", "Text one.", folder="../../etc", file_name="../../passwd.md")
    desk.shelf.put("nul", "A\x00B\u202egnp", "Text two.", file_name="a\x00b.md")
    run = desk.sync()
    assert counts(run) == {"created": 2, "listed": 2}, run.errors
    folders = {row.file_name: (row.title, row.folder_path) for row in desk.documents().values()}
    assert folders == {"passwd.md": ("passwd.md", "etc"), "a b.md": ("A B gnp", "")}
    assert counts(desk.sync()) == {"unchanged": 2, "listed": 2}


def test_no_document_leaves_a_row_in_the_activity_of_its_own(desk: Desk) -> None:
    from apps.common.models import Activity

    desk.shelf.fill(5)
    desk.sync()
    with space_scope(desk.world.space.pk, "test"):
        rows = list(Activity.objects.order_by("pk").values_list("action", "outcome"))
    assert rows == [("source.created", "success"), ("source.sync_started", "accepted"), ("source.sync_completed", "success")]
    desk.sync()
    with space_scope(desk.world.space.pk, "test"):
        assert Activity.objects.count() == 4, "only that somebody started it"
