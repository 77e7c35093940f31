"""The API quickstart works as printed: its commands run in one shell, and each answer it shows is the one that came."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stack import LiveStack

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("api-quickstart.md", "api-quickstart.zh.md")
PORTAL = "KB=http://127.0.0.1:8000"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.M | re.S)
MARK = "----- end of block -----"


def story(page: str) -> list[tuple[str, str]]:
    """(commands, answer shown) in the order of the page; the answer is empty where none is shown."""
    found: list[tuple[str, str]] = []
    for kind, text in BLOCK.findall((ROOT / "docs" / page).read_text("utf-8")):
        if kind == "sh":
            found.append((text, ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + text)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_the_page_goes_from_an_account_to_a_place_in_a_file(page: str) -> None:
    commands = "".join(commands for commands, _shown in story(page))
    assert commands.count(PORTAL) == 1
    for route in ("auth/register", "auth/login", "knowledge/file", "/stages", "hybrid-search", "knowledge-search", "api-keys"):
        assert f"{route}" in commands
    for prefix in ('"$KB/api/v1/', '"$KB/v1/knowledge/', '"$KB/v1/tenants/'):
        assert prefix in commands


@pytest.mark.process
@pytest.mark.timeout(300)
def test_every_command_answers_what_the_page_shows(live_stack: Callable[..., LiveStack], tmp_path: Path) -> None:
    if not (shutil.which("bash") and shutil.which("curl")):
        pytest.skip("bash and curl are not installed")
    stack = live_stack(env={"KB_OCR": "false"})
    for page in PAGES:
        blocks = story(page)
        script = f"\necho; echo '{MARK}'\n".join(commands.replace(PORTAL, f"KB={stack.base_url}") for commands, _shown in blocks)
        folder = tmp_path / page
        folder.mkdir()
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
        answers = [part.strip() for part in done.stdout.split(MARK)]
        assert (page, done.returncode, done.stderr) == (page, 0, ""), (answers[-1], stack.log_tail())
        assert len(answers) == len(blocks)
        for (commands, shown), answer in zip(blocks, answers, strict=True):
            assert answer == shown.strip(), f"{page}:\n{commands}"


def test_both_languages_tell_the_same_story() -> None:
    english, chinese = (story(page) for page in PAGES)
    assert [tuple(text.replace("Robin", "Lin").replace("robin", "lin") for text in block) for block in english] == chinese
