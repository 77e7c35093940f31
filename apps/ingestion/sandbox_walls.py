"""The walls of the parser's child process: limits of the kernel, no network, no other programs, no writing outside its folder.

Standard library only, and little of it: every parse pays for these imports.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import threading
from typing import Any


def set_limits(cpu_s: int, memory_bytes: int, output_bytes: int) -> None:
    """Limit this process. Units: seconds of CPU, bytes of address space, bytes of any one file. What a system lacks is left out."""
    import resource

    def limit(which: str, value: int) -> None:
        number = getattr(resource, which, None)
        if number is None:
            return
        hard = resource.getrlimit(number)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(number, (most, most))
        except (ValueError, OSError):
            return  # macOS refuses some; the parent watches time and memory as well

    limit("RLIMIT_CORE", 0)
    limit("RLIMIT_CPU", cpu_s + 1)
    limit("RLIMIT_FSIZE", output_bytes)
    if sys.platform == "linux":
        limit("RLIMIT_AS", memory_bytes)


def die_with_parent() -> None:
    """End when the parent ends: by the kernel where it can, and always by noticing that standard input was closed."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
        if os.getppid() != parent:
            os._exit(1)

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_REFUSED = tuple(
    "socket. subprocess.Popen os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty pty.spawn ftplib. smtplib. urllib.Request"
    " os.kill os.symlink os.link os.chmod os.chown".split()
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def forbid(folder: str) -> None:
    """From now on Python code here reaches no network, starts no program, and writes only below `folder`. Cannot be undone."""
    folder = os.path.realpath(folder) + os.sep

    def inside(path: Any) -> bool:
        if isinstance(path, int):
            return True
        name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        return name == os.devnull or os.path.realpath(name).startswith(folder)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = (*args, None, None, None)[:3]
            writes = (isinstance(mode, str) and any(c in mode for c in "wax+")) or (isinstance(flags, int) and flags & _WRITES)
            if writes and not inside(path):
                raise PermissionError(f"the sandbox refuses to write {path!r}")
        elif event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"):
            if not inside(args[0]):
                raise PermissionError(f"the sandbox refuses {event}")
        elif event.startswith(_REFUSED):
            raise PermissionError(f"the sandbox refuses {event}")

    sys.addaudithook(hook)
    _no_sockets_in_native_code()


def _no_sockets_in_native_code() -> None:
    """A seccomp filter that answers EPERM to socket(2) and its kin, for libraries that never pass through Python. Best effort."""
    numbers = {
        "x86_64": (0xC000003E, {"socket": 41, "connect": 42, "execve": 59, "execveat": 322, "ptrace": 101}),
        "aarch64": (0xC00000B7, {"socket": 198, "connect": 203, "execve": 221, "execveat": 281, "ptrace": 117}),
    }.get(platform.machine())
    if sys.platform != "linux" or numbers is None:
        return
    architecture, calls = numbers
    load, equal, give = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | 1
    program = [(load, 0, 0, 4), (equal, 0, len(calls) + 1, architecture), (load, 0, 0, 0)]
    left = len(calls)
    for number in calls.values():
        program.append((equal, left, 0, number))
        left -= 1
    program += [(give, 0, 0, allow), (give, 0, 0, refuse)]
    packed = b"".join(struct.pack("HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(packed, len(packed))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    filled = Program(len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) == 0:  # PR_SET_NO_NEW_PRIVS
        libc.prctl(22, 2, ctypes.byref(filled), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
