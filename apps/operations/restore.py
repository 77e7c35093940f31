"""`manage.py restore`: database and files as an archive has them. Until the change-over nothing of what was there is touched.

Order: verify every byte; write the files (more files than rows name harm nothing); fill a fresh database beside the one in use; then,
marked so that an interruption is known and the portal refuses to start, put the fresh database in place, drop the search index, set the
key, and remove the files that no row names any more.
"""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any, cast

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.core.files import File
from django.db import Error, connections

from apps.common import rows, storage
from apps.common.errors import Conflict, InvalidInput, Unavailable
from apps.common.jobs.service import living_workers
from apps.common.serving import DataDirLock
from apps.operations import archive, fresh
from apps.operations.backup import TRANSIENT
from apps.retrieval.services import drop_index
from kbportal import env

log = logging.getLogger(__name__)

PARTS = ("web", "worker", "schedule")
MAY_BE_FILLED = rows.MADE_BY_MIGRATE | TRANSIENT
SCHEDULE_APP = "django_celery_beat"  # written by every start of the schedule
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored. `cleaned`: NUL characters taken out; `other_settings`: settings of the backup that differ from those in force."""

    made_at: str
    version: str
    rows: int
    tables: int
    files: int
    cleaned: int
    other_settings: tuple[str, ...]
    key: str  # "restored", "same", "not in the archive", "other than KB_SECRET_KEY"


def interrupted() -> str:
    """The archive whose restore was cut off during the change-over; empty when there is none."""
    marker = _marker()
    return marker.read_text(encoding="utf-8").strip() if marker.exists() else ""


def _marker() -> Path:
    return Path(settings.DATA_DIR) / "run" / "restoring"


def restore_from(path: Path, *, force: bool, told: Told) -> Restored:
    """Make this portal what the archive holds; the search index is left empty for `rebuild_index`.

    Raises: InvalidInput for an archive that is damaged or too new; Conflict when the portal runs, or is not empty and `force` is off;
    Unavailable when there is too little room. In every case nothing was changed.
    """
    told("verifying")
    manifest = archive.verify(path)
    with DataDirLock(Path(settings.DATA_DIR) / "run", PARTS):
        _require_rest()
        if not force:
            _require_empty()
        _require_space(manifest)
        place = fresh.place()
        place.open()
        try:
            registry = fresh.migrated_to((app, name) for app, name in manifest["migrations"])
            _write_files(path, manifest, told)
            cleaned = _load(path, manifest, registry, told)
            fresh.finish(registry, {table: said["last_id"] for table, said in manifest["tables"].items()}, told)
            key = _change_over(place, path, manifest, told)
        finally:
            place.discard()
    tables = manifest["tables"].values()
    total = sum(said["rows"] for said in tables)
    count = manifest["files"]["count"]
    return Restored(manifest["made_at"], manifest["version"], total, len(tables), count, cleaned, _other_settings(path), key)


def _require_rest() -> None:
    if "common_workerbeat" not in connections["default"].introspection.table_names():
        return
    if living := living_workers():
        raise Conflict(f"the worker {living[0].name} is alive, or was until a moment ago; stop the portal and try again in half a minute")


def _require_empty() -> None:
    there = set(connections["default"].introspection.table_names())
    filled = [
        model._meta.db_table
        for model in rows.table_models()
        if model._meta.label not in MAY_BE_FILLED
        and model._meta.app_label != SCHEDULE_APP
        and model._meta.db_table in there
        and rows.rows_of(model, "default").exists()
    ]
    if filled:
        raise Conflict(f"this portal is not empty ({', '.join(filled[:5])}); with --force what it has is replaced")
    if (key := next(storage.keys(), None)) is not None:
        raise Conflict(f"the file store is not empty ({key}); with --force files that the backup does not name are deleted")


def _require_space(manifest: dict[str, Any]) -> None:
    database = sum(said["size_bytes"] for said in manifest["tables"].values())
    needed, free = manifest["files"]["bytes"] + 2 * database, shutil.disk_usage(settings.DATA_DIR).free
    if free < needed:
        raise Unavailable(f"{settings.DATA_DIR} has {free >> 20} MiB free and the restore needs about {needed >> 20} MiB")


def _named(manifest: dict[str, Any]) -> set[str]:
    unused = set(manifest["files"]["unused"])
    keys = {name.removeprefix(archive.FILES) for name in manifest["members"] if name.startswith(archive.FILES)}
    return keys - unused


def _write_files(path: Path, manifest: dict[str, Any], told: Told) -> None:
    named, done = _named(manifest), 0
    for name, data in archive.members(path):
        key = name.removeprefix(archive.FILES)
        if not name.startswith(archive.FILES) or key not in named:
            continue
        _write_file(key, data, manifest["members"][name])
        done += 1
        if done % 500 == 0:
            told(f"{done} of {len(named)} files")


def _write_file(key: str, data: IO[bytes], said: dict[str, Any]) -> None:
    """The store has exactly these bytes under the key afterwards; what is there already and is the same is left alone."""
    try:
        if storage.exists(key):
            with storage.read(key) as stored:
                if archive.sha256_of(stored) == said["sha256"]:
                    return
            storage.remove(key)
        if (written := storage.write(key, File(cast("IO[bytes]", _Once(data, said["size"]))))) != key:
            raise Unavailable(f"the file store put {key} under another name: {written}")
    except SuspiciousFileOperation as error:
        raise InvalidInput(f"the archive names a file outside the store: {key}", field="path") from error


class _Once(io.RawIOBase):
    """A member as a file that storage may rewind before it reads it."""

    def __init__(self, data: IO[bytes], size: int) -> None:
        self._data, self.size = data, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        return self._data.tell()

    def read(self, size: int = -1) -> bytes:
        return self._data.read(size)


def _load(path: Path, manifest: dict[str, Any], registry: Any, told: Told) -> int:
    """Fill every table; parts of one table stand together in the archive."""
    cleaned, seen = 0, set()
    parts = ((name.split("/")[1], archive.lines(data)) for name, data in archive.members(path) if name.startswith(archive.ROWS))
    with fresh.one_transaction():
        for table, group in groupby(parts, key=lambda part: part[0]):
            said = manifest["tables"][table]
            if said["rows"] > 10_000:
                told(f"{table}: {said['rows']} rows")
            cleaned += fresh.load(table, said, registry, (lines for _table, lines in group))
            seen.add(table)
        for table, said in manifest["tables"].items():
            if table not in seen:
                fresh.load(table, said, registry, ())
    return cleaned


def _change_over(place: fresh.Place, path: Path, manifest: dict[str, Any], told: Told) -> str:
    told("changing over")
    marker = _marker()
    marker.parent.mkdir(parents=True, exist_ok=True)
    with marker.open("w", encoding="utf-8") as file:
        file.write(str(path.resolve()))
        file.flush()
        os.fsync(file.fileno())
    try:
        place.swap()
    except Error as error:
        marker.unlink()
        raise Conflict(f"the tables are in use, stop everything that uses the database: {error}") from error
    drop_index()
    key = _set_key(path)
    named = _named(manifest)
    for stored in list(storage.keys()):
        if stored not in named:
            storage.remove(stored)
    marker.unlink()
    return key


def _member(path: Path, wanted: str) -> bytes:
    return next((data.read() for name, data in archive.members(path) if name == wanted), b"")


def _set_key(path: Path) -> str:
    saved = _member(path, archive.SECRET_KEY).decode("ascii", "replace").strip()
    if not saved:
        return "not in the archive"
    if saved == settings.SECRET_KEY:
        return "same"
    if env.SECRET_KEY:
        return "other than KB_SECRET_KEY"
    env.keep_secret_key(saved)
    return "restored"


def _other_settings(path: Path) -> tuple[str, ...]:
    saved = json.loads(_member(path, archive.SETTINGS) or b"{}")
    here = env.effective()
    return tuple(sorted(name for name, value in saved.items() if name in here and here[name] != value and name != "KB_DATA_DIR"))
