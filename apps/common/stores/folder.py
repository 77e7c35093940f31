"""Files in a folder: written beside their place first, then linked into it, so that a crash leaves a whole file or none."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from django.core.files.storage import FileSystemStorage
from django.utils.deconstruct import deconstructible

from apps.common.stores import Entry, unusable

INCOMING = ".incoming"
FULL = (errno.ENOSPC, errno.EDQUOT)
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@deconstructible(path="apps.common.stores.folder.FolderStore")
class FolderStore(FileSystemStorage):
    """A `FileStore` (see `apps.common.stores`) in a folder."""

    @property
    def place(self) -> str:
        return str(self.location)

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        with self._told():
            return super().save(name, content, max_length)

    def reader(self, name: str) -> IO[bytes]:
        with self._told():
            return open(self.path(name), "rb")

    def delete(self, name: str) -> None:
        with self._told():
            super().delete(name)
            self._prune(name)

    def size(self, name: str) -> int:
        with self._told():
            return os.path.getsize(self.path(name))

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        with self._told():
            for folder, folders, names in os.walk(self.path(prefix) if prefix else self.location):
                if INCOMING in folders and Path(folder) == Path(self.location):
                    folders.remove(INCOMING)
                for name in names:
                    path = os.path.join(folder, name)
                    with suppress(FileNotFoundError):  # deleted while we look
                        stat = os.stat(path)
                        yield Entry(os.path.relpath(path, self.location).replace(os.sep, "/"), stat.st_size, stat.st_mtime)

    def probe(self) -> None:
        with self._told():
            self._incoming()
            if not os.access(self.location, os.R_OK | os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "may not be written", str(self.location))

    def sweep(self, older_than_s: float) -> int:
        removed = 0
        limit = time.time() - older_than_s
        with self._told():
            for path in self._incoming().iterdir():
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < limit:
                        path.unlink()
                        removed += 1
        return removed

    def url(self, name: str | None) -> str:
        raise NotImplementedError("files leave through the portal, which asks who is there")

    def _save(self, name: str, content: Any) -> str:
        handle, raw = tempfile.mkstemp(dir=self._incoming())
        written = Path(raw)
        try:
            with os.fdopen(handle, "wb") as target:
                if not self._moved(content, written):
                    for piece in content.chunks():
                        target.write(piece)
                target.flush()
            _sync(written)
            if self.file_permissions_mode is not None:
                written.chmod(self.file_permissions_mode)
            return self._put(written, name)
        finally:
            written.unlink(missing_ok=True)

    def _moved(self, content: Any, written: Path) -> bool:
        """Take an upload's own temporary file over where it is on the same disk."""
        if not hasattr(content, "temporary_file_path"):
            return False
        content.flush()
        try:
            os.replace(content.temporary_file_path(), written)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return False
            raise
        return True

    def _put(self, written: Path, name: str) -> str:
        while True:
            full = Path(self.path(name))
            full.parent.mkdir(parents=True, exist_ok=True)
            try:
                _link(written, full)
            except FileExistsError:
                name = self.get_available_name(name)
            except FileNotFoundError:  # the folder was empty for a moment, and somebody's delete took it away
                if not written.exists():
                    raise
            else:
                _sync(full.parent)
                return name.replace("\\", "/")

    def _incoming(self) -> Path:
        folder = Path(self.location) / INCOMING
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def _prune(self, name: str) -> None:
        """Folders mean nothing to the store, but thousands of empty ones slow a file system down."""
        top = str(self.location)
        folder = os.path.dirname(self.path(name))
        while folder != top and folder.startswith(top):
            try:
                os.rmdir(folder)
            except OSError:
                return
            folder = os.path.dirname(folder)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            why = "disk_full" if error.errno in FULL else "access_denied" if isinstance(error, PermissionError) else "refused"
            raise unusable(why, self.place, error) from error


def _link(written: Path, full: Path) -> None:
    """Give a finished file its name. Raises: FileExistsError when it is taken."""
    try:
        os.link(written, full)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        with full.open("xb"):  # a disk without links: claim the name, then put the file there
            pass
        os.replace(written, full)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
