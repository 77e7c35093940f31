"""`manage.py serve`: the whole portal as one supervised group of processes."""

from __future__ import annotations

import os
import socket
import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from apps.common.serving import DataDirLock, listen, url_of
from apps.common.supervised import Plan, become
from apps.common.supervisor import StartupError, before_start
from kbportal import env

PARTS = ("web", "worker", "schedule")


class Command(BaseCommand):
    help = "Run the portal: web, worker and schedule under one supervisor. Ctrl-C stops all of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--only", default=",".join(PARTS), help="parts to run, separated by commas: web,worker,schedule")
        parser.add_argument("--host", default=env.HOST, help="address to listen on (KB_HOST)")
        parser.add_argument("--port", default=env.PORT, type=int, help="port to listen on, 0 for any free one (KB_PORT)")
        parser.add_argument("--migrate", action="store_true", help="bring the database up to date first")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            serve(_chosen(options["only"]), options["host"], options["port"], migrate=options["migrate"])
        except StartupError as error:
            raise CommandError(f"the portal cannot start: {error}") from error


def serve(chosen: list[str], host: str, port: int, *, migrate: bool) -> None:
    """Claim address and data folder, check what can be checked, then become the supervisor; returns only by an error.

    Raises: StartupError with a sentence for the operator.
    """
    run_dir = env.DATA_DIR / "run"
    run_dir.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        url, reachable, descriptor = "", "", None
        if "web" in chosen:
            listener = stack.enter_context(listen(host, port))
            port, descriptor = listener.getsockname()[1], listener.fileno()
            url = url_of(host, port)
            reachable = url.removeprefix("http://").rpartition(":")[0].strip("[]")
        lock = stack.enter_context(DataDirLock(run_dir, _locked(chosen), address=url))
        _bring_up_to_date(migrate=migrate)
        for hook in before_start:
            hook(chosen)
        plan = Plan(
            parts={name: _command(name, descriptor) for name in chosen},
            run_dir=str(run_dir),
            log_format=env.LOG_FORMAT,
            log_level=env.LOG_LEVEL,
            pids_file=_pids_file(chosen),
            locks=lock.descriptors,
            listener=descriptor,
            url=url,
            host=reachable,
            port=port if url else 0,
        )
        connections.close_all()
        become(plan, cwd=env.BASE_DIR)


def _chosen(raw: str) -> list[str]:
    wanted = [word.strip() for word in raw.split(",") if word.strip()]
    unknown = sorted(set(wanted) - set(PARTS))
    if unknown or not wanted:
        raise StartupError(f"--only takes {', '.join(PARTS)}; got {', '.join(unknown) or 'nothing'}")
    return [name for name in PARTS if name in wanted]


def _locked(chosen: list[str]) -> list[str]:
    """Parts only one supervisor may run: all of them on SQLite; with a database server only the schedule, which would fire twice."""
    if connections["default"].vendor == "sqlite":
        return chosen
    return [name for name in chosen if name == "schedule"]


def _pids_file(chosen: list[str]) -> str:
    """`pids.json` for a whole portal; parts of a deployment may share a data folder, so each has a file of its own."""
    return "pids.json" if list(PARTS) == chosen else f"pids-{socket.gethostname()}-{os.getpid()}.json"


def _bring_up_to_date(*, migrate: bool) -> None:
    executor = MigrationExecutor(connections["default"])
    pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if pending and not migrate:
        raise StartupError(f"{pending} database migrations are pending; run: python manage.py migrate")
    if pending:
        call_command("migrate", interactive=False, verbosity=1)


def _command(name: str, listener: int | None) -> list[str]:
    if name == "web":
        return [sys.executable, "-m", "apps.common.webserver", str(listener)]
    # Root is usual in a container; messages are JSON only, so the warning about it says nothing.
    quiet = ["-W", "ignore:You're running the worker with superuser privileges"]
    celery = [sys.executable, *quiet, "-m", "celery", "--quiet", "-A", "kbportal"]
    if name == "worker":
        threads = sum(env.PARSE_CONCURRENCY if queue == "parse" else 1 for queue in env.WORKER_QUEUES)
        # Names must differ between portals that share one broker. Gossip, mingle and heartbeat cost messages; the rows know who lives.
        options = ["-n", f"portal-{os.getpid()}@%h", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        return [*celery, "worker", "-P", "threads", "-c", str(threads), "-Q", ",".join(env.WORKER_QUEUES), *options]
    schedule = env.DATA_DIR / "run" / "celerybeat-schedule"
    # No --pidfile: the lock on the data folder does its work and cannot go stale.
    return [*celery, "beat", "--schedule", str(schedule), "-S", "apps.common.jobs.schedule:Scheduler"]
