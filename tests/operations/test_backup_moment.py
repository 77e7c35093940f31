"""A backup is of one moment, whatever is deleted while it is made."""

from __future__ import annotations

import inspect
import io
import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from apps.common import storage
from apps.common.errors import Conflict, Unavailable
from apps.common.scope import space_scope
from apps.knowledge.models import Document
from apps.knowledge.services import documents_delete
from apps.operations import backup
from tests.support.kit import Kit, make_kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)  # the snapshot is read over another connection


@pytest.fixture(autouse=True)
def further_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django keeps tests from databases they have not named; the snapshot's is made while the test runs."""
    guarded = inspect.getclosurevars(BaseDatabaseWrapper.ensure_connection).nonlocals
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", guarded["real_ensure_connection"])


@pytest.fixture
def kit(settings: Any) -> Kit:
    settings.TRASH_DAYS = 0  # deleted is removed here, which is what a snapshot must cope with
    return make_kit()


def gone(kit: Kit, document: Document) -> None:
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[document])
    work_all("cleanup")
    assert not storage.exists(document.storage_path)


def made() -> tuple[backup.Made, dict[str, Any], set[str]]:
    target = io.BytesIO()
    done = backup.backup_to(target, secrets=True, told=lambda _text: None)
    target.seek(0)
    with tarfile.open(fileobj=target) as tar:
        manifest = json.loads((tar.extractfile("manifest.json") or io.BytesIO()).read())
        return done, manifest, {name.removeprefix("files/") for name in tar.getnames() if name.startswith("files/")}


def test_a_document_deleted_before_the_snapshot_is_not_in_it(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = kit.upload("a.md", "# a\n\nfirst\n"), kit.upload("b.md", "# b\n\nsecond\n")
    real = storage.read

    def read(key: str) -> Any:
        if key == first.storage_path and storage.exists(second.storage_path):
            gone(kit, second)
        return real(key)

    monkeypatch.setattr(storage, "read", read)
    done, manifest, files = made()
    assert files == {first.storage_path}
    assert (done.files, manifest["tables"]["knowledge_document"]["rows"], done.missing) == (1, 1, ())


def test_a_file_deleted_between_rows_and_files_makes_another_snapshot(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = kit.upload("a.md", "# a\n\nfirst\n")
    real, snapshots = backup.named_keys, []

    def named_keys(alias: str) -> dict[str, int]:
        if alias != "default":
            found = real(alias)
            snapshots.append(len(found))
            if len(snapshots) == 1:
                gone(kit, late[0])
            return found
        found = real(alias)
        if not snapshots and not late:
            late.append(kit.upload("late.md", "# late\n\nlate\n"))
        return found

    late: list[Document] = []
    monkeypatch.setattr(backup, "named_keys", named_keys)
    done, manifest, files = made()
    assert snapshots == [2, 1], "the first snapshot names a file that is gone"
    assert files == {kept.storage_path}
    assert (done.files, manifest["tables"]["knowledge_document"]["rows"], done.missing) == (1, 1, ())
    assert manifest["files"]["unused"] == []


def test_a_file_that_was_copied_and_then_deleted_is_called_unused(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, doomed = kit.upload("a.md", "# a\n\nfirst\n"), kit.upload("b.md", "# b\n\nsecond\n")
    real = backup.snapshot

    def snapshot(folder: Path) -> Any:
        gone(kit, doomed)
        return real(folder)

    monkeypatch.setattr(backup, "snapshot", snapshot)
    done, manifest, files = made()
    assert files == {kept.storage_path, doomed.storage_path}
    assert (done.files, manifest["files"]["unused"], manifest["files"]["count"]) == (1, [doomed.storage_path], 1)


def test_a_file_that_was_lost_before_is_said_and_the_rest_is_saved(kit: Kit) -> None:
    kept, lost = kit.upload("a.md", "# a\n\nfirst\n"), kit.upload("b.md", "# b\n\nsecond\n")
    storage.remove(lost.storage_path)
    done, manifest, files = made()
    assert (done.missing, files) == ((lost.storage_path,), {kept.storage_path})
    assert manifest["tables"]["knowledge_document"]["rows"] == 2


def test_two_backups_at_once_are_refused(kit: Kit) -> None:
    class Second(io.BytesIO):
        def write(self, data: Any) -> int:
            with pytest.raises(Conflict, match="another backup"):
                backup.backup_to(io.BytesIO(), secrets=True, told=lambda _text: None)
            return super().write(data)

    kit.upload("a.md", "# a\n\nfirst\n")
    assert backup.backup_to(Second(), secrets=True, told=lambda _text: None).files == 1


def test_too_little_space_is_said_before_anything_is_written(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kit.upload("a.md", "# a\n\n" + "first " * 1000)
    backup.require_space(tmp_path)
    assert backup.needed_bytes() > 6000
    full = SimpleNamespace(total=10**9, used=10**9 - 4096, free=4096)
    monkeypatch.setattr(backup, "shutil", SimpleNamespace(disk_usage=lambda _path: full))
    with pytest.raises(Unavailable, match="choose another folder"):
        backup.require_space(tmp_path)


def test_what_is_in_the_trash_is_in_the_backup(kit: Kit, settings: Any) -> None:
    settings.TRASH_DAYS = 30
    document = kit.upload("a.md", "# a\n\nfirst\n")
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[document])
    _done, _manifest, stored = made()
    assert document.storage_path in stored
