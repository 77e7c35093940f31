"""An empty store of each search engine and mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from apps.retrieval.plugins.protocol import SearchBackend, backends
from tests.support.search_engines import ENGINES, store_options


@pytest.fixture(params=ENGINES)
def options(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Name and options of an empty store of each engine and mode."""
    yield from store_options(request, tmp_path, request.param)


@pytest.fixture
def backend(options: tuple[str, Mapping[str, str]]) -> SearchBackend:
    made = backends.get(options[0])(options[1])
    made.ensure()
    return made
