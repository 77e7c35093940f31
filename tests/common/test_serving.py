"""Claiming the data folder and the address."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from apps.common.serving import DataDirLock, listen, url_of
from apps.common.supervisor import StartupError
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from apps.common.serving import DataDirLock
with DataDirLock(Path(sys.argv[1]), ["web", "worker"], address="http://127.0.0.1:8000/"):
    Path(sys.argv[1], "held").touch()
    time.sleep(600)
"""


def hold(run_dir: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(run_dir)], cwd=ROOT)
    until((run_dir / "held").exists, "the other portal to take the lock")
    return process


def test_a_second_portal_on_the_same_folder_is_refused_by_name(tmp_path: Path) -> None:
    other = hold(tmp_path)
    try:
        with pytest.raises(StartupError) as refusal, DataDirLock(tmp_path, ["web"]):
            pass
    finally:
        other.kill()
        other.wait()
    assert f"pid {other.pid}, http://127.0.0.1:8000/" in str(refusal.value)
    assert "KB_DATA_DIR=... KB_PORT=..." in str(refusal.value)


def test_the_lock_of_a_killed_portal_is_taken_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = hold(tmp_path)
    other.send_signal(signal.SIGKILL)
    other.wait()
    with caplog.at_level(logging.WARNING), DataDirLock(tmp_path, ["web"]):
        assert f'"pid": {os.getpid()}' in (tmp_path / "web.lock").read_text()
    assert f"(pid {other.pid}) did not stop cleanly" in caplog.text


def test_a_lock_given_back_is_free_and_leaves_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with DataDirLock(tmp_path, ["web", "worker", "schedule"]):
                pass
    assert caplog.text == ""


def test_a_refused_lock_gives_back_what_it_had_taken(tmp_path: Path) -> None:
    with DataDirLock(tmp_path, ["worker"]):
        with pytest.raises(StartupError, match="runs the worker"), DataDirLock(tmp_path, ["web", "worker"]):
            pass
        with DataDirLock(tmp_path, ["web"]):
            pass


def test_a_taken_port_is_named_with_the_next_step() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(StartupError, match=rf"port {port} on 127\.0\.0\.1 is taken .* KB_PORT={port + 1}"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [("no-such-host.invalid", 8000, "no-such-host.invalid:8000 is no address .* change KB_HOST"), ("127.0.0.1", 99999, "99999 is no port")],
)
def test_an_address_that_cannot_be_is_refused_in_words(host: str, port: int, words: str) -> None:
    with pytest.raises(StartupError, match=words):
        listen(host, port)


def test_an_address_of_another_machine_is_refused_in_words() -> None:
    with pytest.raises(StartupError, match="203.0.113.7 is not an address of this machine"):
        listen("203.0.113.7", 8000)


def test_url_of_is_an_address_a_person_can_open() -> None:
    assert [url_of(host, 8000) for host in ("127.0.0.1", "0.0.0.0", "::", "::1", "kb.local")] == [
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:8000/",
        "http://[::1]:8000/",
        "http://[::1]:8000/",
        "http://kb.local:8000/",
    ]


SETTLED = """
import gc, time, uvicorn
from apps.common.webserver import settle
config = uvicorn.Config("kbportal.asgi:application", lifespan="off", log_config=None)
settle(config)
kept = len(gc.get_objects())
started = time.process_time()
gc.collect()
print(config.loaded, gc.get_freeze_count() > 50_000, kept < 5_000, time.process_time() - started < 0.02)
"""


def test_a_settled_web_process_does_not_look_through_its_own_code_again(tmp_path: Path) -> None:
    own = {"DJANGO_SETTINGS_MODULE": "kbportal.settings.test", "KB_DATA_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", SETTLED], cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, timeout=120)
    assert ran.stdout.split() == ["True"] * 4, ran.stderr
