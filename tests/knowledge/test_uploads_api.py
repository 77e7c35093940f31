"""Files coming in, and what is refused."""

from __future__ import annotations

import hashlib
import io
import threading
import unicodedata
import zipfile
from typing import Any
from urllib.parse import unquote

import pytest
from django.db import connection

from apps.common import storage
from apps.common.models import Activity
from apps.common.scope import unscoped
from apps.knowledge import intake
from apps.knowledge.events import DocumentStored
from apps.knowledge.models import Document, ParseStatus, Tag

KEYS = {
    "id", "tenant_id", "knowledge_base_id", "tags", "type", "title", "description", "source", "channel", "parse_status",
    "pending_subtasks_count", "summary_status", "enable_status", "embedding_model_id", "folder_path", "file_name", "file_type", "file_size",
    "storage_size", "file_hash", "file_path", "metadata", "custom_metadata", "last_faq_import_result", "created_at", "updated_at",
    "processed_at", "deleted_at", "error_message", "reason", "warnings", "chunk_count", "vector_count", "encoding", "counts",
    "knowledge_base_name",
}  # fmt: skip


def count_documents() -> int:
    with unscoped("test look"):
        return int(Document.objects.count())


def test_upload_makes_a_waiting_document_with_its_bytes_stored(world: Any, heard: Any, stored: Any) -> None:
    events = heard(DocumentStored)
    data = "安全生产\n".encode() * 100_000
    answer = world.member.upload(
        world.base, data, "手册.TXT", metadata='{"origin": "mail"}', process_config='{"summary_enabled": false}', channel="api"
    )
    assert answer.status_code == 200
    document = answer.json()["data"]
    assert set(document) == KEYS
    assert document["parse_status"] == "pending" and document["enable_status"] == "disabled" and document["tags"] is None
    assert (document["title"], document["file_name"], document["file_type"], document["channel"]) == ("手册.TXT", "手册.TXT", "txt", "api")
    assert document["file_hash"] == hashlib.md5(data).hexdigest()
    assert document["file_size"] == document["storage_size"] == len(data)
    assert document["metadata"] == {"origin": "mail", "process_overrides": {"summary_enabled": False}}
    row = _row(document["id"])
    assert row.content_sha256 == hashlib.sha256(data).hexdigest()
    assert row.creator_id == world.member.user.pk
    assert stored() == [row.storage_path]
    assert row.storage_path.startswith(f"{world.space.pk}/{world.base.uid}/{row.uid}/") and row.storage_path.endswith("/original")
    assert storage.read(row.storage_path).read() == data
    assert events == [DocumentStored(space_id=world.space.pk, document_id=row.pk, trigger="user", options={"summary_enabled": False})]
    with unscoped("test look"):
        assert Activity.objects.filter(action="knowledge.created", scope_id=world.base.uid, outcome="accepted").count() == 1


def _row(uid: str) -> Document:
    with unscoped("test look"):
        return Document.objects.get(uid=uid)


@pytest.mark.parametrize(
    ("data", "name", "reason", "words"),
    [
        (b"", "a.txt", "empty", ("empty", "空")),
        (b"", "renamed.docx", "empty", ("empty", "空")),
        (b"   \r\n\t ", "spaces.txt", "blank", ("blank", "空白")),
        ("\u3000\u00a0\n".encode(), "wide.md", "blank", ("blank", "空白")),
        ("\ufeff  \n".encode("utf-16"), "utf16.txt", "blank", ("blank", "空白")),
        (b"MZ\x90\x00" + bytes(range(256)), "setup.exe", "unsupported_type", ("Unsupported", "不支持")),
        (b"\x00\x01\x02" * 99, "README", "unsupported_type", ("Unsupported", "不支持")),
        (b"x" * 3000, "big.txt", "too_large", ("too large", "过大")),
        (b"x", "a\x01b.txt", "illegal_name", ("file name", "文件名")),
    ],
)
def test_refusals_say_why_and_leave_nothing(
    world: Any, stored: Any, settings: Any, data: bytes, name: str, reason: str, words: tuple[str, str]
) -> None:
    settings.MAX_FILE_SIZE = 2048
    for language, word in zip(("en", "zh-hans"), words, strict=True):
        type(world.member.user).objects.filter(pk=world.member.user.pk).update(language=language)
        answer = world.member.upload(world.base, data, "x.bin", fileName=name)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["details"]["reason"] == reason
        assert word in error["message"]
    assert count_documents() == 0
    assert stored() == []


def test_no_space_is_refused_and_low_space_is_said(world: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DISK_WARN_BYTES, settings.DISK_REFUSE_BYTES = 20 * 1024**3, 5 * 1024**3
    monkeypatch.setattr(storage, "free_bytes", lambda: 10 * 1024**3)
    answer = world.member.upload(world.base, b"hello")
    assert answer.status_code == 200 and answer.json()["warning"]["code"] == "low_disk_space"
    monkeypatch.setattr(storage, "free_bytes", lambda: 4 * 1024**3)
    refused = world.member.upload(world.base, b"other")
    assert (refused.status_code, refused.json()["error"]["details"]["reason"]) == (400, "no_space")
    url = world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/url", {"url": "https://example.com"})
    assert url.json()["error"]["details"]["reason"] == "no_space"
    assert count_documents() == 1


def test_an_oversized_body_is_refused_before_it_is_read(world: Any, settings: Any) -> None:
    settings.MAX_FILE_SIZE = 1024
    answer = world.member.client.generic(
        "POST",
        f"/api/v1/knowledge-bases/{world.base.uid}/knowledge/file",
        b"-",
        content_type="multipart/form-data; boundary=x",
        CONTENT_LENGTH=str(10**9),
        headers={"X-Tenant-ID": str(world.space.pk)},
    )
    assert (answer.status_code, answer.json()["error"]["details"]["reason"]) == (400, "too_large")


def test_a_registered_inspector_decides(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def inspector(path: Any, name: str) -> intake.Inspection:
        seen.append((path.read_bytes(), name))
        return intake.Inspection("application/pdf", "pdf", "corrupt" if b"bad" in path.read_bytes() else "", "The file is damaged.")

    monkeypatch.setattr(intake, "_inspector", intake.by_extension)
    monkeypatch.setattr(intake, "_extensions", intake.EXTENSIONS)
    intake.register_inspector(inspector, ["pdf"])
    assert world.member.upload(world.base, b"%PDF bad", "a.pdf").json()["error"]["details"]["reason"] == "corrupt"
    fine = world.member.upload(world.base, b"%PDF fine", "really-a-pdf.txt").json()["data"]
    assert fine["file_type"] == "pdf"
    assert seen == [(b"%PDF bad", "a.pdf"), (b"%PDF fine", "really-a-pdf.txt")]


def test_the_same_bytes_again_answer_the_first_document(world: Any, stored: Any) -> None:
    first = world.member.upload(world.base, b"same", "a.txt").json()["data"]
    again = world.member.upload(world.base, b"same", "b.txt")
    assert again.status_code == 409
    body = again.json()
    assert (body["success"], body["code"], body["message"]) == (False, "duplicate_file", "File already exists: a.txt")
    assert body["data"]["id"] == first["id"]
    assert _row(first["id"]).created_at.isoformat() > first["created_at"].replace("Z", "+00:00"), "the row is bumped"
    assert len(stored()) == 1
    assert world.member.upload(world.base, b"same", "a.md").status_code == 200, "another type is another document"
    assert world.member.upload(world.base, b"other", "a.txt").status_code == 200, "the same name with other content is fine"
    assert world.outsider.upload(world.other_base, b"same", "a.txt").status_code == 200, "another base, another document"


def test_a_failed_or_deleted_row_does_not_block(world: Any) -> None:
    first = world.member.upload(world.base, b"same", "a.txt").json()["data"]
    with unscoped("test data"):
        Document.objects.filter(uid=first["id"]).update(parse_status=ParseStatus.FAILED)
    second = world.member.upload(world.base, b"same", "a.txt")
    assert second.status_code == 200
    conflict = world.member.post(f"knowledge/{first['id']}/reparse")
    assert (conflict.status_code, conflict.json()["error"]["details"]["reason"]) == (409, "duplicate_file")
    assert world.member.delete(f"knowledge/{second.json()['data']['id']}").status_code == 200
    assert world.member.upload(world.base, b"same", "a.txt").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_ten_racing_uploads_make_one_document(world: Any, stored: Any) -> None:
    start = threading.Barrier(10)
    answers: list[tuple[int, str]] = []

    def upload(number: int) -> None:
        try:
            start.wait()
            answer = world.member.upload(world.base, b"race" * 1000, f"{number}.txt")
            answers.append((answer.status_code, answer.json()["data"]["id"]))
        finally:
            connection.close()

    threads = [threading.Thread(target=upload, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(status for status, _id in answers) == [200] + [409] * 9
    assert len({uid for _status, uid in answers}) == 1
    assert count_documents() == 1
    assert stored() == [_row(answers[0][1]).storage_path], "the losers' bytes are gone"


def test_a_failing_transaction_takes_its_file_along(world: Any, stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.knowledge.services import intake as service

    def explode(*_args: Any) -> None:
        raise RuntimeError("listener failed")

    monkeypatch.setattr(service, "publish", explode)
    world.member.client.raise_request_exception = False
    assert world.member.upload(world.base, b"data").status_code == 500
    assert count_documents() == 0 and stored() == []


NAMES = [
    "a&b.txt", "a&amp;b.txt", "a#b.txt", "%2e%2e%2f.txt", "a+b.txt", "a;b.txt", "a'b.txt", 'a"b.txt', ".hidden.txt", "dots..txt",
    "emoji 😀.txt", "汉" * 83 + ".txt", unicodedata.normalize("NFD", "é.txt"), "rtl\u202etxt.exe.txt", "CON.txt", "UPPER.TXT",
    "trailing.txt ", " leading.txt", "<b>.txt",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_hard_names_survive_everything(world: Any, name: str) -> None:
    answer = world.member.upload(world.base, name.encode(), "x.txt", fileName=name)
    assert answer.status_code == 200, answer.content
    document = answer.json()["data"]
    assert "\u202e" not in document["file_name"] and document["folder_path"] == ""
    uid = document["id"]
    listed = world.member.call(
        "GET", f"knowledge-bases/{world.base.uid}/knowledge", data="", QUERY_STRING=f"keyword={_quoted(document['file_name'])}"
    )
    assert [row["id"] for row in listed.json()["data"]] == [uid]
    download = world.member.get(f"knowledge/{uid}/download")
    assert download.getvalue() == name.encode()
    header = download["Content-Disposition"]
    assert header.startswith("attachment; filename=") and "\n" not in header
    assert unquote(header.split("filename*=UTF-8''")[1]) == name
    archive = world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/batch-download", {"ids": [uid]})
    entries = zipfile.ZipFile(io.BytesIO(archive.getvalue()))
    assert entries.read(entries.namelist()[0]) == name.encode()
    assert not set(entries.namelist()[0]) & set('<>:"\\|?*')
    assert world.member.delete(f"knowledge/{uid}").status_code == 200


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text)


def test_the_name_of_the_part_itself_is_kept(world: Any) -> None:
    boundary = "xx"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a&lt;b.txt"\r\nContent-Type: text/plain\r\n\r\nhi\r\n--{boundary}--\r\n'
    ).encode()
    answer = world.member.client.generic(
        "POST",
        f"/api/v1/knowledge-bases/{world.base.uid}/knowledge/file",
        body,
        content_type=f"multipart/form-data; boundary={boundary}",
        headers={"X-Tenant-ID": str(world.space.pk)},
    )
    assert answer.json()["data"]["file_name"] == "a&lt;b.txt"


def test_a_path_in_the_name_becomes_the_folder(world: Any) -> None:
    for name, folder, shown in (
        ("manuals/pumps/a.txt", "manuals/pumps", "a.txt"),
        ("..\\..\\etc\\passwd.txt", "etc", "passwd.txt"),
        ("/absolute/b.txt", "absolute", "b.txt"),
    ):
        document = world.member.upload(world.base, name.encode(), "x.txt", fileName=name).json()["data"]
        assert (document["folder_path"], document["file_name"]) == (folder, shown)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"metadata": "{"}, "metadata"),
        ({"metadata": '{"a": 1}'}, "metadata"),
        ({"process_config": "[]"}, "process_config"),
        ({"enable_multimodel": "perhaps"}, "enable_multimodel"),
        ({"tag_ids": "00000000-0000-0000-0000-000000000000"}, "tag_ids"),
    ],
)
def test_bad_parts_name_themselves(world: Any, fields: dict[str, str], field: str) -> None:
    answer = world.member.upload(world.base, b"x", **fields)
    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, field)
    assert count_documents() == 0


def test_missing_file_and_broken_multipart(world: Any) -> None:
    url = f"/api/v1/knowledge-bases/{world.base.uid}/knowledge/file"
    headers = {"X-Tenant-ID": str(world.space.pk)}
    missing = world.member.client.post(url, {"fileName": "a.txt"}, headers=headers)
    assert (missing.status_code, missing.json()["error"]["details"]["field"]) == (400, "file")
    text = world.member.client.post(url, {"file": "not a file"}, headers=headers)
    assert (text.status_code, text.json()["error"]["details"]["field"]) == (400, "file")
    broken = world.member.client.generic("POST", url, b"garbage", content_type="multipart/form-data", headers=headers)
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, 1000)


def test_tags_come_along_and_faq_bases_take_no_files(world: Any) -> None:
    with unscoped("test data"):
        tag = Tag.objects.create(space=world.space, kb=world.base, name="safety")
    document = world.member.upload(world.base, b"x", tag_ids=f"{tag.uid},").json()["data"]
    assert [found["name"] for found in document["tags"]] == ["safety"]
    faq = world.make_base(world.space, "FAQ", type="faq")
    assert world.member.upload(faq, b"x").status_code == 400
    assert world.member.upload(world.other_base, b"x").status_code == 404


def test_digest_in_pieces(tmp_path: Any) -> None:
    from apps.knowledge.files import digest

    path = tmp_path / "f"
    data = b" " * (3 << 20) + b"x"
    path.write_bytes(data)
    found = digest(path)
    assert (found.md5, found.sha256, found.size_bytes, found.blank) == (
        hashlib.md5(data).hexdigest(),
        hashlib.sha256(data).hexdigest(),
        len(data),
        False,
    )
    path.write_bytes(b" \n" * (1 << 20))
    assert digest(path).blank is True
