"""The backup archive: a plain tar whose last members are the manifest and its checksum, so that a cut-off archive is known as one.

| Member | What |
|---|---|
| `files/<key>` | one object of the file store |
| `settings.json` | the settings in force (`KB_...`) |
| `secret_key` | what signs sessions and encrypts credentials |
| `rows/<table>/<part>.jsonl.gz` | rows of one table, a JSON list of column values a line |
| `manifest.json` | version, engine, migrations, tables, files, and size and SHA-256 of every member before it |
| `manifest.sha256` | SHA-256 of the manifest |
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from apps.common.errors import InvalidInput

FORMAT = 1
MANIFEST, MANIFEST_SUM = "manifest.json", "manifest.sha256"
SETTINGS, SECRET_KEY = "settings.json", "secret_key"
FILES, ROWS = "files/", "rows/"
BLOCK = 1 << 20
PART_BYTES = 8 << 20  # rows of one member before compression: bounds memory, keeps the number of members small


class ArchiveWriter:
    """Writes members one after another to a stream that need not be seekable; `finish` makes the archive whole."""

    def __init__(self, target: IO[bytes]) -> None:
        self._tar = tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT)
        self.members: dict[str, dict[str, Any]] = {}

    def add(self, name: str, source: IO[bytes], size: int) -> str:
        """Add `size` bytes of a stream; their SHA-256. Raises: OSError when the stream ends early."""
        reader = _Hashed(source)
        self._tar.addfile(_entry(name, size), reader)
        self.members[name] = {"size": size, "sha256": reader.sha256.hexdigest()}
        return str(self.members[name]["sha256"])

    def add_bytes(self, name: str, data: bytes) -> str:
        return self.add(name, io.BytesIO(data), len(data))

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, which then names every member so far, and the end of the archive."""
        text = json.dumps({"format": FORMAT, **manifest, "members": dict(self.members)}, ensure_ascii=False, indent=1).encode()
        self.add_bytes(MANIFEST, text)
        self.add_bytes(MANIFEST_SUM, f"{hashlib.sha256(text).hexdigest()}\n".encode("ascii"))
        self._tar.close()


class RowsWriter:
    """Rows of one table, cut into compressed members of bounded size."""

    def __init__(self, archive: ArchiveWriter, table: str) -> None:
        self._archive, self._table = archive, table
        self._lines: list[str] = []
        self._size = 0
        self.parts = 0
        self.size_bytes = 0

    def add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._size >= PART_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._lines:
            return
        data = ("\n".join(self._lines) + "\n").encode("ascii")
        self.parts += 1
        self.size_bytes += len(data)
        self._archive.add_bytes(part_name(self._table, self.parts), gzip.compress(data, compresslevel=3, mtime=0))
        self._lines, self._size = [], 0


def part_name(table: str, part: int) -> str:
    return f"{ROWS}{table}/{part:06d}.jsonl.gz"


class _Hashed(io.RawIOBase):
    """Reads the first block at once, so that an object that is not there is known before its header is written."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._ahead = source.read(BLOCK)
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data, self._ahead = (self._ahead, b"") if size < 0 else (self._ahead[:size], self._ahead[size:])
        if size < 0 or len(data) < size:
            data += self._source.read(size - len(data) if size >= 0 else -1)
        self.sha256.update(data)
        return data


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, 0o600, int(time.time())
    return entry


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, mode="r:") as tar:
            yield tar
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {path}", field="path") from None
    except (tarfile.TarError, EOFError) as error:
        raise InvalidInput(f"{path} is no backup of this portal, or it is damaged: {error}", field="path") from error


def verify(path: Path) -> dict[str, Any]:
    """The manifest of an archive whose every byte is as it was written.

    Raises: InvalidInput saying what is wrong: no backup, cut off, or which member was altered, added or lost.
    """
    found: dict[str, dict[str, Any]] = {}
    raw = said = b""
    with _opened(path) as tar:
        for entry in tar:
            if not entry.isreg() or entry.name in found:
                raise InvalidInput(f"{path}: {entry.name} does not belong into a backup", field="path")
            data = tar.extractfile(entry)
            assert data is not None  # it is a regular file
            if entry.name in (MANIFEST, MANIFEST_SUM):
                content = data.read()
                raw, said = (content, said) if entry.name == MANIFEST else (raw, content)
                continue
            found[entry.name] = {"size": entry.size, "sha256": sha256_of(data)}
    if not raw or not said:
        raise InvalidInput(f"{path} is incomplete: it ends before its manifest, so the backup was cut off", field="path")
    if hashlib.sha256(raw).hexdigest() != said.decode("ascii", "replace").strip():
        raise InvalidInput(f"{path}: the manifest was altered", field="path")
    manifest: dict[str, Any] = json.loads(raw)
    if manifest.get("format") != FORMAT:
        raise InvalidInput(f"{path} has format {manifest.get('format')}; this version reads format {FORMAT}", field="path")
    wrong = sorted(name for name in {*found, *manifest["members"]} if found.get(name) != manifest["members"].get(name))
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise InvalidInput(f"{path} is damaged: {', '.join(wrong[:3])}{more} is not what was written", field="path")
    return manifest


def sha256_of(source: IO[bytes]) -> str:
    """SHA-256 of what is left in a stream, in hexadecimal digits."""
    digest = hashlib.sha256()
    while block := source.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()


def members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Every member with its bytes, in the order they were written; read one before asking for the next."""
    with _opened(path) as tar:
        for entry in tar:
            if entry.isreg() and (data := tar.extractfile(entry)) is not None:
                yield entry.name, data


def lines(data: IO[bytes]) -> Iterator[bytes]:
    """The rows of one part."""
    with gzip.open(data, "rb") as unpacked:
        yield from unpacked
