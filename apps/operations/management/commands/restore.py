"""`manage.py restore`: what an archive holds becomes this portal."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.common.errors import DomainError
from apps.common.supervisor import StartupError
from apps.operations import archive
from apps.operations.restore import Restored, restore_from
from kbportal import env

INDEX_MISSING = 3
KEYS = {
    "restored": "The signing key is that of the backup: people stay signed in.",
    "same": "",
    "not in the archive": "NOTE: the archive holds no signing key: everybody signs in again, and saved credentials have to be typed again.",
    "other than KB_SECRET_KEY": "WARNING: KB_SECRET_KEY differs from the key of the backup (member secret_key of the archive). "
    "Set it, or everybody signs in again and saved credentials cannot be decrypted.",
}


class Command(BaseCommand):
    help = "Replace what this portal has by what an archive of manage.py backup holds. Stop the portal first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", help="the archive")
        parser.add_argument("--check", action="store_true", help="verify every byte of the archive and change nothing")
        parser.add_argument("--force", action="store_true", help="replace the rows and files that are there")

    def handle(self, *args: Any, **options: Any) -> None:
        path = Path(options["path"])
        try:
            if options["check"]:
                self._describe(archive.verify(path))
                return
            done = restore_from(path, force=options["force"], told=lambda text: self.stderr.write(f"restore: {text}"))
        except (DomainError, StartupError) as error:
            raise CommandError(f"nothing was restored: {error}") from error
        self._report(done)
        self._build_index()

    def _describe(self, manifest: dict[str, Any]) -> None:
        rows = sum(table["rows"] for table in manifest["tables"].values())
        files = manifest["files"]
        self.stdout.write(
            f"sound: made {manifest['made_at']} by version {manifest['version']} on {manifest['engine']}; "
            f"{rows} rows of {len(manifest['tables'])} tables, {files['count']} files ({files['bytes'] / 1024**2:.1f} MiB)"
        )
        if files["missing"]:
            self.stdout.write(f"{len(files['missing'])} files were missing already when it was made")

    def _report(self, done: Restored) -> None:
        if KEYS[done.key]:
            self.stderr.write(KEYS[done.key])
        if done.cleaned:
            self.stderr.write(f"NOTE: {done.cleaned} values held a NUL character, which PostgreSQL cannot store; it was taken out.")
        if done.other_settings:
            self.stderr.write(f"NOTE: settings that were different when the backup was made: {', '.join(done.other_settings)}")
        self.stdout.write(f"restored: {done.rows} rows of {done.tables} tables, {done.files} files, as of {done.made_at}")

    def _build_index(self) -> None:
        """In a process of its own, which starts with the restored key and database."""
        self.stderr.write("restore: building the search index")
        done = subprocess.run([sys.executable, "manage.py", "rebuild_index"], cwd=env.BASE_DIR, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            message = "rows and files are restored, the search index is not: run manage.py rebuild_index"
            raise CommandError(message, returncode=INDEX_MISSING)
