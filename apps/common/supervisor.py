"""Keeps the portal's processes running as one: they start together, are restarted when they die, and end together.

Knows nothing of Django: it gets command lines and a folder. `manage.py serve` builds those.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

logger = logging.getLogger("kbportal.serve")

before_start: list[Callable[[Sequence[str]], None]] = []
"""Called in order by `manage.py serve`, with the parts it is to run, before the first process starts; raise StartupError to refuse with a
sentence for the operator."""

PR_SET_PDEATHSIG = 1
FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0
STEADY_AFTER_S = 30.0
GRACE_S = 8.0
PROBE_EVERY_S = 0.25
SAME_REQUEST_S = 1.0  # one Ctrl-C can arrive twice: from the terminal and from a wrapper that passes it on

# Reads "+pid" and "-pid" lines; when its input ends because the supervisor is gone, the process groups still listed are killed.
WATCHER = """
import os, signal, sys
alive = set()
for line in sys.stdin:
    (alive.add if line[0] == "+" else alive.discard)(int(line[1:]))
for pid in alive:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
"""


class StartupError(Exception):
    """The portal cannot start; the text tells the operator why and what to do."""


@dataclass(frozen=True)
class Part:
    """One kind of process: its name in logs and in the file of process ids, its command line, and descriptors it inherits."""

    name: str
    argv: Sequence[str]
    pass_fds: tuple[int, ...] = ()


@dataclass
class _Child:
    part: Part
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    backoff_s: float = FIRST_BACKOFF_S
    start_due_at: float | None = field(default=0.0)

    @property
    def running(self) -> bool:
        return self.process is not None


def exit_in_words(returncode: int) -> str:
    """`exit code 3`, or the signal's name for a process that was killed."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"


def next_backoff(previous_s: float, lived_s: float) -> float:
    """Seconds to wait before the start after the next one: doubles up to a cap, forgotten once a process stayed up."""
    return FIRST_BACKOFF_S if lived_s >= STEADY_AFTER_S else min(previous_s * 2, LONGEST_BACKOFF_S)


class Supervisor:
    """Runs parts until told to stop.

    `run()` returns the exit code for the shell: 0 after SIGTERM or SIGINT. `tether` is how children learn that the supervisor was
    killed: "prctl" (Linux kernel) or "watcher" (a tiny process, wherever the kernel has no such thing).
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        run_dir: Path,
        probe: tuple[str, int] | None = None,
        on_ready: Callable[[], None] | None = None,
        grace_s: float = GRACE_S,
        tether: str = "prctl" if sys.platform == "linux" else "watcher",
        pids_file: str = "pids.json",
    ) -> None:
        self.run_dir = run_dir
        self._pids_path = run_dir / pids_file
        self.grace_s = grace_s
        self.tether = tether
        self._children = [_Child(part) for part in parts]
        self._probe = probe
        self._on_ready = on_ready
        self._stop_at: float | None = None
        self._hurry = False
        self._watcher: subprocess.Popen[str] | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._libc = ctypes.CDLL(None, use_errno=True) if tether == "prctl" else None

    def run(self) -> int:
        """Start the parts and keep them running; returns once all of them have ended after a stop signal."""
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        previous_fd = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        previous = {number: signal.signal(number, self._note_stop) for number in stops}
        previous[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            self._start_watcher()
            self._loop()
        finally:
            self._shut_down()
            signal.set_wakeup_fd(previous_fd)
            for number, handler in previous.items():
                signal.signal(number, handler)
            os.close(self._wake_read)
            os.close(self._wake_write)
        return 0

    def _note_stop(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._stop_at is None:
            self._stop_at = now
        elif now - self._stop_at > SAME_REQUEST_S:
            self._hurry = True

    def _loop(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            while self._stop_at is None:
                self._start_due()
                self._probe_once()
                self._wait(selector, self._seconds_to_next_event())
                self._reap()

    def _wait(self, selector: selectors.BaseSelector, timeout_s: float | None) -> None:
        if selector.select(timeout_s):
            with suppress(BlockingIOError):
                while os.read(self._wake_read, 512):
                    pass

    def _seconds_to_next_event(self) -> float | None:
        due = [child.start_due_at for child in self._children if child.start_due_at is not None]
        waits = [max(0.0, min(due) - time.monotonic())] if due else []
        if self._probe is not None:
            waits.append(PROBE_EVERY_S)
        return min(waits) if waits else None

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self._children:
            if child.start_due_at is not None and child.start_due_at <= now and self._stop_at is None:
                self._spawn(child)

    def _spawn(self, child: _Child) -> None:
        # A group of its own: Ctrl-C reaches only the supervisor, and what a killed worker leaves behind can be killed with its group.
        child.process = subprocess.Popen(
            list(child.part.argv),
            stdin=subprocess.DEVNULL,
            pass_fds=child.part.pass_fds,
            process_group=0,
            preexec_fn=self._die_with_supervisor(os.getpid()) if self._libc is not None else None,
        )
        child.started_at = time.monotonic()
        child.start_due_at = None
        self._tell_watcher(f"+{child.process.pid}")
        self._write_pids()
        logger.info("%s started (pid %d)", child.part.name, child.process.pid)

    def _die_with_supervisor(self, supervisor_pid: int) -> Callable[[], None]:
        libc = self._libc

        def arrange() -> None:
            assert libc is not None
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor_pid:  # it died between fork and prctl
                os._exit(1)

        return arrange

    def _reap(self) -> None:
        for child in self._children:
            if child.process is None or (code := child.process.poll()) is None:
                continue
            lived_s = time.monotonic() - child.started_at
            self._forget(child)
            wait_s = FIRST_BACKOFF_S if lived_s >= STEADY_AFTER_S else child.backoff_s
            child.backoff_s = next_backoff(child.backoff_s, lived_s)
            child.start_due_at = time.monotonic() + wait_s
            message = "%s ended unexpectedly (%s) after %.1f s; it is started again in %.1f s"
            logger.error(message, child.part.name, exit_in_words(code), lived_s, wait_s)

    def _forget(self, child: _Child) -> None:
        assert child.process is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)
        self._tell_watcher(f"-{child.process.pid}")
        child.process = None
        self._write_pids()

    def _shut_down(self) -> None:
        running = [child for child in self._children if child.running]
        asked_at = time.monotonic()
        for child in running:
            self._signal(child, signal.SIGTERM)
        while running and time.monotonic() - asked_at < self.grace_s and not self._hurry:
            with selectors.DefaultSelector() as selector:
                selector.register(self._wake_read, selectors.EVENT_READ)
                self._wait(selector, 0.1)
            running = [child for child in running if child.process is not None and child.process.poll() is None]
        for child in running:
            logger.warning("%s did not end in %.0f s and is killed", child.part.name, time.monotonic() - asked_at)
            self._signal(child, signal.SIGKILL)
        for child in self._children:
            if child.process is not None:
                child.process.wait()
                self._forget(child)
        self._stop_watcher()
        self._pids_path.unlink(missing_ok=True)
        logger.info("stopped")

    @staticmethod
    def _signal(child: _Child, number: int) -> None:
        assert child.process is not None
        with suppress(ProcessLookupError):
            child.process.send_signal(number)

    def _probe_once(self) -> None:
        """Any answer of the web process, whatever its status, means that people can reach the portal."""
        if self._probe is None:
            return
        connection = http.client.HTTPConnection(*self._probe, timeout=1.0)
        try:
            connection.request("GET", "/healthz/live", headers={"Connection": "close"})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()
        self._probe = None
        if self._on_ready is not None:
            self._on_ready()

    def _start_watcher(self) -> None:
        if self.tether != "watcher":
            return
        argv = [sys.executable, "-I", "-S", "-c", WATCHER]
        self._watcher = subprocess.Popen(argv, stdin=subprocess.PIPE, text=True, start_new_session=True)

    def _tell_watcher(self, line: str) -> None:
        if self._watcher is not None and self._watcher.stdin is not None:
            with suppress(BrokenPipeError):
                self._watcher.stdin.write(line + "\n")
                self._watcher.stdin.flush()

    def _stop_watcher(self) -> None:
        if self._watcher is not None and self._watcher.stdin is not None:
            with suppress(BrokenPipeError):
                self._watcher.stdin.close()
            self._watcher.wait()

    def _write_pids(self) -> None:
        pids = {"supervisor": os.getpid()} | {c.part.name: c.process.pid for c in self._children if c.process is not None}
        fresh = self.run_dir / f".pids.{os.getpid()}"
        fresh.write_text(json.dumps(pids), encoding="ascii")
        fresh.replace(self._pids_path)
