"""The supervisor with real processes: what a person who starts, stops or kills the portal sees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.common.supervisor import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, STEADY_AFTER_S, exit_in_words, next_backoff
from tests.support.waiting import pid_alive, until

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
SLEEPER = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open({ready!r}, 'w').close(); time.sleep(600)"
PARENT = (
    "import subprocess, sys, time, pathlib;"
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "pathlib.Path({out!r}).write_text(str(p.pid)); time.sleep(600)"
)
DRIVER = """
import json, logging, sys
from pathlib import Path
from apps.common.supervisor import Part, Supervisor
logging.basicConfig(level="INFO")
spec = json.loads(sys.argv[1])
parts = [Part(name, [sys.executable, "-c", code]) for name, code in spec["parts"].items()]
sys.exit(Supervisor(parts, run_dir=Path(spec["run_dir"]), grace_s=spec["grace_s"], tether=spec["tether"]).run())
"""


class Running:
    def __init__(self, process: subprocess.Popen[str], run_dir: Path, log: Path) -> None:
        self.process = process
        self.run_dir = run_dir
        self.log = log

    def pids(self) -> dict[str, int]:
        try:
            return json.loads((self.run_dir / "pids.json").read_text())
        except FileNotFoundError:
            return {}

    def wait_pids(self, *names: str) -> dict[str, int]:
        return until(lambda: self.pids() if set(names) <= set(self.pids()) else None, f"pids of {names}")


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(parts: dict[str, str], *, grace_s: float = 5.0, tether: str = "prctl") -> Running:
        log = tmp_path / "log"
        spec = json.dumps({"parts": parts, "run_dir": str(tmp_path), "grace_s": grace_s, "tether": tether})
        with log.open("w") as file:
            process = subprocess.Popen([sys.executable, "-c", DRIVER, spec], cwd=ROOT, stderr=file, text=True, start_new_session=True)
        started.append(Running(process, tmp_path, log))
        return started[-1]

    yield start
    for running in started:
        pids = running.pids()
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
        for name, pid in pids.items():
            if name != "supervisor" and pid_alive(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_part_that_is_killed_is_started_again_and_the_log_says_why(supervise: Callable[..., Running]) -> None:
    running = supervise({"web": SLEEPER, "worker": SLEEPER})
    before = running.wait_pids("supervisor", "web", "worker")
    os.kill(before["worker"], signal.SIGKILL)
    after = until(lambda: pids if (pids := running.pids()).get("worker", before["worker"]) != before["worker"] else None, "a new worker")
    assert after["web"] == before["web"]
    assert pid_alive(after["worker"])
    assert "worker ended unexpectedly (signal SIGKILL)" in running.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_ends_every_part_and_exits_zero(supervise: Callable[..., Running], number: signal.Signals) -> None:
    running = supervise({"web": SLEEPER, "schedule": SLEEPER})
    pids = running.wait_pids("web", "schedule")
    running.process.send_signal(number)
    assert running.process.wait(10) == 0
    assert [name for name, pid in pids.items() if pid_alive(pid)] == []
    assert running.pids() == {}


def test_a_part_that_ignores_the_stop_signal_is_killed_after_the_grace_time(supervise: Callable[..., Running], tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    running = supervise({"worker": STUBBORN.format(ready=str(ready))}, grace_s=0.5)
    worker = running.wait_pids("worker")["worker"]
    until(ready.exists, "the part to ignore SIGTERM")
    running.process.terminate()
    assert running.process.wait(10) == 0
    assert not pid_alive(worker)
    assert "worker did not end in" in running.log.read_text()


@pytest.mark.parametrize("tether", ["prctl", "watcher"])
def test_parts_die_with_a_killed_supervisor(supervise: Callable[..., Running], tether: str) -> None:
    if tether == "prctl" and sys.platform != "linux":
        pytest.skip("prctl exists on Linux only")
    running = supervise({"web": SLEEPER, "worker": SLEEPER}, tether=tether)
    pids = running.wait_pids("web", "worker")
    running.process.kill()
    running.process.wait()
    until(lambda: not any(pid_alive(pid) for pid in pids.values()), "the parts to end with their supervisor")


def test_what_a_killed_part_had_started_is_killed_too(supervise: Callable[..., Running], tmp_path: Path) -> None:
    out = tmp_path / "grandchild"
    running = supervise({"worker": PARENT.format(out=str(out))})
    worker = running.wait_pids("worker")["worker"]
    grandchild = int(until(lambda: out.exists() and out.read_text(), "the grandchild"))
    assert pid_alive(grandchild)
    os.kill(worker, signal.SIGKILL)
    until(lambda: not pid_alive(grandchild), "the grandchild to end")


def test_back_off_doubles_to_a_cap_and_is_forgotten_after_a_steady_run() -> None:
    waits = [FIRST_BACKOFF_S]
    for _ in range(7):
        waits.append(next_backoff(waits[-1], lived_s=0.1))
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert next_backoff(LONGEST_BACKOFF_S, lived_s=STEADY_AFTER_S) == FIRST_BACKOFF_S


def test_exit_in_words() -> None:
    assert [exit_in_words(code) for code in (3, -9, -15, -200)] == ["exit code 3", "signal SIGKILL", "signal SIGTERM", "signal 200"]


def test_one_ctrl_c_that_arrives_twice_still_lets_parts_end_in_their_own_time(supervise: Callable[..., Running]) -> None:
    slow = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.4), sys.exit(0))); time.sleep(600)"
    running = supervise({"worker": slow})
    running.wait_pids("worker")
    until(lambda: "worker started" in running.log.read_text(), "the start to be logged")
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(10) == 0
    assert "is killed" not in running.log.read_text()
