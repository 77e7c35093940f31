"""Whether the portal's processes in this container are well: `python -m kbportal.healthcheck [web] [worker] [schedule]`.

Exit status 0 when the parts named (without any, those that run here) live and, where web is among them, it answers. The supervisor writes
down what it runs, and takes out what died. Without Django, so that a check costs a tenth of a second.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
from pathlib import Path

from kbportal import env

TIMEOUT_S = 8.0


def main(wanted: list[str]) -> int:
    """0 when all is well; otherwise 1, with the reason on standard error."""
    running = parts_of(env.DATA_DIR / "run", socket.gethostname())
    missing = [part for part in wanted or ["supervisor"] if part not in running]
    dead = [name for name, pid in running.items() if not _alive(pid)]
    if missing or dead:
        sys.stderr.write(f"not running: {', '.join(missing + dead)}\n")
        return 1
    if "web" in running and (problem := web_problem(env.PORT)):
        sys.stderr.write(f"web does not answer: {problem}\n")
        return 1
    return 0


def parts_of(run_dir: Path, host: str) -> dict[str, int]:
    """What the supervisor of this machine says it runs, with process ids; the latest one when there were several."""
    found = [*run_dir.glob(f"pids-{host}-*.json"), *run_dir.glob("pids.json")]
    for path in sorted(found, key=_changed, reverse=True):
        try:
            said: dict[str, int] = json.loads(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
        return said
    return {}


def web_problem(port: int) -> str:
    """Why the web process does not answer on this machine; "" when it does."""
    names = [name.lstrip(".") for name in env.ALLOWED_HOSTS if name != "*"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/healthz/live", headers={"Host": names[0] if names else "localhost", "Connection": "close"})
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    return "" if status == 200 else f"status {status}"


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
