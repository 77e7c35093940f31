"""The portal as people run it: `manage.py serve` with all its processes, on a data folder and a port of its own."""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import django
import psycopg

from tests.support.filestore import KEYS, fresh_prefix, with_prefix
from tests.support.redis import free_port
from tests.support.tether import end_with_parent
from tests.support.waiting import pid_alive, until

ROOT = Path(__file__).resolve().parent.parent.parent
START_TIMEOUT_S = 180.0  # an idle machine needs 5; one that is shared with other work may need many times that


_DATABASES_A_WORKER = 200  # several test workers share one Redis
_taken = itertools.count(1 + _DATABASES_A_WORKER * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]))


def _own_servers(broker_url: str) -> dict[str, str]:
    """In the server shape (`scripts/with_servers.py`): a database, a broker and a file store of the stack's own on the run's servers."""
    servers = {}
    if files := os.environ.get("KB_STORAGE_URL"):
        servers = {name: os.environ[name] for name in KEYS} | {"KB_STORAGE_URL": with_prefix(files, fresh_prefix())}
    database = os.environ.get("KB_DATABASE_URL", "")
    if not database:
        return servers
    name = f"stack_{os.getpid()}_{next(_taken)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    servers["KB_DATABASE_URL"] = urlsplit(database)._replace(path=f"/{name}").geturl()
    if not broker_url and os.environ.get("KB_BROKER_URL"):
        servers["KB_BROKER_URL"] = urlsplit(os.environ["KB_BROKER_URL"])._replace(path=f"/{next(_taken)}").geturl()
    return servers


def _migrated_database() -> Path:
    """A SQLite database as `migrate` leaves it, made once for these migrations: seconds of a processor for every portal that starts."""
    versions = hashlib.sha256(django.__version__.encode())
    for path in sorted(ROOT.glob("apps/*/migrations/*.py")):
        versions.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"kbportal-migrated-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    made = folder / f"{versions.hexdigest()[:24]}.sqlite3"
    if not made.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            kept = {key: value for key, value in os.environ.items() if not key.startswith("KB_")}
            environ = kept | {"DJANGO_SETTINGS_MODULE": "kbportal.settings", "KB_DATA_DIR": scratch}
            subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environ, check=True)
            os.replace(Path(scratch) / "kbportal.sqlite3", made)  # two at once make the same
    return made


class LiveStack:
    """A running portal.

    `kill("worker")` ends one process (web, worker, schedule, supervisor) the hard way; `restart()` stops and starts on the same data.
    `grown`: an empty data folder gets a database that is migrated already; without it the portal makes its own, as at a first start.
    """

    def __init__(
        self, data_dir: Path, *, broker_url: str = "", only: str = "", env: dict[str, str] | None = None, grown: bool = True
    ) -> None:
        self.data_dir = data_dir
        self.grown = grown
        self.broker_url = broker_url
        self.only = only
        self.extra_env = {**_own_servers(broker_url), **(env or {})}
        self.port = free_port()
        self.log_path = data_dir.parent / f"{data_dir.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the portal's processes; pass it to `manage.py` commands that work on the same data."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("KB_") and key != "DJANGO_SETTINGS_MODULE"}
        return kept | {
            "DJANGO_SETTINGS_MODULE": "kbportal.settings",
            "KB_DATA_DIR": str(self.data_dir),
            "KB_HOST": "127.0.0.1",
            "KB_PORT": str(self.port),
            "KB_BROKER_URL": self.broker_url,
            "KB_LOG_FORMAT": "json",
            "KB_DISK_WARN_GB": "0",
            "KB_DISK_REFUSE_GB": "0",
            "PYTHONUNBUFFERED": "1",
            **self.extra_env,
        }

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name as the portal itself reports them; empty when it is down."""
        run = self.data_dir / "run"
        own = list(run.glob(f"pids-*-{self._process.pid}.json")) if self._process is not None else []
        try:
            found = json.loads((own[0] if own else run / "pids.json").read_text(encoding="ascii"))
        except FileNotFoundError:
            return {}
        return {str(name): int(pid) for name, pid in found.items()}

    def start(self) -> LiveStack:
        """Start and wait until the web process answers."""
        assert self._process is None, "already started"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        if self.grown and not any(self.data_dir.iterdir()) and not self.extra_env.get("KB_DATABASE_URL"):
            shutil.copyfile(_migrated_database(), self.data_dir / "kbportal.sqlite3")
        argv = [sys.executable, "manage.py", "serve", "--migrate", *(["--only", self.only] if self.only else [])]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                argv,
                cwd=ROOT,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent(),
            )
        if not self.only or "web" in self.only:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Wait until GET /healthz/live answers 200."""
        until(self._is_live, f"the portal to answer on {self.base_url}", timeout_s=START_TIMEOUT_S, every_s=0.1)

    def _is_live(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the portal ended with {self._process.returncode}:\n{self.log_tail()}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/healthz/live", headers={"Connection": "close"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        """Send a signal to one process by name and wait until it is gone; returns the pid it had."""
        pid = until(lambda: self.pids.get(name), f"a process named {name}")
        os.kill(pid, number)
        if name == "supervisor" and self._process is not None:
            self._process.wait(30)
        until(lambda: not pid_alive(pid), f"{name} (pid {pid}) to end")
        return pid

    def wait_replaced(self, name: str, old_pid: int) -> int:
        """The pid of the process that the supervisor started in the place of `old_pid`."""

        def fresh() -> int | None:
            pid = self.pids.get(name)
            return pid if pid not in (None, old_pid) and pid_alive(pid or 0) else None

        return int(until(fresh, f"{name} to be started again") or 0)

    def stop(self) -> None:
        """Stop everything as Ctrl-C does; nothing of this portal runs afterwards, however it ended before."""
        if self._process is None:
            return
        left = self.pids
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
        self._process = None
        for name, pid in left.items():
            until(lambda pid=pid: not pid_alive(pid), f"{name} (pid {pid}) to end", timeout_s=15)

    def restart(self) -> None:
        """Stop, then start on the same data folder and port."""
        self.stop()
        self.start()

    def manage(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a management command against the same data; its output is captured."""
        command = [sys.executable, "manage.py", *argv]
        return subprocess.run(command, cwd=ROOT, env=self.environ, capture_output=True, text=True, timeout=300, check=check)

    def log_tail(self, lines: int = 40) -> str:
        """The last lines that the portal's processes logged."""
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
