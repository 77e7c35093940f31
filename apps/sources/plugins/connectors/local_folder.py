"""A folder of the machine the portal runs on, below what the operator allowed (`KB_SOURCE_FOLDERS`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings as deployment
from django.utils.translation import gettext_lazy as _

from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, SourceError, connectors
from apps.sources.plugins.renames import MAX_FILES, identities, known_of, remembered
from apps.sources.plugins.support import (
    EXTENSIONS_INPUT,
    PATHS_INPUT,
    Plugin,
    bad,
    batches,
    below,
    extensions_of,
    has_extension,
    readable_text,
    relative_paths,
)
from apps.sources.web import temporary

FILE_LIMIT = 200 << 20
MAX_DEPTH = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_BLOCK = 1 << 20


@connectors.register("local_folder")
class LocalFolder(Plugin):
    meta = ConnectorMeta(
        "local_folder",
        _("Folder on the server"),
        _("Documents in a folder of the machine the portal runs on."),
        "folder",
        16,
        "none",
        ("incremental", "deletion_sync", "hierarchical"),
        (
            Input(
                "folder",
                _("Folder"),
                where="settings",
                required=True,
                hint=_("An absolute path below a folder the operator allowed (KB_SOURCE_FOLDERS)."),
            ),
            PATHS_INPUT,
            EXTENSIONS_INPUT,
        ),
    )

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        found = super().clean(settings)
        relative_paths("paths", found.get("paths"))
        extensions_of(found)
        _root(found)
        return found

    def check(self, link: Link) -> None:
        os.close(_open_root(_root(link.settings)))

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        root = _root(link.settings)
        wanted, paths = extensions_of(link.settings), relative_paths("paths", link.settings.get("paths"))
        faults: list[SourceError] = []
        found: dict[str, os.stat_result] = {}
        descriptor = _open_root(root)
        try:
            for path, status in _walk(descriptor, "", link, faults, 0):
                if has_extension(path, wanted) and below(path, paths):
                    found[path] = status
                    if len(found) > MAX_FILES:
                        raise SourceError("too_many", f"more than {MAX_FILES} files", params={"limit": MAX_FILES})
        finally:
            os.close(descriptor)
        marks = {path: f"{s.st_dev}:{s.st_ino}:{s.st_size}:{s.st_mtime_ns}" for path, s in found.items()}
        scope = str(root)
        known = known_of(cursor, scope)
        ids = identities(marks, known)
        files = remembered(marks, ids)
        if faults and known:
            files = {**{path: entry for path, entry in known.items() if path not in files}, **files}
        items = (_item(path, found[path], ids[path]) for path in sorted(found))
        pages = [Page(batch) for batch in batches(items)]
        last = pages.pop()
        yield from pages
        yield Page(last.items, {"scope": scope, "files": files}, whole=not faults, faults=tuple(faults))

    def fetch(self, link: Link, item: Item) -> Content | None:
        *folders, name = str(item.handle["path"]).split("/")
        here = _open_root(_root(link.settings))
        try:
            for folder in folders:
                inner = os.open(folder, _FOLDER, dir_fd=here)
                os.close(here)
                here = inner
            source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
        except OSError as error:
            raise _why(error, item.external_id) from None
        finally:
            os.close(here)
        with os.fdopen(source, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SourceError("not_found", "no file any more", item=item.external_id)
            if status.st_size > FILE_LIMIT:
                raise SourceError("too_large", item=item.external_id, params={"limit": FILE_LIMIT})
            if not status.st_size:
                return None
            target = temporary()
            with target.open("wb") as copy:
                while block := stream.read(_BLOCK):
                    link.web.check()
                    copy.write(block)
        return Content(target, name)


def _root(settings: Mapping[str, Any]) -> Path:
    """The folder, really below one that is allowed. SECURITY: symbolic links on the way there are resolved before the comparison."""
    raw = str(settings.get("folder") or "")
    if not raw.startswith("/") or "\0" in raw:
        raise bad("folder", _("Give an absolute path."))
    real = Path(os.path.realpath(raw))
    for allowed in deployment.SOURCE_FOLDERS:
        base = Path(os.path.realpath(allowed))
        if base != Path("/") and (real == base or base in real.parents):
            return real
    raise bad("folder", _("This folder may not be read. Ask the operator to allow it (KB_SOURCE_FOLDERS)."))


def _open_root(root: Path) -> int:
    try:
        return os.open(root, _FOLDER)
    except OSError as error:
        raise _why(error, "") from None


def _why(error: OSError, item: str) -> SourceError:
    if isinstance(error, PermissionError):
        return SourceError("forbidden", "the operating system refuses to read it", item=item)
    if isinstance(error, (FileNotFoundError, NotADirectoryError)) or error.errno == 40:  # a symbolic link took its place
        return SourceError("not_found", "it is not there", item=item)
    return SourceError("unavailable", error.strerror or "it cannot be read", item=item, passing=True)


def _walk(folder: int, prefix: str, link: Link, faults: list[SourceError], depth: int) -> Iterator[tuple[str, os.stat_result]]:
    """Path and status of every regular file, never through a symbolic link; hidden names are left out."""
    link.web.check()
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        faults.append(_why(error, prefix))
        return
    for name in names:
        if name.startswith(".") or not readable_text(name):
            continue
        path = f"{prefix}/{name}" if prefix else name
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                yield path, status
                continue
            if not stat.S_ISDIR(status.st_mode) or depth >= MAX_DEPTH:
                continue
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            continue  # removed while it was listed
        except OSError as error:
            faults.append(_why(error, path))
            continue
        try:
            yield from _walk(inner, path, link, faults, depth + 1)
        finally:
            os.close(inner)


def _item(path: str, status: os.stat_result, external_id: str) -> Item:
    folder, _slash, name = path.rpartition("/")
    return Item(
        external_id,
        title=name,
        fingerprint=f"{status.st_size}-{status.st_mtime_ns}",
        folder=folder,
        modified_at=datetime.fromtimestamp(max(0, status.st_mtime), UTC),
        handle={"path": path},
    )
