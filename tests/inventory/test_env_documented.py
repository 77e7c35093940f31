"""Every environment variable of the portal is declared once and stands in .env.example with its default."""

from __future__ import annotations

import re

from kbportal import env
from tests.inventory.source import ROOT

LINE = re.compile(r"^#?(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>.*)$")


def documented() -> dict[str, str]:
    lines = (LINE.match(line) for line in (ROOT / ".env.example").read_text(encoding="utf-8").splitlines())
    return {match["name"]: match["value"] for match in lines if match}


def test_the_example_lists_exactly_the_declared_variables() -> None:
    assert sorted(documented()) == sorted(env.VARIABLES)


def test_the_example_shows_the_defaults() -> None:
    assert documented() == {name: variable.default for name, variable in env.VARIABLES.items()}


def test_every_variable_has_the_prefix_and_says_what_it_is_for() -> None:
    assert [name for name, variable in env.VARIABLES.items() if not name.startswith("KB_") or not variable.help.endswith(".")] == []


def test_the_example_names_each_variable_once() -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    names = [match["name"] for line in lines if (match := LINE.match(line))]
    assert len(names) == len(set(names))


def test_nothing_outside_env_mentions_an_undeclared_variable() -> None:
    places = [ROOT / name for name in ("Makefile", "docker-compose.yml", "README.md", "README.zh.md")]
    places += [*(ROOT / "docs").rglob("*.md")]
    outside = {"KB_VENV", "KB_SHARED", "KB_TEST_DATA_DIR"}  # of the make targets and the test run, not of the portal
    found = {
        f"{path.name}: {name}"
        for path in places
        if path.is_file()
        for name in re.findall(r"\bKB_[A-Z0-9_]+\b", path.read_text(encoding="utf-8"))
        if name not in env.VARIABLES and name not in outside
    }
    assert found == set()
