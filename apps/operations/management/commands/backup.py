"""`manage.py backup`: database, files and settings in one archive, while the portal runs."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from apps.common.errors import DomainError
from apps.operations.backup import Made, backup_to, require_space


class Command(BaseCommand):
    help = (
        "Write database, files and settings into one archive (tar). The portal may go on running. The archive holds the signing key "
        "and every password setting unless --without-secrets is given: keep it where only you can read it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", default="", help="file or folder (default: KB_DATA_DIR/backups); - writes to standard output")
        parser.add_argument("--without-secrets", action="store_true", help="leave the signing key and settings with passwords out")

    def handle(self, *args: Any, **options: Any) -> None:
        secrets = not options["without_secrets"]
        try:
            if options["to"] == "-":
                made = backup_to(sys.stdout.buffer, secrets=secrets, told=self._say)
                sys.stdout.buffer.flush()
                self._summarise(made, "standard output", self.stderr)
                return
            path = _target(options["to"])
            require_space(path.parent)
            made = self._to_file(path, secrets=secrets)
        except (DomainError, OSError) as error:
            raise CommandError(f"no backup was made: {error}") from error
        self._summarise(made, str(path), self.stdout)

    def _to_file(self, path: Path, *, secrets: bool) -> Made:
        """Under another name until it is whole: whatever ends the command, no half archive has the final name."""
        part = path.with_name(f".{path.name}.part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as target:
                made = backup_to(target, secrets=secrets, told=self._say)
                target.flush()
                os.fsync(target.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
        return made

    def _say(self, text: str) -> None:
        self.stderr.write(f"backup: {text}")

    def _summarise(self, made: Made, where: str, out: Any) -> None:
        if made.missing:
            self.stderr.write(f"WARNING: {len(made.missing)} files that rows name are not in the store: {', '.join(made.missing[:3])}")
        if made.secrets:
            self.stderr.write("NOTE: the archive holds the signing key and the passwords of the settings. Keep it secret, or encrypt it.")
        else:
            self.stderr.write("NOTE: without secrets: after a restore everybody signs in again, and saved credentials cannot be decrypted.")
        size = f"{made.file_bytes / 1024**2:.1f} MiB"
        out.write(f"backup: {made.rows} rows of {made.tables} tables, {made.files} files ({size}) in {made.seconds:.1f} s: {where}")


def _target(given: str) -> Path:
    """Raises: OSError when the folder cannot be made; CommandError when the file is there."""
    name = f"kbportal-{timezone.now():%Y%m%dT%H%M%SZ}.tar"
    if not given:
        folder = Path(settings.DATA_DIR) / "backups"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / name
    path = Path(given).absolute()
    path = path / name if path.is_dir() else path
    if path.exists():
        raise CommandError(f"{path} exists already; name another file")
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}")
    return path
