"""Processor time of this process and of a server it started."""

from __future__ import annotations

import os
import time
from pathlib import Path


class Processes:
    """This process and, when named, a server with its children."""

    def __init__(self, server: int | None = None) -> None:
        self._server = server

    def seconds(self) -> float:
        """Processor time so far."""
        spent = time.process_time()
        if self._server is None:
            return spent
        ticks = _ticks(self._server)[0]
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                own, parent = _ticks(int(folder.name))
                ticks += own if parent == self._server else 0
        return spent + ticks / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int) -> tuple[int, int]:
    """(clock ticks of a process and of its children that ended, its parent); (0, 0) when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return sum(int(field) for field in fields[11:15]), int(fields[1])
