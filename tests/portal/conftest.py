"""Pages that read and search need an index and a file store of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.retrieval.engine import forget_engine
from tests.support.filestore import use_fresh_store
from tests.support.library import Library


@pytest.fixture
def library(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Library]:
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    use_fresh_store(settings, tmp_path)
    forget_engine()
    yield Library.make()
    forget_engine()
