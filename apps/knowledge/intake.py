"""What is asked of a file before it becomes a document: a refusal here leaves no row behind.

Higher contexts register what only they know: ingestion its sniffer (what is this file really?) and its view of work that got stuck.
"""

from __future__ import annotations

import logging
import mimetypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils.translation import gettext_lazy as _

from apps.common import storage
from apps.common.actor import Actor
from apps.common.errors import DomainError, InvalidInput
from apps.knowledge.models import Document

log = logging.getLogger(__name__)

#: Extensions that become documents (contract knowledge 4.3), for the time before anything better is registered.
EXTENSIONS = frozenset("pdf txt docx doc epub html htm mhtml md markdown png jpg jpeg gif csv xlsx xls pptx ppt json".split())


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a file is: `reason` is empty when it may come in, else a stable code, with `message` for the person who sent it.

    `mismatch`: its name claims another kind than its content has; the content is believed.
    """

    media_type: str
    extension: str
    reason: str = ""
    message: Any = ""
    mismatch: bool = False


Inspector = Callable[[Path, str], Inspection]


@dataclass(frozen=True, slots=True)
class StallState:
    """`state`: "queued", "stalled" or "" (work is going on); `last_activity_at`: when anything last happened."""

    state: str
    last_activity_at: datetime


StallProbe = Callable[[Actor, Sequence[Document]], Mapping[int, StallState]]


def by_extension(path: Path, file_name: str) -> Inspection:
    """The verdict of the name alone."""
    extension = file_name.rpartition(".")[2].lower() if "." in file_name else ""
    media_type = mimetypes.guess_type("x." + extension)[0] or "application/octet-stream"
    if extension in EXTENSIONS:
        return Inspection(media_type, extension)
    return Inspection(media_type, extension, "unsupported_type", unsupported(extension))


_inspector: Inspector = by_extension
_extensions: frozenset[str] = EXTENSIONS
_stall_probe: StallProbe | None = None
_engines: dict[str, frozenset[str]] = {"builtin": EXTENSIONS}


def register_inspector(inspector: Inspector, extensions: Iterable[str]) -> None:
    """From now on `inspector(path, file_name)` decides whether a file may come in; `extensions` are what it knows by name."""
    global _inspector, _extensions
    _inspector = inspector
    _extensions = frozenset(extensions)


def register_engines(engines: Mapping[str, Iterable[str]]) -> None:
    """From now on these are the ways files can be read, each with the extensions it takes; "builtin" is the usual way of every type."""
    global _engines
    _engines = {name: frozenset(extensions) for name, extensions in engines.items()}


def reading_engines() -> Mapping[str, frozenset[str]]:
    """{engine: extensions it takes}: what rules of a base may name for its types of files."""
    return _engines


def accepted_extensions() -> frozenset[str]:
    """Extensions of what can be read, for choosers and for addresses whose content is not there yet; the content decides in the end."""
    return _extensions


def register_stall_probe(probe: StallProbe) -> None:
    """From now on `probe(actor, documents)` tells, by primary key, which documents in flight are stuck (contract knowledge 4.8)."""
    global _stall_probe
    _stall_probe = probe


def stall_states(actor: Actor, documents: Sequence[Document]) -> Mapping[int, StallState]:
    """What the registered probe says; nothing when there is none, or when it cannot tell: nobody is called stalled by guess."""
    if _stall_probe is None:
        return {}
    try:
        return _stall_probe(actor, documents)
    except (DomainError, DatabaseError, OSError):
        log.exception("whether %d documents are stuck could not be told", len(documents))
        return {}


def unsupported(extension: str) -> Any:
    if not extension:
        return _("Unsupported file: its name has no extension. Rename it, for example to notes.txt, and upload it again.")
    return _("Unsupported file type .%(extension)s. Convert it to PDF, Word, Excel, HTML, Markdown or text and upload it again.") % {
        "extension": extension[:20]
    }


def too_large() -> InvalidInput:
    return InvalidInput(
        _("The file is too large: the limit is %(limit)d MB. Split it or compress its pictures, then upload it again.")
        % {"limit": settings.MAX_FILE_SIZE >> 20},
        code="too_large",
        field="file",
        limit_bytes=settings.MAX_FILE_SIZE,
        api_code=1000,
    )


def check_size(size_bytes: int) -> None:
    """Raises: InvalidInput(empty, too_large)."""
    if size_bytes == 0:
        raise InvalidInput(
            _("The file is empty (0 bytes). Check that it was saved completely and choose it again."), code="empty", field="file"
        )
    if size_bytes > settings.MAX_FILE_SIZE:
        raise too_large()


def check_space(coming_bytes: int = 0) -> None:
    """Raises: InvalidInput(no_space) when storing this would leave less free space than the refuse line."""
    free = storage.free_bytes()
    if free - coming_bytes < settings.DISK_REFUSE_BYTES:
        raise InvalidInput(
            _(
                "Not enough disk space: only %(free).1f GB are free, so nothing new is taken in. "
                "Delete documents you no longer need, or ask the administrator for space."
            )
            % {"free": free / 1024**3},
            code="no_space",
            field="file",
            free_bytes=free,
        )


def space_warning() -> dict[str, Any] | None:
    """What every intake answer says while the disk is filling up; None while there is room."""
    free = storage.free_bytes()
    if free >= settings.DISK_WARN_BYTES:
        return None
    text = _("Disk space is running low: %(free).1f GB are free. Uploads stop below %(refuse).1f GB.")
    values = {"free": free / 1024**3, "refuse": settings.DISK_REFUSE_BYTES / 1024**3}
    return {"code": "low_disk_space", "message": str(text % values), "free_bytes": free}


def inspect(path: Path, file_name: str, *, blank: bool) -> Inspection:
    """What the file is. Raises: InvalidInput with the reason when it may not come in."""
    found = _inspector(path, file_name)
    if found.reason:
        raise InvalidInput(found.message, code=found.reason, field="file")
    if blank:
        raise InvalidInput(
            _("The file holds nothing but blank space, so there is no text to find. Choose a file with text in it."),
            code="blank",
            field="file",
        )
    return found


def check_file_name(raw: str) -> None:
    """Raises: InvalidInput(illegal_name) on control characters and on names that are no names."""
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in raw):
        raise InvalidInput(
            _("The file name or folder name contains control characters. Rename it and upload it again."),
            code="illegal_name",
            field="fileName",
        )
