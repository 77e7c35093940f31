"""Originals and what parsers made of them, in the file store: `<space>/<base uid>/<document uid>/<version>/<part>`.

The base in a key is the one the document was born in; a move does not rename files. Which keys belong to a document is said by its row.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.core.files import File
from django.db import transaction
from django.db.models import Q

from apps.common import storage
from apps.common.errors import NotFound
from apps.common.stores import Entry
from apps.knowledge.models import Document, DocumentImage, DocumentVersion

BLANK = b" \t\r\n\x0b\x0c\x00"
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Digest:
    """`md5` is what clients compare, `sha256` what we compare; `blank`: nothing but white space in it."""

    md5: str
    sha256: str
    size_bytes: int
    blank: bool


def digest(path: Path) -> Digest:
    """Hashes and size of a file in one pass over it, in pieces."""
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    size_bytes = 0
    rest = b""  # what is left when white space is taken away; kept only while it could still be white space of another kind
    with path.open("rb") as source:
        while block := source.read(BLOCK):
            md5.update(block)
            sha256.update(block)
            size_bytes += len(block)
            if len(rest) < 4096:
                rest += block.translate(None, BLANK)[:4096]
    return Digest(md5.hexdigest(), sha256.hexdigest(), size_bytes, size_bytes > 0 and len(rest) < 4096 and _is_blank(rest))


def _is_blank(rest: bytes) -> bool:
    text = rest.replace(b"\xff\xfe", b"").replace(b"\xfe\xff", b"").decode("utf-8", "replace")
    return not text.replace("\ufeff", "").replace("\u200b", "").strip()


def document_folder(space_id: int, kb_uid: uuid.UUID, document_uid: uuid.UUID) -> str:
    return f"{space_id}/{kb_uid}/{document_uid}"


def new_key(space_id: int, kb_uid: uuid.UUID, document_uid: uuid.UUID, part: str = "original") -> str:
    """A key nothing is stored under yet; every version of a document gets one of its own."""
    return f"{document_folder(space_id, kb_uid, document_uid)}/{secrets.token_hex(6)}/{part}"


def store_original(source: File[Any] | Path, *, space_id: int, kb_uid: uuid.UUID, document_uid: uuid.UUID) -> str:
    """Store a file as a new version of a document's original and return its key.

    Call it before the transaction that names the key, and `discard_files([key])` when that fails: a crash in between leaves a key that no
    row names, which `reconcile` finds, and never a row without its file.
    """
    key = new_key(space_id, kb_uid, document_uid)
    if isinstance(source, Path):
        with source.open("rb") as opened:
            return storage.write(key, File(opened))
    return storage.write(key, source)


def open_original(document: Document) -> IO[bytes]:
    """The original's bytes, seekable. Raises: NotFound when the document has none or the store lost it."""
    try:
        if document.storage_path:
            return storage.read(document.storage_path)
    except FileNotFoundError:
        pass
    raise NotFound("the document has no original file", code="no_original")


def delete_files(paths: Iterable[str]) -> int:
    """Remove keys from the store now; how many were asked for. Keys that are gone are fine."""
    count = 0
    for path in paths:
        if path:
            storage.remove(path)
            count += 1
    return count


def discard_files(paths: Iterable[str]) -> None:
    """Remove keys of a change that was not made; never raises because the store is away (`reconcile` removes them then)."""
    storage.discard(paths)


def delete_on_commit(paths: Iterable[str]) -> None:
    """Remove keys once the change that stopped naming them is committed."""
    gone = [path for path in paths if path]
    if gone:
        transaction.on_commit(lambda: discard_files(gone), robust=True)


def document_keys(document: Document) -> Iterator[str]:
    """Every key in the store that belongs to a document, versions no row names any more included."""
    folders = {document_folder(document.space_id, document.kb.uid, document.uid)}
    for path in (document.storage_path, document.parsed_path):
        if path:
            folders.add(path.rsplit("/", 2)[0])
    for folder in sorted(folders):
        if str(document.uid) in folder:
            yield from storage.keys(folder)


def stored_entries() -> Iterator[Entry]:
    """Everything in the store, with size and time."""
    return storage.entries()


def expected_keys() -> Iterator[str]:
    """Every key some row names, tombstones included; call it inside a scope (unscoped, for the whole store)."""
    for original, parsed in Document.objects.order_by("pk").values_list("storage_path", "parsed_path").iterator(chunk_size=2000):
        if original:
            yield original
        if parsed:
            yield parsed
    yield from DocumentImage.objects.order_by("pk").values_list("storage_path", flat=True).iterator(chunk_size=2000)
    yield from version_keys()


def version_keys() -> Iterator[str]:
    """Every key an earlier version names; call it inside a scope."""
    for pair in DocumentVersion.objects.order_by("pk").values_list("storage_path", "parsed_path").iterator(chunk_size=2000):
        yield from filter(None, pair)


def exists(key: str) -> bool:
    """Whether the store has a file under this key."""
    return storage.exists(key)


def is_earlier(key: str) -> bool:
    """Whether an earlier version of a document names this key."""
    return DocumentVersion.objects.filter(Q(parsed_path=key) | Q(storage_path=key)).exists()
