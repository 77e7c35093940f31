"""`manage.py backup`: database, files and settings of a running portal in one archive, of one moment.

Files first, rows after: the files named now are copied, then a snapshot of the rows is taken, then the few files it names beyond those.
A file that was deleted in between (a document was deleted or got a new version) is no longer named by the rows of a moment later, so
another snapshot is taken. Nothing is locked and no clean-up has to wait.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from apps.common import rows, storage
from apps.common.errors import Conflict, Unavailable
from apps.operations import archive
from apps.operations.archive import ArchiveWriter, RowsWriter
from apps.operations.file_keys import named_keys
from apps.operations.snapshot import snapshot
from kbportal import env

log = logging.getLogger(__name__)

TRANSIENT = frozenset({"common.WorkerBeat"})
"""Tables whose rows say what lives at this moment: a restored portal starts without them."""

ROUNDS = 20
SAY_EVERY_S = 5.0
Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Made:
    """What a backup holds. `missing`: keys that rows name and the store had lost before."""

    rows: int
    tables: int
    files: int
    file_bytes: int
    missing: tuple[str, ...]
    secrets: bool
    seconds: float


def backup_to(target: IO[bytes], *, secrets: bool, told: Told) -> Made:
    """Write a whole archive to a stream; only one backup runs at a time on a data folder.

    Raises: Conflict when another one runs or migrations are pending; Unavailable when files change faster than they can be read.
    """
    started = time.monotonic()
    run_dir = settings.DATA_DIR / "run"
    with _only_one(run_dir):
        _require_current()
        writer = ArchiveWriter(target)
        files = _Files(writer, told)
        for _round in range(ROUNDS):
            files.copy(named_keys("default"))
            with snapshot(run_dir) as alias:
                wanted = named_keys(alias)
                gone = files.copy(wanted)
                files.lost = gone & named_keys("default").keys()  # still named and still not there: not deleted, but lost
                if gone - files.lost:
                    continue
                manifest = _of_this_moment(alias, wanted.keys() - gone, files)
                _settings(writer, secrets=secrets)
                manifest["tables"] = _tables(writer, alias, told)
            writer.finish(manifest)
            break
        else:
            raise Unavailable("files were deleted faster than they could be copied; try again when less is being deleted")
    tables = manifest["tables"]
    counts = manifest["files"]
    total = sum(table["rows"] for table in tables.values())
    seconds = time.monotonic() - started
    return Made(total, len(tables), counts["count"], counts["bytes"], tuple(counts["missing"]), secrets, seconds)


@contextmanager
def _only_one(run_dir: Path) -> Iterator[None]:
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / "backup.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict("another backup of this data folder is running") from None
        yield


def _require_current() -> None:
    executor = MigrationExecutor(connections["default"])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise Conflict(
            "the database is of an older version than this program; run manage.py migrate first, or back up with the old program"
        )


class _Files:
    """Copies keys into the archive, each once. `lost`: keys that rows name although the store has nothing under them."""

    def __init__(self, writer: ArchiveWriter, told: Told) -> None:
        self._writer, self._told = writer, told
        self.copied: dict[str, int] = {}
        self.lost: set[str] = set()

    def copy(self, keys: dict[str, int]) -> set[str]:
        """Copy those not copied yet; the keys that could not be found."""
        waiting = [key for key in keys if key not in self.copied]
        total, gone, said_at = len(self.copied) + len(waiting), set(), time.monotonic()
        for key in waiting:
            try:
                size = storage.size(key)
                with storage.read(key) as source:
                    self._writer.add(archive.FILES + key, source, size)
            except FileNotFoundError:
                gone.add(key)
                continue
            self.copied[key] = size
            if time.monotonic() - said_at > SAY_EVERY_S:
                said_at = time.monotonic()
                self._told(f"{len(self.copied)} of {total} files")
        return gone


def _of_this_moment(alias: str, named: set[str], files: _Files) -> dict[str, Any]:
    applied = MigrationRecorder(connections[alias]).applied_migrations()
    return {
        "made_at": timezone.now().isoformat(timespec="seconds"),
        "version": settings.VERSION,
        "engine": connections[alias].vendor,
        "migrations": sorted([app, name] for app, name in applied),
        "files": {
            "count": len(named),
            "bytes": sum(files.copied[key] for key in named),
            "missing": sorted(files.lost),
            "unused": sorted(files.copied.keys() - named),
        },
    }


def _settings(writer: ArchiveWriter, *, secrets: bool) -> None:
    values = {name: value for name, value in env.effective().items() if secrets or not env.is_secret(name, value)}
    writer.add_bytes(archive.SETTINGS, json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True).encode())
    if secrets:
        writer.add_bytes(archive.SECRET_KEY, settings.SECRET_KEY.encode())


def _tables(writer: ArchiveWriter, alias: str, told: Told) -> dict[str, dict[str, Any]]:
    models = rows.table_models()
    last = rows.last_ids(models, alias)
    done: dict[str, dict[str, Any]] = {}
    for model in models:
        if model._meta.label in TRANSIENT:
            continue
        table = model._meta.db_table
        found, part, said_at = rows.Checksum(), RowsWriter(writer, table), time.monotonic()
        for row in rows.read(model, alias):
            found.add(row)
            part.add(rows.to_json(row))
            if time.monotonic() - said_at > SAY_EVERY_S:
                said_at = time.monotonic()
                told(f"{table}: {found.rows} rows")
        part.flush()
        done[table] = {
            "columns": [field.attname for field in rows.columns(model)],
            "rows": found.rows,
            "checksum": found.hex,
            "last_id": last.get(table, 0),
            "parts": part.parts,
            "size_bytes": part.size_bytes,
        }
    return done


def needed_bytes() -> int:
    """About how large an archive would be now, as the rows say: files, and the database as it stands."""
    vendor = connections["default"].vendor
    files = sum(named_keys("default").values())
    if vendor == "sqlite":
        return files + Path(connections["default"].settings_dict["NAME"]).stat().st_size
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return files + int(cursor.fetchone()[0])


def require_space(folder: Path) -> None:
    """Raises: Unavailable when the disk of `folder`, or the one a copy of the database is made on, has too little room."""
    needed, free = needed_bytes(), shutil.disk_usage(folder).free
    if free < needed:
        raise Unavailable(
            f"{folder} has {free >> 20} MiB free and the backup needs about {needed >> 20} MiB; choose another folder with --to"
        )
    if connections["default"].vendor == "sqlite":
        copy = Path(connections["default"].settings_dict["NAME"]).stat().st_size
        same = os.stat(folder).st_dev == os.stat(settings.DATA_DIR).st_dev
        if storage.free_bytes() < copy + (needed if same else 0):
            raise Unavailable(
                f"{settings.DATA_DIR} has no room for a copy of the database ({copy >> 20} MiB), which a backup needs for a while"
            )
