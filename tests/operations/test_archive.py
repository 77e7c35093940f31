"""The archive knows when it was cut off or altered, and rows come out of it as they went in."""

from __future__ import annotations

import datetime
import io
import json
import tarfile
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import models

from apps.common import rows
from apps.common.errors import InvalidInput
from apps.operations import archive
from apps.operations.archive import ArchiveWriter, RowsWriter

FILES = {"files/1/a/original": b"first " * 5000, "files/1/b/原件": "第二".encode() * 700, "files/empty": b"", "settings.json": b"{}"}


def written() -> bytes:
    target = io.BytesIO()
    writer = ArchiveWriter(target)
    for name, data in FILES.items():
        writer.add_bytes(name, data)
    part = RowsWriter(writer, "some_table")
    for number in range(3):
        part.add(json.dumps([number, "值"]))
    part.flush()
    writer.finish({"tables": {"some_table": {"rows": 3}}})
    return target.getvalue()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "backup.tar"
    path.write_bytes(written())
    return path


def test_a_whole_archive_is_sound_and_gives_everything_back(made: Path) -> None:
    manifest = archive.verify(made)
    assert sorted(manifest["members"]) == sorted([*FILES, "rows/some_table/000001.jsonl.gz"])
    assert manifest["tables"] == {"some_table": {"rows": 3}}
    found = {name: data.read() for name, data in archive.members(made) if name in FILES}
    assert found == FILES
    lines = [list(archive.lines(data)) for name, data in archive.members(made) if name.startswith("rows/")]
    assert [json.loads(line) for line in lines[0]] == [[0, "值"], [1, "值"], [2, "值"]]


def test_wherever_it_is_cut_off_it_is_refused(made: Path) -> None:
    whole = made.read_bytes()
    end = len(whole.rstrip(b"\0"))
    for length in [0, 1, 511, 512, 700, 5000, *range(6000, end, 3001), end - 600, end - 70]:
        made.write_bytes(whole[:length])
        with pytest.raises(InvalidInput) as refused:
            archive.verify(made)
        assert any(word in str(refused.value) for word in ("incomplete", "damaged", "no backup")), (length, refused.value)


def test_a_single_changed_byte_of_any_member_is_refused_by_name(made: Path) -> None:
    whole = made.read_bytes()
    with tarfile.open(made) as tar:
        places = {entry.name: entry.offset_data for entry in tar if entry.size}
    for name, offset in places.items():
        made.write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
        with pytest.raises(InvalidInput) as refused:
            archive.verify(made)
        assert name in str(refused.value) or "manifest was altered" in str(refused.value)


def test_what_does_not_belong_is_refused(made: Path, tmp_path: Path) -> None:
    with tarfile.open(made, "a") as tar:
        entry = tarfile.TarInfo("files/../../evil")
        entry.size = 3
        tar.addfile(entry, io.BytesIO(b"abc"))
    with pytest.raises(InvalidInput, match="evil"):
        archive.verify(made)
    other = tmp_path / "photo.tar"
    other.write_bytes(b"\x89PNG" + b"0" * 5000)
    with pytest.raises(InvalidInput, match="no backup of this portal"):
        archive.verify(other)
    with pytest.raises(InvalidInput, match="there is no file"):
        archive.verify(tmp_path / "nowhere.tar")


def test_a_link_in_the_archive_is_refused(made: Path) -> None:
    with tarfile.open(made, "a") as tar:
        link = tarfile.TarInfo("files/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    with pytest.raises(InvalidInput, match="files/link"):
        archive.verify(made)


def test_rows_are_cut_into_members_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PART_BYTES", 100)
    target = io.BytesIO()
    writer = ArchiveWriter(target)
    part = RowsWriter(writer, "t")
    for number in range(30):
        part.add(f"[{number}]")
    part.flush()
    assert part.parts == len(writer.members) == 2
    assert part.size_bytes == sum(len(f"[{number}]\n") for number in range(30))


def test_an_object_that_vanishes_leaves_no_half_member() -> None:
    class Gone(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise FileNotFoundError

    target = io.BytesIO()
    writer = ArchiveWriter(target)
    with pytest.raises(FileNotFoundError):
        writer.add("files/gone", Gone(), 10)  # type: ignore[arg-type]
    writer.finish({})
    assert list(json.loads(dict(_members(target))["manifest.json"])["members"]) == []


def _members(target: io.BytesIO) -> list[tuple[str, bytes]]:
    target.seek(0)
    with tarfile.open(fileobj=target) as tar:
        return [(entry.name, (tar.extractfile(entry) or io.BytesIO()).read()) for entry in tar]


WHEN = datetime.datetime(2026, 5, 4, 3, 2, 1, 987654, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (models.TextField(), 'quote " and \\ and \n and \x00 and 𝒳'),
        (models.BinaryField(), bytes(range(256))),
        (models.DateTimeField(), WHEN),
        (models.DateField(), WHEN.date()),
        (models.TimeField(), WHEN.time()),
        (models.UUIDField(), uuid.UUID(int=7)),
        (models.DecimalField(max_digits=9, decimal_places=4), Decimal("1.5000")),
        (models.BigIntegerField(), 2**63 - 1),
        (models.FloatField(), 0.1 + 0.2),
        (models.BooleanField(), False),
        (models.JSONField(), {"$b": "no marker", "deep": [1, None, {"文": 1.5}]}),
        (models.JSONField(), "a string"),
        (models.TextField(null=True), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, models.Field) else "",
)
def test_every_kind_of_value_comes_back_the_same(field: models.Field, value: object) -> None:
    (back,) = rows.from_json([field], rows.to_json([value]))
    assert (bytes(back) if isinstance(back, memoryview) else back) == value
    assert type(back) in (type(value), memoryview)
