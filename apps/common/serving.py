"""What `manage.py serve` claims before it starts anything: the data folder and the address."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType

from apps.common.supervisor import StartupError

logger = logging.getLogger("kbportal.serve")


class DataDirLock(AbstractContextManager["DataDirLock"]):
    """Exclusive use of a data folder by one supervisor, per part (`web`, `worker`, `schedule`).

    The kernel drops the lock with its holder, so a killed portal never has to be cleaned up after.
    Raises: StartupError naming the holder when another living portal has one of the parts.
    """

    def __init__(self, run_dir: Path, parts: Iterable[str], *, address: str = "") -> None:
        self.run_dir = run_dir
        self.parts = list(parts)
        self.address = address
        self.descriptors: list[int] = []
        self._held = ExitStack()

    def __enter__(self) -> DataDirLock:
        with ExitStack() as held:
            for part in self.parts:
                self._take(part, held)
            self._held = held.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()
        self.descriptors.clear()

    def _take(self, part: str, held: ExitStack) -> None:
        file = held.enter_context((self.run_dir / f"{part}.lock").open("a+", encoding="utf-8"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupError(self._refusal(part, _holder(file.name))) from None
        except OSError as error:
            raise StartupError(f"{self.run_dir} is on a disk without file locks ({error}); set KB_DATA_DIR to a local folder") from error
        if before := _holder(file.name):
            logger.warning("the portal that used this data folder before (pid %s) did not stop cleanly; taking over", before.get("pid"))
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "address": self.address}))
        file.flush()
        self.descriptors.append(file.fileno())
        held.callback(file.truncate, 0)

    def _refusal(self, part: str, holder: dict[str, object]) -> str:
        who = f"pid {holder.get('pid', 'unknown')}" + (f", {holder['address']}" if holder.get("address") else "")
        return (
            f"another portal ({who}) already runs the {part} of the data folder {self.run_dir.parent}. "
            "Stop it first, or give this one a folder and a port of its own: KB_DATA_DIR=... KB_PORT=..."
        )


def _holder(path: str) -> dict[str, object]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8") or "{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; held by the supervisor, so that requests wait instead of failing while the web process restarts.

    Raises: StartupError naming the address and what to change.
    """
    if not 0 <= port <= 65535:  # the resolver would take a larger one modulo 65536
        raise StartupError(f"{port} is no port; change KB_PORT to a number from 1 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
    except socket.gaierror as error:
        raise StartupError(f"{host}:{port} is no address to listen on ({error}); change KB_HOST") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise StartupError(_bind_refusal(host, port, error)) from error
    return listener


def _bind_refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken by another program. Choose another one, for example: KB_PORT={port + 1}"
    if error.errno == errno.EACCES:
        return f"this user may not listen on port {port}. Choose one above 1023, for example: KB_PORT=8000"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine. Set KB_HOST to 127.0.0.1, or to 0.0.0.0 for every interface"
    return f"cannot listen on {host}:{port}: {error.strerror}"


def url_of(host: str, port: int) -> str:
    """The address a person on this machine types, also when the portal listens on every interface."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{reachable}]:{port}/" if ":" in reachable else f"http://{reachable}:{port}/"
