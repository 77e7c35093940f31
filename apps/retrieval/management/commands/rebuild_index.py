"""`manage.py rebuild_index`: make the search index again from the database, online."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand

from apps.retrieval.services import rebuild_index
from apps.retrieval.tasks import reconcile_all


class Command(BaseCommand):
    help = "Make the search index again from the database while searches go on, then swap it in."

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        done = rebuild_index()
        caught = reconcile_all()
        seconds = time.monotonic() - started
        self.stdout.write(
            f"{done['documents']} documents, {done['chunks']} passages in {seconds:.1f} s; {caught} changed meanwhile and were caught up"
        )
