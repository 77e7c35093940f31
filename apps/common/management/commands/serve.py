"""`manage.py serve`: the whole portal as one supervised group of processes."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from apps.common.serving import DataDirLock, listen, url_of
from apps.common.supervisor import Part, StartupError, Supervisor, before_start
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
            self._serve(_chosen(options["only"]), options["host"], options["port"], migrate=options["migrate"])
        except StartupError as error:
            raise CommandError(f"the portal cannot start: {error}") from error

    def _serve(self, chosen: list[str], host: str, port: int, *, migrate: bool) -> None:
        run_dir = env.DATA_DIR / "run"
        run_dir.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            url, probe, fd = "", None, -1
            if "web" in chosen:
                listener = stack.enter_context(listen(host, port))
                port, fd = listener.getsockname()[1], listener.fileno()
                url = url_of(host, port)
                probe = (url.removeprefix("http://").rpartition(":")[0].strip("[]"), port)
            stack.enter_context(DataDirLock(run_dir, _locked(chosen), address=url))
            if pending := _pending_migrations():
                if not migrate:
                    raise StartupError(f"{pending} database migrations are pending; run: python manage.py migrate")
                call_command("migrate", interactive=False, verbosity=1)
            for hook in before_start:
                hook()
            for connection in connections.all():
                connection.close()
            parts = [_part(name, fd) for name in chosen]
            Supervisor(parts, run_dir=run_dir, probe=probe, on_ready=lambda: self._say_ready(url)).run()

    def _say_ready(self, url: str) -> None:
        self.stdout.write(f"\nThe portal is ready: {url}\nData: {env.DATA_DIR}\nStop it with Ctrl-C.\n\n")
        self.stdout.flush()


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


def _pending_migrations() -> int:
    executor = MigrationExecutor(connections["default"])
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _part(name: str, fd: int) -> Part:
    # Root is usual in a container; messages are JSON only, so the warning about it says nothing.
    celery = [
        sys.executable,
        "-W",
        "ignore:You're running the worker with superuser privileges",
        "-m",
        "celery",
        "--quiet",
        "-A",
        "kbportal",
    ]
    if name == "web":
        return Part(name, [sys.executable, "-m", "apps.common.webserver", str(fd)], pass_fds=(fd,))
    if name == "worker":
        threads = sum(env.PARSE_CONCURRENCY if queue == "parse" else 1 for queue in env.WORKER_QUEUES)
        argv = [*celery, "worker", "-P", "threads", "-c", str(threads), "-Q", ",".join(env.WORKER_QUEUES)]
        # Names must differ between portals that share one broker. Gossip, mingle and heartbeat cost messages; the rows know who lives.
        argv += ["-n", f"portal-{os.getpid()}@%h", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        return Part(name, argv)
    schedule = env.DATA_DIR / "run" / "celerybeat-schedule"
    # No --pidfile: the lock on the data folder does its work and cannot go stale.
    return Part(name, [*celery, "beat", "--schedule", str(schedule), "-S", "django_celery_beat.schedulers:DatabaseScheduler"])
