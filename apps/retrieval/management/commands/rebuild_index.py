"""`manage.py rebuild_index`: make the search index again from the database, online."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.retrieval.plugins.protocol import INDEX_FAILURES
from apps.retrieval.services import rebuild_index
from apps.retrieval.tasks import reconcile_all


class Command(BaseCommand):
    help = "Make the search index again from the database while searches go on, then swap it in."

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        try:
            done = rebuild_index()
        except INDEX_FAILURES as error:
            message = (
                "the index was not replaced, and the one before goes on answering; another rebuild that began later may have taken over"
            )
            raise CommandError(f"{message}: {error}") from error
        caught = reconcile_all()
        seconds = time.monotonic() - started
        self.stdout.write(
            f"{done['documents']} documents, {done['chunks']} passages in {seconds:.1f} s; {caught} changed meanwhile and were caught up"
        )
