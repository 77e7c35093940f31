"""Servers that a test run starts end with it, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def end_with_parent(number: int = signal.SIGTERM) -> Callable[[], None]:
    """For `preexec_fn`: the kernel sends the signal when the thread that starts the process is gone. Start from the main thread."""
    parent = os.getpid()

    def arrange() -> None:
        if sys.platform != "linux":
            return
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died between fork and prctl
            os._exit(1)

    return arrange
