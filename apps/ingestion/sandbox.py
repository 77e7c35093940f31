"""Parses a file that others sent: in a child process of its own, within limits, that can be stopped at any moment.

A crash, a hang or a bomb ends that document with its reason, never the worker.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.ingestion.plugins.looking import read_seen
from apps.ingestion.plugins.protocol import REASONS, ParsedDocument, ParseFailure, ParseRequest, Progress
from apps.ingestion.sandbox_wire import read_document, request_to_json

ROOT = Path(__file__).resolve().parents[2]
_TICK_S = 0.1
_STDERR_KEPT = 8000
_NO_MEMORY = ("MemoryError", "memory allocation of", "bad_alloc", "out of memory", "Out of memory", "OOM", "cannot allocate memory")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one parse may use. `wall_s` counts waiting too; `memory_bytes` is watched by the parent (resident) and capped by the kernel."""

    wall_s: float = 600.0
    cpu_s: int = 540
    memory_bytes: int = 1_400_000_000
    output_bytes: int = 400_000_000


#: OCR keeps its models and a page's activations in memory: about 1.1 GB for a dense page.
OCR_LIMITS = Limits(wall_s=7200.0, cpu_s=7000, memory_bytes=2_600_000_000)
LOOK_S = 60.0  # for each picture; a full page of small print takes about ten
#: Address space beyond resident memory: libraries, mapped models, thread stacks.
_ADDRESS_HEADROOM = 1_200_000_000


def parse_file(
    request: ParseRequest,
    *,
    limits: Limits | None = None,
    on_progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
    folder: Path | None = None,
) -> ParsedDocument:
    """The document in the file, parsed in a fresh child process.

    `should_stop` is asked about every 0.1 s; when it says yes the child is killed at once.
    Its files are below `folder` (the system's temporary folder by default), which outlives it when this process is killed.
    Raises: ParseFailure, with reason cancelled, timeout, out_of_memory or crashed for what befell the child, else the parser's own reason.
    """
    limits = limits or (OCR_LIMITS if request.ocr else Limits())
    with tempfile.TemporaryDirectory(prefix="kb-parse-", dir=folder, ignore_cleanup_errors=True) as work:
        request_json = request_to_json(request) | {"path": str(request.path.resolve())}
        _run({"request": request_json}, work, limits, on_progress, should_stop)
        try:
            return read_document(Path(work))
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise ParseFailure("crashed", "the parser gave a result that cannot be read") from error


def look_at(
    pictures: Sequence[bytes], *, ocr: bool, side: int = 0, should_stop: Callable[[], bool] | None = None, folder: Path | None = None
) -> list[tuple[str, bytes, str]]:
    """(text by OCR, JPEG copy of at most `side` pixels, what was wrong) of each picture, looked at in a fresh child process.

    Raises: ParseFailure with what befell the child (cancelled, timeout, out_of_memory, crashed): one picture may be to blame.
    """
    limits = Limits(
        LOOK_S * max(1, len(pictures)), int(LOOK_S) * max(1, len(pictures)), OCR_LIMITS.memory_bytes if ocr else Limits().memory_bytes
    )
    with tempfile.TemporaryDirectory(prefix="kb-look-", dir=folder, ignore_cleanup_errors=True) as work:
        paths = [Path(work) / f"given-{number}.bin" for number in range(len(pictures))]
        for path, data in zip(paths, pictures, strict=True):
            path.write_bytes(data)
        _run({"pictures": [str(path) for path in paths], "ocr": ocr, "side": side}, work, limits, None, should_stop)
        try:
            return read_seen(Path(work), len(pictures))
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            raise ParseFailure("crashed", "looking at pictures gave a result that cannot be read") from error


def _run(
    job: dict[str, Any], work: str, limits: Limits, on_progress: Progress | None, should_stop: Callable[[], bool] | None
) -> dict[str, Any]:
    """Have a child do a job within its limits. Raises: ParseFailure when it could not."""
    walls = {
        "folder": work,
        "cpu_s": limits.cpu_s,
        "memory_bytes": limits.memory_bytes + _ADDRESS_HEADROOM,
        "output_bytes": limits.output_bytes,
    }
    with _Child(work) as child:
        message = child.talk({**job, **walls}, limits, on_progress, should_stop)
    if message["type"] == "failed":
        reason = message.get("reason")
        raise ParseFailure(reason if reason in REASONS else "internal", str(message.get("message", "")), **(message.get("details") or {}))
    return message


def _environment(folder: str) -> dict[str, str]:
    """SECURITY: the child inherits no secret; it gets a path, a language, and what keeps native libraries quiet and single-threaded."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")}
    return kept | {
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": folder,
        "TMPDIR": folder,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "MALLOC_ARENA_MAX": "2",
    }


class _Child:
    """One child process; leaving the context kills it if it still lives."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.peak = 0
        self.errors = bytearray()

    def __enter__(self) -> _Child:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "apps.ingestion.sandbox_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=_environment(self.folder),
            close_fds=True,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def talk(
        self, job: dict[str, Any], limits: Limits, on_progress: Progress | None, should_stop: Callable[[], bool] | None
    ) -> dict[str, Any]:
        """The child's last message.

        Raises: ParseFailure when it was stopped or ended without one.
        """
        assert self.process.stdin and self.process.stdout and self.process.stderr
        deadline = time.monotonic() + limits.wall_s
        try:
            self.process.stdin.write((json.dumps(job) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return self._ended(limits)
        out, err = self.process.stdout.fileno(), self.process.stderr.fileno()
        pending, open_pipes = bytearray(), {out, err}
        while open_pipes:
            ready, _, _ = select.select(list(open_pipes), [], [], _TICK_S)
            if should_stop is not None and should_stop():
                raise ParseFailure("cancelled", "stopped on request")
            if time.monotonic() > deadline:
                raise ParseFailure("timeout", f"timed out: not done within {limits.wall_s:g} s", limit_s=limits.wall_s)
            if self._resident() > limits.memory_bytes:
                raise _out_of_memory(limits)
            for pipe in ready:
                data = os.read(pipe, 65_536)
                if not data:
                    open_pipes.discard(pipe)
                elif pipe == err:
                    self.errors = (self.errors + data)[-_STDERR_KEPT:]
                else:
                    pending += data
                    if len(pending) > 10_000_000:
                        raise ParseFailure("crashed", "the parser sent an endless message")
                    if (last := _messages(pending, on_progress)) is not None:
                        return last
        return self._ended(limits)

    def _resident(self) -> int:
        """Resident bytes of the child; 0 where /proc is missing."""
        try:
            with open(f"/proc/{self.process.pid}/statm", "rb") as file:
                now = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return 0
        self.peak = max(self.peak, now)
        return now

    def _ended(self, limits: Limits) -> dict[str, Any]:
        """Why a child ended without a last word."""
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = 0
        trace = self.errors.decode("utf-8", "replace")
        if -code in (signal.SIGXCPU,) or (
            -code == signal.SIGKILL and self.peak < 0.5 * limits.memory_bytes and "Killed" not in trace and _cpu_spent(limits)
        ):
            raise ParseFailure("timeout", f"timed out: more than {limits.cpu_s} s of computing", limit_s=limits.cpu_s)
        if any(sign in trace for sign in _NO_MEMORY) or self.peak > 0.85 * limits.memory_bytes:
            raise _out_of_memory(limits)
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        last = trace.strip().rsplit("\n", 1)[-1][:300]
        raise ParseFailure("crashed", f"the parser crashed on this file ({name})", trace=trace[-2000:], last=last)


def _cpu_spent(limits: Limits) -> bool:
    """Whether the children ended so far have used up a limit: a kernel that kills instead of signalling SIGXCPU says nothing else."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime >= limits.cpu_s


def _out_of_memory(limits: Limits) -> ParseFailure:
    return ParseFailure(
        "out_of_memory",
        f"out of memory: the file needs more than the limit of {limits.memory_bytes // 1_000_000} MB",
        limit=limits.memory_bytes,
    )


def _messages(pending: bytearray, on_progress: Progress | None) -> dict[str, Any] | None:
    """Hands progress on; gives the last message once it has come."""
    while (end := pending.find(b"\n")) >= 0:
        line = bytes(pending[:end])
        del pending[: end + 1]
        try:
            message = json.loads(line)
            kind = message["type"]
        except (ValueError, KeyError, TypeError) as error:
            raise ParseFailure("crashed", "the parser sent a message that cannot be read") from error
        if kind in ("done", "failed"):
            return message
        if kind == "progress" and on_progress is not None:
            on_progress(int(message["done"]), int(message["total"]), str(message["unit"])[:20])
    return None
