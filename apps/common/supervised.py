"""What `manage.py serve` turns into once everything is checked: the supervisor without Django, so that it costs 15 MB instead of 90.

It inherits the listening socket and the locks on the data folder; its one argument is a `Plan` as JSON.
"""

from __future__ import annotations

import json
import logging.config
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn

from apps.common.logs import logging_config
from apps.common.supervisor import Part, Supervisor


@dataclass(frozen=True)
class Plan:
    """Everything the supervisor has to know.

    `pids_file`: where in `run_dir` it says what runs; `locks`: descriptors of the lock files it holds; `host`, `port`: where web answers.
    """

    parts: dict[str, list[str]]
    run_dir: str
    log_format: str
    log_level: str
    pids_file: str = "pids.json"
    locks: list[int] = field(default_factory=list)
    listener: int | None = None
    url: str = ""
    host: str = ""
    port: int = 0


def become(plan: Plan, *, cwd: Path) -> NoReturn:
    """Replace this process, same pid, by the supervisor of `plan`; its parts run in `cwd`."""
    for descriptor in [*plan.locks, *([] if plan.listener is None else [plan.listener])]:
        os.set_inheritable(descriptor, True)
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(cwd)
    os.execv(sys.executable, [sys.executable, "-m", "apps.common.supervised", json.dumps(asdict(plan))])  # noqa: S606 - our own interpreter and module


def main(argv: list[str]) -> int:
    """Supervise until a stop signal, then hand the data folder back clean."""
    plan = Plan(**json.loads(argv[1]))
    logging.config.dictConfig(logging_config(plan.log_format, plan.log_level))
    for descriptor in plan.locks:
        os.set_inheritable(descriptor, False)
    fds = {"web": () if plan.listener is None else (plan.listener,)}
    parts = [Part(name, command, pass_fds=fds.get(name, ())) for name, command in plan.parts.items()]

    def say_ready() -> None:
        sys.stdout.write(f"\nThe portal is ready: {plan.url}\nData: {Path(plan.run_dir).parent}\nStop it with Ctrl-C.\n\n")
        sys.stdout.flush()

    probe = (plan.host, plan.port) if plan.port else None
    supervisor = Supervisor(parts, run_dir=Path(plan.run_dir), probe=probe, on_ready=say_ready, pids_file=plan.pids_file)
    code = supervisor.run()
    for descriptor in plan.locks:
        os.ftruncate(descriptor, 0)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv))
