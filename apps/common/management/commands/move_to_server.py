"""`manage.py move_to_server`: from the embedded to the server shape, the database part."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.common.errors import DomainError
from apps.common.moving import Copied, copy_all, open_target, prepare_target
from apps.common.serving import DataDirLock
from apps.common.supervisor import StartupError
from kbportal import env

PARTS = ("web", "worker", "schedule")


class Command(BaseCommand):
    help = (
        "Copy everything from the SQLite file into an empty PostgreSQL database and build the search index there. "
        "All of it or nothing; the SQLite file stays as it is. Stop the portal first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--database-url", required=True, help="postgres://user:password@host:5432/name; ~/.pgpass may have the password"
        )
        parser.add_argument("--check", action="store_true", help="try the whole copy, compare both sides, then undo it")
        parser.add_argument("--force", action="store_true", help="delete the rows that are on the server already")

    def handle(self, *args: Any, **options: Any) -> None:
        url, check = options["database_url"], options["check"]
        try:
            with DataDirLock(env.DATA_DIR / "run", PARTS):  # nobody writes to the file meanwhile
                open_target(url)
                prepare_target(force=options["force"])
                copied: list[Copied] = []
                copy_all(keep=not check, told=copied.append)
        except (DomainError, StartupError) as error:
            raise CommandError(f"nothing was moved: {error}") from error
        self._report(copied)
        if check:
            self.stdout.write("Checked only: the copy was undone and would succeed.")
            return
        self._build_index(url)
        self.stdout.write("Moved. Set KB_DATABASE_URL to the same URL, keep KB_DATA_DIR, and start the portal.")

    def _report(self, copied: list[Copied]) -> None:
        for table in copied:
            if table.rows:
                note = f" ({table.cleaned} values held a NUL character, which was taken out)" if table.cleaned else ""
                self.stdout.write(f"{table.rows:>9}  {table.table}{note}")
        self.stdout.write(f"{sum(table.rows for table in copied):>9}  rows in {len(copied)} tables, compared")

    def _build_index(self, url: str) -> None:
        """In a process of its own, which sees the server as its database."""
        argv = [sys.executable, "manage.py", "rebuild_index"]
        done = subprocess.run(argv, cwd=env.BASE_DIR, env=env.child_environment(KB_DATABASE_URL=url), check=False)
        if done.returncode:
            raise CommandError("the rows are on the server, the search index is not: set KB_DATABASE_URL and run manage.py rebuild_index")
