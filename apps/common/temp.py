"""Temporary files of this process, under the data folder, in a folder that whoever comes later can tell to be abandoned.

A process that is killed cannot tidy up. So each one keeps a lock on its folder, which the kernel drops with its holder: a folder nobody
locks belongs to nobody, and the next process takes it away. Knows nothing of Django's settings, so that settings may use it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
from pathlib import Path

_held: dict[Path, tuple[int, int, Path]] = {}  # parent -> (pid, descriptor of the locked folder, the folder)

_making = threading.Lock()


def folder_in(parent: Path, *, prefix: str = "") -> Path:
    """This process's own folder below `parent`, made and locked when first asked for; it goes when the process ends."""
    with _making:
        found = _held.get(parent)
        if found is not None and found[0] == os.getpid() and found[2].is_dir():
            return found[2]
        return _make(parent, prefix)


def _make(parent: Path, prefix: str) -> Path:
    sweep(parent, prefix=prefix)
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent))
        descriptor = _lock(path)
        if descriptor is None:
            continue  # a sweep of another process came between making and locking
        _held[parent] = (os.getpid(), descriptor, path)
        atexit.register(_leave, os.getpid(), path)
        return path


def sweep(parent: Path, *, prefix: str = "") -> int:
    """Remove folders below `parent` whose process is gone; how many."""
    removed = 0
    for path in sorted(parent.glob(f"{prefix}*-*")) if parent.is_dir() else []:
        if any(path == held for _pid, _descriptor, held in _held.values()):
            continue
        descriptor = _lock(path)
        if descriptor is None:
            continue
        try:
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
        finally:
            os.close(descriptor)
    return removed


def _lock(path: Path) -> int | None:
    """A descriptor that holds the folder; None when another process holds it, when it is gone, or where there are no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _leave(pid: int, path: Path) -> None:
    if pid == os.getpid():  # a forked child inherits the registration, not the folder
        shutil.rmtree(path, ignore_errors=True)
