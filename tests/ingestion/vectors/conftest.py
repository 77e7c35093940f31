"""Bases whose vectors come from scripted endpoints: an index of their own, no waiting for the packaged model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apps.llm.services import embedders
from apps.retrieval.engine import forget_engine
from tests.support.endpoint import Endpoint, serving
from tests.support.kit import Kit, make_kit


@pytest.fixture(autouse=True)
def _own_index(settings: Any, tmp_path: Any) -> Iterator[None]:
    (tmp_path / "index").mkdir()
    (tmp_path / "run").mkdir()
    settings.DATA_DIR = tmp_path
    settings.STORAGES = {**settings.STORAGES, "default": {**settings.STORAGES["default"], "OPTIONS": {"location": tmp_path / "files"}}}
    settings.MODEL_ALLOW = ["127.0.0.0/8"]
    settings.EMBEDDER = "none"  # what is not told otherwise goes without vectors, and no test waits for the packaged model
    forget_engine()
    embedders._made.clear()
    yield
    forget_engine()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


@pytest.fixture
def second() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


@pytest.fixture
def kit() -> Kit:
    return make_kit()
