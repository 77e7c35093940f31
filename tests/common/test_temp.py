"""Temporary files of killed processes are taken away by whoever comes next, those of living ones never."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from apps.common import storage, temp
from apps.common.uploads import UploadHandler
from tests.support.stack import ROOT

HOLDER = """
import sys
from pathlib import Path
from apps.common import temp
folder = temp.folder_in(Path(sys.argv[1]))
(folder / "kb-parse-x").mkdir()
(folder / "kb-parse-x" / "page.png").write_bytes(b"x" * 1000)
print(folder, flush=True)
input()
"""


def holder(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process with a file in its temporary folder."""
    argv = [sys.executable, "-c", HOLDER, str(parent)]
    process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    (killed, left), (living, kept) = holder(tmp_path), holder(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([left.name, kept.name])
    assert temp.sweep(tmp_path) == 0, "both live"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert left.is_dir(), "it had no time to tidy up"
    own = temp.folder_in(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([own, kept])
    assert (kept / "kb-parse-x" / "page.png").read_bytes() == b"x" * 1000
    living.communicate("done\n", timeout=10)
    assert list(tmp_path.iterdir()) == [own], "a process that ends by itself takes its folder along"
    assert temp.folder_in(tmp_path) == own


def test_a_folder_that_was_taken_away_is_made_again(tmp_path: Path) -> None:
    first = temp.folder_in(tmp_path)
    first.rmdir()
    second = temp.folder_in(tmp_path)
    assert second.is_dir() and second != first


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("x")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "123-x").symlink_to(outside)
    temp.sweep(inside)
    assert (outside / "mine").exists()


def test_uploads_are_written_below_the_data_folder(settings: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.conf.settings.TEMP_DIR", tmp_path / "tmp", raising=False)
    handler = UploadHandler()
    handler.new_file("file", "名" * 80 + "." + "x" * 60, "text/plain", 4, "utf-8", {})
    handler.receive_data_chunk(b"data", 0)
    upload = handler.file_complete(4)
    assert upload is not None
    path = Path(upload.temporary_file_path())
    assert path.parent == storage.temp_folder() and path.parent.parent == tmp_path / "tmp"
    assert path.read_bytes() == b"data"
    handler.upload_interrupted()
    assert not path.exists()


def test_a_forked_child_makes_a_folder_of_its_own(tmp_path: Path) -> None:
    own = temp.folder_in(tmp_path)
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(write, str(temp.folder_in(tmp_path)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    other = Path(os.read(read, 4096).decode())
    assert other != own and other.parent == tmp_path
