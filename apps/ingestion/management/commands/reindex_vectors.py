"""`manage.py reindex_vectors`: bring bases over to the vectors of the model they should have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.scope import space_scope
from apps.ingestion.selectors import stale_bases
from apps.ingestion.services import reindex_start
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.spaces.models import Space


class Command(BaseCommand):
    help = "List bases served by vectors of an older model; with --all or --base start their re-index (a worker does it)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--base", default="", help="id of one knowledge base, whatever vectors serve it")
        parser.add_argument("--all", action="store_true", help="every base that is served by vectors of an older model")

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = as_uuid(options["base"]) if options["base"] else None
        if options["base"] and wanted is None:
            raise CommandError(f"{options['base']!r} is not the id of a knowledge base")
        found = 0
        for actor, base in _named(wanted) if wanted else _stale():
            found += 1
            if not wanted and not options["all"]:
                self.stdout.write(f"{base.uid}  {base.name} (space {base.space_id})")
                continue
            try:
                reindex_start(actor=actor, base=base, model_id=base.embedding_model_id)
                self.stdout.write(f"{base.uid}  {base.name}: started")
            except DomainError as error:
                self.stderr.write(f"{base.uid}  {base.name}: {error}")
        if wanted and not found:
            raise CommandError("there is no such knowledge base")
        if not wanted and not options["all"]:
            self.stdout.write(f"{found} served by vectors of an older model" + ("; --all re-indexes them" if found else ""))


def _spaces() -> Iterator[Actor]:
    for space_id in Space.objects.filter(deleted_at__isnull=True).order_by("pk").values_list("pk", flat=True):
        with space_scope(space_id, "re-index by command"):
            yield Actor.system(space_id, "re-index by command")


def _stale() -> Iterator[tuple[Actor, KnowledgeBase]]:
    for actor in _spaces():
        for base in stale_bases(actor=actor):
            yield actor, base


def _named(uid: Any) -> Iterator[tuple[Actor, KnowledgeBase]]:
    for actor in _spaces():
        for base in KnowledgeBase.objects.visible_to(actor).filter(uid=uid):
            yield actor, base
