"""A document's original as a local file, whatever kind of document and store it is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.files.storage import default_storage

from apps.common import storage
from apps.ingestion.plugins.protocol import ParseFailure
from apps.knowledge.models import Document


@contextmanager
def local_original(document: Document) -> Iterator[Path]:
    """Yield a path to read (not to write); temporary copies vanish after the block.

    Raises: ParseFailure(fetch_failed) when the file store does not have it.
    """
    if document.type == Document.Type.MANUAL:
        with _temporary(".md") as path:
            path.write_text(str((document.metadata or {}).get("content", "")), encoding="utf-8")
            yield path
        return
    if not document.storage_path or not default_storage.exists(document.storage_path):
        raise ParseFailure("fetch_failed", "the original is not in the file store")
    try:
        here = Path(default_storage.path(document.storage_path))
    except NotImplementedError:  # a remote store
        with _temporary(Path(document.file_name).suffix) as path:
            with default_storage.open(document.storage_path) as source, path.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1024 * 1024)
            yield path
        return
    yield here


@contextmanager
def _temporary(suffix: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="original-", dir=storage.temp_folder()))
    try:
        yield folder / f"original{suffix[:20]}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
