"""A real Redis of the test run's own, on a free loopback port, without persistence."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.support.tether import end_with_parent
from tests.support.waiting import until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


class RedisProcess:
    """A Redis server on a loopback port of its own; `kill()` ends it as a crash does, `start()` brings it back, empty, on the same port.

    Raises: FileNotFoundError when the program is not installed.
    """

    DATABASES = 1024

    def __init__(self, folder: Path) -> None:
        if shutil.which("redis-server") is None:
            raise FileNotFoundError("redis-server")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.url = self.database_url(0)
        self._process: subprocess.Popen[bytes] | None = None

    def database_url(self, number: int) -> str:
        """The URL of database `number`, from 0 to DATABASES - 1."""
        return f"redis://127.0.0.1:{self.port}/{number}"

    def __enter__(self) -> RedisProcess:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)

    def start(self) -> None:
        argv = [
            "redis-server",
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            str(self.folder),
            "--databases",
            str(self.DATABASES),
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        process = subprocess.Popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent()
        )
        self._process = process
        with redis.Redis(port=self.port, socket_timeout=1) as client:
            until(lambda: process.poll() is not None or _answers(client), "redis-server to answer")
        assert process.poll() is None, "redis-server ended at once"

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)


@contextmanager
def running_redis() -> Iterator[RedisProcess]:
    """A Redis server that lives as long as the block; FileNotFoundError when the program is not installed."""
    with tempfile.TemporaryDirectory(prefix="kb-redis-") as folder, RedisProcess(Path(folder)) as server:
        yield server
