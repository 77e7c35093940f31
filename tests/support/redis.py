"""A real Redis of the test run's own, on a free loopback port, without persistence."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import redis

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


@contextmanager
def running_redis() -> Iterator[str]:
    """The URL of a Redis server that lives as long as the block; FileNotFoundError when the program is not installed."""
    if shutil.which("redis-server") is None:
        raise FileNotFoundError("redis-server")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="kb-redis-") as folder:
        argv = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--save", "", "--appendonly", "no"]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            with redis.Redis(port=port, socket_timeout=1) as client:
                until(lambda: process.poll() is not None or _answers(client), "redis-server to answer")
            assert process.poll() is None, "redis-server ended at once"
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(10)
