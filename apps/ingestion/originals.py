"""A document's original as a local file, whatever kind of document and store it is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.common import storage
from apps.ingestion.plugins.protocol import ParseFailure
from apps.knowledge.models import Document


@contextmanager
def local_original(document: Document) -> Iterator[Path]:
    """Yield a path to read (not to write); temporary copies vanish after the block.

    Raises: ParseFailure(original_missing) when the file store does not have it; StoreUnavailable when it cannot be asked.
    """
    if document.type == Document.Type.MANUAL:
        with _temporary(".md") as path:
            path.write_text(str((document.metadata or {}).get("content", "")), encoding="utf-8")
            yield path
        return
    here = storage.local_path(document.storage_path) if document.storage_path else None
    if here is not None and here.is_file():
        yield here
        return
    with _temporary(Path(document.file_name).suffix) as copy:
        try:
            if here is not None or not document.storage_path:
                raise FileNotFoundError(document.storage_path)
            with storage.read(document.storage_path) as source, copy.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except FileNotFoundError as error:
            raise ParseFailure("original_missing", "the original is not in the file store") from error
        yield copy


@contextmanager
def _temporary(suffix: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="original-", dir=storage.temp_folder()))
    try:
        yield folder / f"original{suffix[:20]}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
