"""The file store: keys, never names of people; the same on a folder and on S3-compatible storage."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from apps.common import temp


def write(key: str, source: File[Any]) -> str:
    """Store `source` (from its beginning) and return the key it is under; an existing key is never overwritten."""
    source.seek(0)
    is_new = not exists(key)
    try:
        return str(default_storage.save(key, source))
    except OSError:
        if is_new:  # a full disk ends the file where it was
            with suppress(OSError):
                remove(key)
        raise


def read(key: str) -> IO[bytes]:
    """The stored bytes, seekable. Raises: FileNotFoundError."""
    return default_storage.open(key, "rb")  # type: ignore[no-any-return]


def size(key: str) -> int:
    """Length in bytes. Raises: FileNotFoundError."""
    return int(default_storage.size(key))


def exists(key: str) -> bool:
    return bool(key) and bool(default_storage.exists(key))


def remove(key: str) -> None:
    """Delete one key; a key that is not there is as good as deleted. Folders it leaves empty go too."""
    default_storage.delete(key)
    _prune(key)


def keys(prefix: str = "") -> Iterator[str]:
    """Every key under a folder of the store, one by one."""
    try:
        folders, names = default_storage.listdir(prefix)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in sorted(names):
        yield f"{prefix}/{name}" if prefix else name
    for folder in sorted(folders):
        yield from keys(f"{prefix}/{folder}" if prefix else folder)


def local_copy(key: str) -> Path:
    """A temporary file with the stored bytes, for readers that need a path; the caller deletes it. Raises: FileNotFoundError."""
    with read(key) as source, tempfile.NamedTemporaryFile(prefix="kb-", dir=temp_folder(), delete=False) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return Path(target.name)


def temp_folder() -> Path:
    """Where this process puts its temporary files; what a killed process left there is removed by the next one."""
    return temp.folder_in(settings.TEMP_DIR)


def probe() -> None:
    """Use the store once: write, read, delete. Raises: OSError when it cannot be used."""
    key = default_storage.save(f"probe/{uuid.uuid4().hex}", ContentFile(b"probe"))
    try:
        with read(key) as stored:
            if stored.read() != b"probe":
                raise OSError("what was written is not what is read")
    finally:
        remove(key)


def free_bytes() -> int:
    """Free space on the disk that holds the portal's data."""
    return shutil.disk_usage(settings.DATA_DIR).free


def _prune(key: str) -> None:
    """Folders mean nothing to the store, but thousands of empty ones slow a file system down."""
    location = getattr(default_storage, "location", None)
    if location is None:
        return
    folder = os.path.dirname(os.path.join(location, key))
    while folder != str(location) and folder.startswith(str(location)):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)
