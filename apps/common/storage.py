"""The file store: keys, never names of people; the same on a folder and on S3-compatible storage.

Everything here raises StoreUnavailable when the store cannot be used. Which store it is, is said by `KB_STORAGE_URL` alone.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from django.conf import settings
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from apps.common import temp
from apps.common.errors import StoreUnavailable
from apps.common.stores import Entry, FileStore, unusable

log = logging.getLogger(__name__)

LEFTOVER_S = 24 * 3600.0  # nothing takes this long to come in or to be read


def store() -> FileStore:
    """The store this deployment uses."""
    return cast(FileStore, default_storage)


def write(key: str, source: File[Any]) -> str:
    """Store `source` (from its beginning) and return the key it is under; an existing key is never overwritten."""
    source.seek(0)
    return store().save(key, source)


def read(key: str) -> IO[bytes]:
    """The stored bytes, seekable. Raises: FileNotFoundError."""
    return store().reader(key)


def size(key: str) -> int:
    """Length in bytes. Raises: FileNotFoundError."""
    return store().size(key)


def exists(key: str) -> bool:
    return bool(key) and store().exists(key)


def remove(key: str) -> None:
    """Delete one key; a key that is not there is as good as deleted."""
    store().delete(key)


def discard(keys: Iterable[str]) -> None:
    """Delete keys no row names, as well as it goes: what cannot be deleted now is an orphan that `reconcile` finds."""
    for key in keys:
        if key:
            try:
                store().delete(key)
            except StoreUnavailable:
                log.warning("%s stays in the file store until reconcile removes it", key)


def entries(prefix: str = "") -> Iterator[Entry]:
    """Everything stored under a folder of keys, with size and time."""
    return store().entries(prefix)


def keys(prefix: str = "") -> Iterator[str]:
    """Every key under a folder of the store, one by one."""
    return (entry.key for entry in store().entries(prefix))


def probe() -> None:
    """Use the store once: write, read, delete."""
    key = store().save(f"probe/{uuid.uuid4().hex}", ContentFile(b"probe"))
    try:
        with read(key) as stored:
            if stored.read() != b"probe":
                raise unusable("refused", store().place, OSError("what was written is not what is read"))
    finally:
        remove(key)


def local_path(key: str) -> Path | None:
    """The stored file itself, to be read only, where the store is a folder of this machine."""
    with suppress(NotImplementedError):
        return Path(default_storage.path(key))
    return None


def local_copy(key: str, *, suffix: str = "") -> Path:
    """A temporary file with the stored bytes, for readers that need a path; the caller deletes it. Raises: FileNotFoundError."""
    with (
        read(key) as source,
        tempfile.NamedTemporaryFile(prefix="kb-", suffix=suffix, dir=temp_folder(), delete=False) as target,
    ):
        path = Path(target.name)
        try:
            shutil.copyfileobj(source, target, 1 << 20)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path


def temp_folder() -> Path:
    """Where this process puts its temporary files; what a killed process left there is removed by the next one."""
    return temp.folder_in(settings.TEMP_DIR)


def sweep(older_than_s: float = LEFTOVER_S) -> int:
    """Remove what interrupted uploads left in the store, which is no file yet. How many pieces."""
    return store().sweep(older_than_s)


def free_bytes() -> int:
    """Free space on the disk that holds the portal's data; with files in S3 it is what temporary copies have."""
    return shutil.disk_usage(settings.DATA_DIR).free
