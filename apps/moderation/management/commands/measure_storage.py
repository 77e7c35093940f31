"""`manage.py measure_storage`: the figures of the admin's storage page, now instead of at the next scheduled time."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from apps.common.actor import Actor
from apps.moderation.services import storage_measure


class Command(BaseCommand):
    help = "Walk over the file store and renew the figures of the admin's storage page; nothing is repaired."

    def handle(self, *args: Any, **options: Any) -> None:
        report = storage_measure(actor=Actor(kind="system", reason="measure_storage"))
        self.stdout.write(
            f"{report.files} files, {report.files_bytes} bytes, {report.orphan_files} without a row, {report.missing_files} missing"
        )
