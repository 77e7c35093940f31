"""A space whose index and file store belong to the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.retrieval.engine import forget_engine
from tests.support.kit import Kit, make_kit


@pytest.fixture
def own_store(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """Data folder of this test: index, files, run."""
    for name in ("index", "run"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR = tmp_path
    settings.STORAGES = {**settings.STORAGES, "default": {**settings.STORAGES["default"], "OPTIONS": {"location": tmp_path / "files"}}}
    forget_engine()
    yield tmp_path
    forget_engine()


@pytest.fixture
def kit(own_store: Path, transactional_db: None) -> Kit:
    return make_kit()
