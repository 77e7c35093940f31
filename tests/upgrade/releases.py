"""Which migrations each release ended with, and what came after the newest one."""

from __future__ import annotations

import tomllib
from pathlib import Path

from django.db.migrations.graph import MigrationGraph

RELEASES: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "releases.toml").read_text(encoding="utf-8"))["releases"]
NEWEST = list(RELEASES)[-1]


def heads_of(release: str) -> list[tuple[str, str]]:
    return sorted(RELEASES[release].items())


def before(graph: MigrationGraph, release: str) -> set[tuple[str, str]]:
    """Every migration of a release."""
    return {node for head in heads_of(release) for node in graph.forwards_plan(head)}
