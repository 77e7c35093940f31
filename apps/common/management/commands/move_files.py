"""`manage.py move_files`: from a folder into a bucket or back."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.common import storage
from apps.common.errors import DomainError
from apps.common.jobs.service import served_queues
from apps.common.moving_files import Moved, move_all, open_target

SAY_EVERY = 500


class Command(BaseCommand):
    help = (
        "Copy every stored file into another store and compare checksums. Nothing is removed from where the files are now. "
        "Interrupted, it goes on where it was; run again, it copies what is new."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--to", required=True, help="folder (KB_DATA_DIR/files), an absolute path, or s3://bucket/prefix?endpoint_url=..."
        )
        parser.add_argument("--again", action="store_true", help="compare files as well that an earlier run compared")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            target = open_target(options["to"])
            moved = move_all(storage.store(), target, again=options["again"], told=self._say)
        except DomainError as error:
            raise CommandError(f"{error} What was copied so far stays; run the command again.") from error
        size = f"{moved.size_bytes / 1024**2:.1f} MiB"
        self.stdout.write(f"{moved.files} files, {size}: {moved.copied} copied, {moved.kept} there before; checksums compared.")
        if moved.extra:
            self.stdout.write(f"{len(moved.extra)} files are only in the target; once it is in use, manage.py reconcile removes them.")
        setting = options["to"] if options["to"].startswith("s3://") else ""
        if served_queues():
            self.stdout.write("The portal is running: stop it and run this once more, so that files that come meanwhile are not missed.")
            return
        where = f"KB_STORAGE_URL={setting}" if setting else f"KB_STORAGE_URL empty and its files in {target.place}"
        self.stdout.write(
            f"Start the portal with {where}. Remove the files in {storage.store().place} once you have seen that all is well."
        )

    def _say(self, moved: Moved) -> None:
        if moved.files % SAY_EVERY == 0:
            self.stdout.write(f"{moved.files} files, {moved.size_bytes / 1024**2:.0f} MiB")
