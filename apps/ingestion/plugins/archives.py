"""Limits on ZIP-based formats, looked at before any library opens them."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from apps.ingestion.plugins.protocol import ParseFailure

MAX_ENTRIES = 20_000
MAX_RATIO = 500  # of a part above 10 MB; honest XML stays below 100
MAX_XML_PART = 400_000_000
_RATIO_FROM = 10_000_000
_DOCTYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.I)
_XML_SUFFIXES = (".xml", ".rels", ".vml")


def check_archive(path: Path, max_unpacked_bytes: int, *, allow_doctype: bool = False) -> None:
    """Returns only when the archive may be opened: entry count, sizes, ratio, and no DOCTYPE in any XML part.

    Sizes are the directory's own claims; what lies about them is cut by `read_part` and by the memory limit of the sandbox.
    Raises: ParseFailure with corrupt, too_large, unsafe or locked.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, max_unpacked_bytes)
            if not allow_doctype:
                _check_doctypes(archive)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, ValueError) as error:
        raise ParseFailure("corrupt", f"the archive is damaged: {error}") from error


def _check_sizes(archive: zipfile.ZipFile, max_unpacked_bytes: int) -> None:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise ParseFailure("too_large", f"the archive has too many entries: {len(entries)}, the limit is {MAX_ENTRIES}")
    if any(entry.flag_bits & 1 for entry in entries):
        raise ParseFailure("locked", "the archive is encrypted with a password")
    total = sum(entry.file_size for entry in entries)
    if total > max_unpacked_bytes:
        raise ParseFailure("too_large", f"the archive unpacks to {total} bytes, too large: the limit is {max_unpacked_bytes}")
    for entry in entries:
        if entry.file_size > _RATIO_FROM and entry.file_size > MAX_RATIO * max(entry.compress_size, 1):
            raise ParseFailure(
                "too_large", f"part {entry.filename[:100]!r} inflates more than {MAX_RATIO} times (archive bomb), over the limit"
            )
        if entry.file_size > MAX_XML_PART and entry.filename.lower().endswith(_XML_SUFFIXES):
            raise ParseFailure("too_large", f"part {entry.filename[:100]!r} is too large: {entry.file_size} bytes")


def _check_doctypes(archive: zipfile.ZipFile) -> None:
    """SECURITY: no part of an Office file has a document type; one that has is after entities."""
    for entry in archive.infolist():
        if not entry.filename.lower().endswith(_XML_SUFFIXES):
            continue
        try:
            with archive.open(entry) as part:
                head = part.read(4096)
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise ParseFailure("corrupt", f"part {entry.filename[:100]!r} is damaged: {error}") from error
        if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head[:4].count(0) >= 2:
            head = head.replace(b"\0", b"")
        if _DOCTYPE.search(head):
            raise ParseFailure("unsafe", f"unsafe: part {entry.filename[:100]!r} declares a document type (external entities)")


def know_old_names(archive: zipfile.ZipFile) -> None:
    """Let parts be read by their real names where an old archiver wrote those in UTF-8 or GBK without saying so.

    A name without the mark of UTF-8 is taken for code page 437, whose characters stand for the same bytes.
    """
    for entry in archive.infolist():
        if entry.flag_bits & 0x800 or entry.filename.isascii():
            continue
        for encoding in ("utf-8", "gb18030"):
            try:
                archive.NameToInfo.setdefault(entry.filename.encode("cp437").decode(encoding), entry)
                break
            except UnicodeError:
                continue


def read_part(archive: zipfile.ZipFile, name: str, limit: int = MAX_XML_PART) -> bytes:
    """The bytes of one part, b"" when it is missing.

    Raises: ParseFailure("too_large") beyond `limit`, ParseFailure("corrupt") when it cannot be unpacked.
    """
    try:
        with archive.open(name) as part:
            data = part.read(limit + 1)
    except KeyError:
        return b""
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ParseFailure("corrupt", f"part {name[:100]!r} is damaged: {error}") from error
    if len(data) > limit:
        raise ParseFailure("too_large", f"part {name[:100]!r} is too large: the limit is {limit} bytes")
    return data
