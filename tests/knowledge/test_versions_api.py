"""Versions of a file: one identity, the old passages until the new ones are there, earlier files kept, compared, brought back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.common.scope import space_scope, unscoped
from apps.ingestion.reconcile import reconcile
from apps.knowledge.models import Document, DocumentTag, DocumentVersion
from apps.knowledge.services import document_update, documents_delete, documents_into_folder, documents_purge, tag_create, tags_replace
from apps.retrieval.engine import forget_engine
from apps.spaces.selectors import storage_used
from tests.support.filestore import use_fresh_store
from tests.support.kit import work_all
from tests.support.library import Library

FIRST = "# Pump\n\nThe pump is red.\n\nCode OLD-100.\n"
SECOND = "# Pump\n\nThe pump is blue.\n\nCode NEW-200.\n"


@pytest.fixture
def library(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Library]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    use_fresh_store(settings, tmp_path)
    forget_engine()
    yield Library.make()
    forget_engine()


def api(library: Library, document: Document, tail: str = "") -> str:
    return f"/v1/tenants/{library.space.pk}/knowledge/documents/{document.uid}{tail}"


def send(library: Library, document: Document, text: str | bytes, name: str = "pump-2.md") -> Any:
    raw = text.encode() if isinstance(text, str) else text
    return library.member.post(api(library, document, "/versions"), {"file": SimpleUploadedFile(name, raw)})


def found(library: Library, query: str) -> list[str]:
    url = f"/v1/tenants/{library.space.pk}/knowledge/bases/{library.base.uid}/hybrid-search"
    hits = library.client.post(url, {"query_text": query}, content_type="application/json").json()["data"] or []
    return sorted({hit["knowledge_id"] for hit in hits if query in hit["content"]})


def test_a_new_file_keeps_identity_and_the_old_passages_serve_until_it_is_read(library: Library) -> None:
    document = library.add("pump.md", FIRST, vectors=True)
    with space_scope(library.space.pk):
        tag = tag_create(actor=library.actor, base=library.base, name="pumps")
        tags_replace(actor=library.actor, base=library.base, updates={str(document.uid): [str(tag.uid)]})
        documents_into_folder(actor=library.actor, base=library.base, documents=[document], path="manuals")
        document_update(actor=library.actor, document=document, custom_metadata={"k": "v"})
    answer = send(library, document, SECOND)
    shown = answer.json()["data"]
    assert (answer.status_code, shown["id"], shown["parse_status"], shown["file_name"]) == (200, str(document.uid), "pending", "pump-2.md")
    assert (shown["folder_path"], shown["custom_metadata"], [row["name"] for row in shown["tags"]]) == ("manuals", {"k": "v"}, ["pumps"])
    assert shown["title"] == "pump-2.md", "a title that was the file's name follows it"
    assert found(library, "OLD-100") == [str(document.uid)], "the passages before serve"
    work_all("parse", "embed")
    assert found(library, "NEW-200") == [str(document.uid)] and found(library, "OLD-100") == []
    assert library.reload(document).parse_status == "completed"
    with unscoped("test look"):
        assert DocumentTag.objects.filter(document=document).count() == 1
        assert Document.objects.count() == 1
    rows = library.member.get(api(library, document, "/versions")).json()["data"]
    assert [(row["version"], row["is_current"], row["file_name"]) for row in rows] == [(2, True, "pump-2.md"), (1, False, "pump.md")]
    assert [row["creator_name"] for row in rows] == ["mia", "ada"]
    old = library.member.get(api(library, document, "/versions/1/download"))
    assert b"".join(old.streaming_content).decode() == FIRST and "pump.md" in old["Content-Disposition"]
    assert b"".join(library.member.get(api(library, document, "/download")).streaming_content).decode() == SECOND
    assert storage_used(space_id=library.space.pk) == len(FIRST) + len(SECOND), "earlier versions take room"
    assert reconcile(repair=True, young_s=0).total == 0


def test_the_same_bytes_change_nothing_and_what_cannot_come_in_says_why(library: Library) -> None:
    document, other = library.add("pump.md", FIRST), library.add("valve.md", SECOND)
    for text, holder in ((FIRST, document), (SECOND, other)):
        answer = send(library, document, text)
        assert (answer.status_code, answer.json()["code"], answer.json()["data"]["id"]) == (409, "duplicate_file", str(holder.uid))
    assert send(library, document, b"").status_code == 400
    assert send(library, document, b"MZ\x00\x01", "a.exe").status_code == 400
    written = library.write("Note", "By hand.")
    assert send(library, written, SECOND + "more").status_code == 400
    with unscoped("test look"):
        assert not DocumentVersion.objects.exists()
    assert reconcile(repair=False, young_s=0).total == 0, "no file of a refused version is left"


def test_compare_and_bring_back(library: Library) -> None:
    document = library.add("pump.md", FIRST, vectors=True)
    send(library, document, SECOND)
    waiting = library.member.get(api(library, document, "/versions/1/diff"))
    assert waiting.status_code == 404, "the new text is not there yet"
    work_all("parse", "embed")
    diff = library.member.get(api(library, document, "/versions/1/diff")).json()["data"]
    assert (diff["older"], diff["newer"], diff["added"], diff["removed"]) == (1, 2, 2, 2)
    changed = [(line["kind"], line["text"]) for line in diff["lines"] if line["kind"] in ("added", "removed")]
    assert ("removed", "The pump is red.") in changed and ("added", "Code NEW-200.") in changed
    assert library.member.get(api(library, document, "/versions/7/diff")).status_code == 404
    back = library.member.post(api(library, document, "/versions/1/restore"))
    assert (back.status_code, back.json()["data"]["file_name"]) == (200, "pump.md")
    work_all("parse", "embed")
    assert found(library, "OLD-100") == [str(document.uid)] and found(library, "NEW-200") == []
    rows = library.member.get(api(library, document, "/versions")).json()["data"]
    assert [(row["version"], row["file_name"]) for row in rows] == [(3, "pump.md"), (2, "pump-2.md"), (1, "pump.md")]
    assert library.member.get(api(library, document, "/versions/1/diff")).json()["data"]["lines"] == []
    assert reconcile(repair=True, young_s=0).total == 0


def test_a_version_that_cannot_be_read_leaves_the_passages_before_in_service(library: Library) -> None:
    document = library.add("pump.md", FIRST, vectors=True)
    assert send(library, document, b"%PDF-1.7\nbroken beyond repair", "pump.pdf").status_code == 200
    work_all("parse")
    failed = library.reload(document)
    assert (failed.parse_status, failed.version, failed.chunk_count) == ("failed", 2, 1) and failed.reason
    assert found(library, "OLD-100") == [str(document.uid)]
    assert library.member.post(api(library, document, "/versions/1/restore")).status_code == 200
    work_all("parse", "embed")
    assert library.reload(document).parse_status == "completed" and found(library, "OLD-100") == [str(document.uid)]


def test_removed_for_good_nothing_of_any_version_is_left(library: Library) -> None:
    from apps.knowledge import files

    document = library.add("pump.md", FIRST)
    send(library, document, SECOND)
    work_all("parse")
    with space_scope(library.space.pk):
        documents_delete(actor=library.actor, base=library.base, documents=[library.reload(document)])
        documents_purge(actor=library.actor, base=library.base, documents=[library.reload(document)])
    work_all("cleanup")
    assert list(files.stored_entries()) == []
    with unscoped("test look"):
        assert not DocumentVersion.objects.exists()


def test_the_page_lists_compares_uploads_and_brings_back(library: Library) -> None:
    document = library.add("pump.md", FIRST, vectors=True)
    page = library.url(document, "versions")
    assert "Version 1" in library.page(page) and "New version" in library.page(page)
    assert library.client.post(page, {}).status_code == 422
    same = library.client.post(page, {"file": SimpleUploadedFile("pump.md", FIRST.encode())})
    assert same.status_code == 422 and "very file the document has" in same.content.decode()
    sent = library.client.post(page, {"file": SimpleUploadedFile("pump.md", SECOND.encode())})
    assert sent.status_code == 302
    assert "has no text to compare yet" in library.page(library.url(document, "versions/1/diff"))
    work_all("parse", "embed")
    shown = library.page(library.url(document, "versions/1/diff"))
    assert "The pump is red." in shown and "The pump is blue." in shown and "2 lines added, 2 removed" in shown
    assert library.client.post(library.url(document, "versions/1/restore")).status_code == 302
    assert "Version 3" in library.page(page)
    assert library.client.get(library.url(document, "versions/9/diff")).status_code == 404


def test_an_upload_of_a_name_that_is_there_keeps_both_skips_or_is_a_new_version(library: Library) -> None:
    document = library.add("pump.md", FIRST, folder_path="manuals")
    url = f"/v1/tenants/{library.space.pk}/knowledge/bases/{library.base.uid}/file"

    def upload(text: str, policy: str, name: str = "manuals/pump.md") -> Any:
        fields = {"file": SimpleUploadedFile("pump.md", text.encode()), "fileName": name, **({"on_same_name": policy} if policy else {})}
        return library.member.post(url, fields)

    assert upload(SECOND, "other").status_code == 400
    skipped = upload(SECOND, "skip")
    assert (skipped.status_code, skipped.json()["code"], skipped.json()["data"]["id"]) == (409, "duplicate_file", str(document.uid))
    newer = upload(SECOND, "version").json()["data"]
    assert newer["id"] == str(document.uid) and library.reload(document).version == 2
    both = upload(SECOND + "more", "").json()["data"]
    elsewhere = upload(SECOND + "even more", "version", "other/pump.md").json()["data"]
    with unscoped("test look"):
        assert {str(uid) for uid in Document.objects.values_list("uid", flat=True)} == {str(document.uid), both["id"], elsewhere["id"]}


def test_a_version_is_processed_as_its_upload_wishes(library: Library) -> None:
    document = library.add("pump.md", FIRST)
    url = f"/v1/tenants/{library.space.pk}/knowledge/bases/{library.base.uid}/file"
    wish = json.dumps({"enable_multimodel": False})
    fields = {"file": SimpleUploadedFile("pump.md", SECOND.encode()), "on_same_name": "version", "process_config": wish}
    answer = library.member.post(url, fields)
    assert (answer.status_code, answer.json()["data"]["id"]) == (200, str(document.uid))
    assert library.reload(document).metadata == {"process_overrides": {"enable_multimodel": False}}
    assert send(library, document, SECOND + "More.").status_code == 200
    assert library.reload(document).metadata == {"process_overrides": {"enable_multimodel": False}}, "the next one keeps it"
    bad = {"file": SimpleUploadedFile("pump.md", b"third"), "on_same_name": "version", "process_config": '{"graph_enabled": true}'}
    assert library.member.post(url, bad).status_code == 400 and library.reload(document).version == 3
