"""`manage.py reconcile`: prove that database, index and file store agree, and repair what does not."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.common.errors import StoreUnavailable
from apps.ingestion.reconcile import YOUNG_S, reconcile


class Command(BaseCommand):
    help = "Compare database, search index and file store; repair what disagrees (or only report it with --check)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="report only; exit status 1 when something disagrees")
        parser.add_argument("--young", type=float, default=YOUNG_S, help="leave files alone that changed in the last N seconds")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = reconcile(repair=not options["check"], young_s=options["young"])
        except StoreUnavailable as error:
            raise CommandError(f"{error} Nothing was removed or called missing.") from error
        for space_id, drift in found.index.items():
            counts = f"{len(drift.missing)} not in the index, {len(drift.stale)} in an old state, {len(drift.orphaned)} too many"
            self.stdout.write(f"space {space_id}: {counts}")
        for key in found.orphan_files:
            self.stdout.write(f"file without a row: {key}")
        for key in found.missing_files:
            self.stdout.write(f"row without its file: {key}")
        for document_id in found.idle_documents:
            self.stdout.write(f"document {document_id} was in flight with nobody working on it")
        for document_id in found.unfinished_deletions:
            self.stdout.write(f"document {document_id} is deleted, and nobody finishes it")
        word = "disagree" if options["check"] else "repaired"
        self.stdout.write(f"{found.total} {word}" if found.total else "database, index and files agree")
        if options["check"] and found.total:
            raise SystemExit(1)
