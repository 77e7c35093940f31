"""Originals on their way out."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile

from apps.common import storage
from apps.common.scope import unscoped
from apps.knowledge import downloads
from apps.knowledge.models import Document


def test_download_ranges(world: Any) -> None:
    data = "".join(f"行 {number},值 {number}\n" for number in range(40_000)).encode()
    uid = world.member.upload(world.base, data, "a.csv").json()["data"]["id"]
    url = f"knowledge/{uid}/download"
    whole = world.member.get(url)
    assert whole.getvalue() == data
    assert whole["Content-Type"] == "application/octet-stream" and whole["Content-Length"] == str(len(data))
    assert (whole["Cache-Control"], whole["X-Content-Type-Options"], whole["Accept-Ranges"]) == ("private, no-store", "nosniff", "bytes")
    for asked, start, end in (
        ("bytes=0-9", 0, 10),
        ("bytes=500000-", 500_000, len(data)),
        ("bytes=-7", len(data) - 7, len(data)),
        ("bytes=10-99999999", 10, len(data)),
    ):
        part = world.member.get(url, headers={"Range": asked})
        assert (part.status_code, part.getvalue()) == (206, data[start:end])
        assert part["Content-Range"] == f"bytes {start}-{end - 1}/{len(data)}" and part["Content-Length"] == str(end - start)
    past = world.member.get(url, headers={"Range": f"bytes={len(data)}-"})
    assert (past.status_code, past["Content-Range"]) == (416, f"bytes */{len(data)}")
    for odd in ("bytes=5-1", "bytes=0-1,4-5", "lines=1-2", "bytes=-"):
        assert world.member.get(url, headers={"Range": odd}).status_code == 200


def test_preview_never_runs_anything(world: Any) -> None:
    html = world.member.upload(world.base, b"<html><script>alert(1)</script></html>", "a.html").json()["data"]["id"]
    shown = world.member.get(f"knowledge/{html}/preview")
    assert shown["Content-Disposition"].startswith("attachment") and shown["Content-Type"] == "application/octet-stream"
    assert shown["Content-Security-Policy"].startswith("sandbox")
    text = world.member.upload(world.base, "安全".encode(), "a.md").json()["data"]["id"]
    shown = world.member.get(f"knowledge/{text}/preview")
    assert (shown["Content-Type"], shown["Content-Disposition"].split(";")[0]) == ("text/plain; charset=utf-8", "inline")
    document = world.make_document(world.base, "a.svg", storage_path="", media_type="image/svg+xml", file_type="svg")
    assert world.member.get(f"knowledge/{document.uid}/preview").status_code == 404


def test_a_lost_file_is_said(world: Any) -> None:
    uid = world.member.upload(world.base, b"x").json()["data"]["id"]
    storage.remove(next(storage.keys()))
    answer = world.member.get(f"knowledge/{uid}/download")
    assert (answer.status_code, answer.json()["error"]["details"]["reason"]) == (404, "no_original")
    archive = world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/batch-download", {"ids": [uid]})
    assert archive.status_code == 500
    assert archive.json()["error"]["code"] == 1007 and archive.json()["error"]["details"]["knowledge_id"] == uid


def test_viewers_may_preview_and_not_download(world: Any) -> None:
    uid = world.member.upload(world.base, b"x").json()["data"]["id"]
    key = world.key(world.space, capabilities=["ingest"])
    assert key.get(f"/api/v1/knowledge/{uid}/download").status_code == 403
    assert world.key(world.space, capabilities=["retrieve"]).get(f"/api/v1/knowledge/{uid}/download").status_code == 200


def zip_of(world: Any, ids: list[str]) -> Any:
    return world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/batch-download", {"ids": ids})


def test_archive(world: Any) -> None:
    ids = []
    for name, data in (("f/a.txt", b"1"), ("F/A.TXT", b"2"), ("g/CON.txt", b"3"), ('q"<>.txt', b"4")):
        ids.append(world.member.upload(world.base, data, "x.txt", fileName=name).json()["data"]["id"])
    ids.append(
        world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/manual", {"content": "# Hi", "title": "Notes"}).json()["data"]["id"]
    )
    skipped = str(world.make_document(world.base, "page", type="url").uid)
    answer = zip_of(world, [*ids, skipped, ids[0], " "])
    assert answer.status_code == 200 and answer["Content-Type"] == "application/zip"
    assert answer["Content-Disposition"].startswith('attachment; filename="knowledge-files-20')
    archive = zipfile.ZipFile(io.BytesIO(answer.getvalue()))
    assert {name: archive.read(name) for name in archive.namelist()} == {
        "f/a.txt": b"1",
        "F/A (2).TXT": b"2",
        "g/_CON.txt": b"3",
        "q___.txt": b"4",
        "Notes.md": b"# Hi",
    }
    assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}


def test_archive_refusals(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    good = world.member.upload(world.base, b"12345").json()["data"]["id"]
    foreign = str(world.make_document(world.other_base, "x").uid)
    assert zip_of(world, [good, foreign]).status_code == 404
    assert zip_of(world, [good, "junk"]).status_code == 404
    assert zip_of(world, []).status_code == 400
    assert zip_of(world, [" "]).status_code == 400
    assert zip_of(world, ["x" * 129]).status_code == 400
    assert zip_of(world, [good] * 201).status_code == 400
    assert zip_of(world, [str(world.make_document(world.base, "page", type="url").uid)]).status_code == 400
    monkeypatch.setattr(downloads, "ARCHIVE_LIMIT", 4)
    assert zip_of(world, [good]).json()["error"]["details"]["reason"] == "too_large"
    monkeypatch.setattr(downloads, "ARCHIVE_LIMIT", 5)
    assert zip_of(world, [good]).status_code == 200
    for _ in range(4):
        assert downloads._archives.acquire(blocking=False)
    try:
        busy = zip_of(world, [good])
        assert (busy.status_code, busy.json()["error"]["code"]) == (429, 1006)
    finally:
        for _ in range(4):
            downloads._archives.release()


def test_bytes_stream_in_pieces_under_asgi(tmp_path: Path) -> None:
    import asyncio

    from apps.knowledge.api.bytes import BLOCK, BytesResponse

    path = tmp_path / "f"
    path.write_bytes(b"x" * (BLOCK * 2 + 5))

    async def read() -> list[int]:
        response = BytesResponse(path.open("rb"), 0, BLOCK * 2 + 5)
        return [len(piece) async for piece in response]

    assert asyncio.run(read()) == [BLOCK, BLOCK, 5]


def test_reconcile_sees_what_rows_name(world: Any) -> None:
    from apps.knowledge import files

    uid = world.member.upload(world.base, b"x").json()["data"]["id"]
    storage.write("1/stray/original", ContentFile(b"?"))
    with unscoped("test look"):
        expected = set(files.expected_keys())
        assert expected == {Document.objects.get(uid=uid).storage_path}
    assert {entry.key for entry in files.stored_entries()} - expected == {"1/stray/original"}
    assert files.delete_files(["1/stray/original", "1/never"]) == 2
    assert set(storage.keys()) == expected
