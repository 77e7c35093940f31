"""Every stored file copied from one store into another, compared, and continued where it was interrupted.

A key is written once and never again, so a portal may go on working while its files are copied; what came meanwhile is copied by the next
run. The source is only read.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import storages as configured

from apps.common import storage
from apps.common.errors import Conflict, InvalidInput
from apps.common.stores import Entry, FileStore
from kbportal import env, storages

BLOCK = 1 << 20


@dataclass(slots=True)
class Moved:
    """`copied` now, `kept` from an earlier run or there already; `size_bytes` of both; `extra`: keys only the target has."""

    copied: int = 0
    kept: int = 0
    size_bytes: int = 0
    extra: list[str] = field(default_factory=list)

    @property
    def files(self) -> int:
        return self.copied + self.kept


def open_target(target: str) -> FileStore:
    """The store named by `folder` (KB_DATA_DIR/files), an absolute path, or an s3:// URL.

    Raises: InvalidInput when it cannot be used; StoreUnavailable when it does not answer.
    """
    try:
        if target.startswith("s3://"):
            made = storages.objects(target, access_key=env.S3_ACCESS_KEY, secret_key=env.S3_SECRET_KEY)
        elif target == "folder":
            made = storages.folder(settings.DATA_DIR / "files")
        elif target.startswith("/"):
            made = storages.folder(Path(target))
        else:
            raise InvalidInput("--to takes `folder`, an absolute path, or s3://bucket/prefix?...", field="to")
    except ValueError as error:
        raise InvalidInput(str(error), field="to") from error
    store = cast(FileStore, configured.create_storage(made))
    store.probe()
    return store


def move_all(source: FileStore, target: FileStore, *, again: bool, told: Callable[[Moved], None]) -> Moved:
    """Copy what the target lacks, and compare checksums of every file with what the target gives back.

    Files an earlier run compared are not read again unless `again`. `told` hears of the state after each file.

    Raises: Conflict naming the key when the two sides differ; InvalidInput when both are the same place.
    """
    if source.place == target.place:
        raise InvalidInput(f"the files are in {source.place} already", field="to")
    there = {entry.key: entry.size_bytes for entry in target.entries()}
    moved = Moved()
    with _Journal(source, target, forget=again) as journal:
        for entry in source.entries():
            size = there.pop(entry.key, None)
            if size is not None and size == entry.size_bytes == journal.compared.get(entry.key):
                moved.kept += 1
            elif _carry(source, target, entry, present=size is not None):
                moved.copied += 1
            else:
                moved.kept += 1
            moved.size_bytes += entry.size_bytes
            journal.add(entry)
            told(moved)
    moved.extra = sorted(there)
    return moved


def _carry(source: FileStore, target: FileStore, entry: Entry, *, present: bool) -> bool:
    """Bring one file over unless it is there; True when it was copied. Either way both sides are compared."""
    with tempfile.TemporaryFile(dir=storage.temp_folder()) as copy:
        with source.reader(entry.key) as original:
            shutil.copyfileobj(original, copy, BLOCK)
        expected = _digest(copy)
        if present:
            with target.reader(entry.key) as stored:
                if _digest(stored) == expected:
                    return False
            raise Conflict(f"{entry.key}: the target holds another file under this key; choose an empty folder or prefix")
        key = target.save(entry.key, File(cast(Any, copy)))
        if key != entry.key:
            target.delete(key)
            raise Conflict(f"{entry.key}: somebody else writes into the target")
        with target.reader(key) as stored:
            if _digest(stored) != expected:
                target.delete(key)
                raise Conflict(f"{entry.key}: the target gave back other bytes than it got; the copy was removed")
    return True


def _digest(source: IO[bytes]) -> str:
    source.seek(0)
    found = hashlib.sha256()
    while piece := source.read(BLOCK):
        found.update(piece)
    source.seek(0)
    return found.hexdigest()


class _Journal:
    """What was compared on this way before, one line a file, so that an interrupted move goes on where it was."""

    def __init__(self, source: FileStore, target: FileStore, *, forget: bool) -> None:
        way = hashlib.sha256(f"{source.place}\n{target.place}".encode()).hexdigest()[:16]
        self.path = settings.DATA_DIR / "run" / f"move-files-{way}.jsonl"
        if forget:
            self.path.unlink(missing_ok=True)
        self.compared = dict(self._lines())

    def __enter__(self) -> _Journal:
        self._file = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def add(self, entry: Entry) -> None:
        if self.compared.get(entry.key) != entry.size_bytes:
            self._file.write(json.dumps([entry.key, entry.size_bytes]) + "\n")
            self._file.flush()

    def _lines(self) -> Iterator[tuple[str, int]]:
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    key, size = json.loads(line)
                except ValueError:  # the line that was being written when it was interrupted
                    continue
                yield key, size
